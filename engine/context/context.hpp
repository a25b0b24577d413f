// A context: the state of those operations of a team that run one after another. It consists of the parts below.
// Collectives use these and never access a shared word; control_block.hpp names the words and their writers.
//
//   calls          the log of our calls, for reports        ticks         numbers of rounds and exchanges
//   waits          waiting, and waking of those who wait    rounds        long data, by copy buffers
//   barrier        all members wait for all                 shared_work   work for all, done by members that run
//   lines, slots   short data, by rings of records          exchange      places of users' own buffers
//
// The first context of a team serves blocking calls. Calls that may overlap others use further contexts (pool.hpp), and
// their bodies run on fibers: a wait in such a context that has looked once in vain suspends the body. The code of the
// body is the same in both cases.
#pragma once
#include "engine/context/buffer_exchange.hpp"

namespace nearfield::context {

class CollectiveContext {
  ContextMembers members_;

 public:
  // `number`: 0 for the context of blocking calls.
  explicit CollectiveContext(Team& team, unsigned number = 0)
      : members_{team, number}, inputs_(std::size_t(size())), outputs_(std::size_t(size())) {}
  CollectiveContext(const CollectiveContext&) = delete;

  Team& team() const { return members_.team; }
  unsigned number() const { return members_.number; }
  int rank() const { return members_.rank; }
  int size() const { return members_.size; }
  Process& process() const { return members_.process; }
  const Shape& shape() const { return members_.shape; }
  const Tree& tree() const { return shape().tree; }

  CallLog calls{members_};
  Waits waits{members_, calls};
  Barrier barrier{members_, waits};
  Lines lines{members_, waits, barrier};
  Slots slots{members_, waits, barrier};
  Ticks ticks{members_, waits, barrier};
  Rounds rounds{members_, ticks, calls};
  SharedWork shared_work{members_, waits, barrier, ticks};
  BufferExchange exchange{members_, waits, ticks, rounds, shared_work};

  // Scratch for the collectives: `size` pointers each.
  std::span<const void*> inputs() { return inputs_; }
  std::span<void*> outputs() { return outputs_; }

  // ---- placing the control blocks (creation/create.cpp, pool.cpp)
  void prepare() { exchange.prepare(); }  // pre: the team's segments are mapped; throws std::bad_alloc
  void place_control_block(int member, ContextControlBlock* words) {
    members_.words[std::size_t(member)] = words;
    if (member == rank()) members_.mine = words;
    exchange.join(member);
  }
  void place_gate(ContextGate* gate) { members_.gate = gate; }

 private:
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace nearfield::context
