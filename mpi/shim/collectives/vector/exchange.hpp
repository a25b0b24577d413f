// Collectives made of edges (engine/messages/edges.hpp): an edge is a message from one rank to another, from the
// sender's layout to the receiver's. This file has the parts that they share. An operation (exchanging.hpp,
// varying.hpp, neighbors.hpp) says which edges it has:
//
//   template <class Visitor> bool edges(Visitor& visitor) const
//     calls visitor.send(partner, tag, data, k) and visitor.receive(partner, tag, data, k) for part k of `data`, in the
//     order in which they are sent and received; returns false as soon as one of them returns false
//   std::pair<...> most() const about how many edges are sent and received
//   bool one_way() const        true: ranks that send do not receive
//   bool in_place() const       true: only receives are visited; the data for a partner lie where its part is received
//   std::unique_ptr<StagingBuffers> rest(bool overlaps)   optional: buffers in which the call receives; their store()
//                               stores the result
//
// All ranks decide alike whether messages serve a call (law 1 of docs/dev/architecture.md). Calls with wrong arguments
// go to the host, which raises the error. A rank that lacks memory sends its partners refusals instead (law 7).
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>

#include "engine/base/out_of_memory.hpp"
#include "engine/messages/edges.hpp"
#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/collectives/task.hpp"
#include "mpi/shim/collectives/vector/partner_data.hpp"
#include "mpi/shim/collectives/vector/short_edges.hpp"

namespace nearfield::mpi {

using collectives::Collective;

// Returns whether MPICH rejects the buffers; then the call goes to the host, which raises an error. A reason that only
// this rank knows must never send a valid call to the host.
inline bool aliased(const PartnerData& ours, int i, const PartnerData& theirs, int k) {
  return host_rejects_aliases && ours.buffer() && ours.address(i) == theirs.address(k) &&
         ours.type(i) == theirs.type(k) && ours.count(i) > 0 && theirs.count(k) > 0;
}

// Calls visit(to, from) for partners me + i and me - i modulo `size`, from i = `first` on, until it returns false. In
// this order no two ranks send to the same rank in one step. Returns whether all calls have returned true.
template <class Visit>
bool in_rotated_order(int me, int size, int first, Visit visit) {
  int to = me % size, from = to;
  for (int i = 0; i < size; ++i) {
    if (i >= first && !visit(to, from)) return false;
    if (++to == size) to = 0;
    from = (from == 0 ? size : from) - 1;
  }
  return true;
}

inline messages::Partners partners_of(const Communicator& c, std::uint64_t context) {
  return {*the_messenger, c.members, c.rank, context, c.inter};
}

// This rank's part of a call: the engine's edges, and what they need while they are under way. It lies on the stack of
// a blocking call, or is the Work of a task (../task.hpp).
class Exchange final {
 public:
  Exchange(const Communicator& c, std::uint64_t context, Form form = Form::blocking)
      : form_(form),
        overlaps_(form != Form::blocking),
        comm_(c.comm),
        members_(overlaps_ ? c.members : std::vector<int>()),
        edges_({*the_messenger, overlaps_ ? members_ : c.members, c.rank, context, c.inter}) {}
  ~Exchange() {
    if (posted_) edges_.abandon();
  }

  // False: arguments that the host must judge. Throws std::bad_alloc.
  template <class Operation>
  bool describe(Operation& operation) {
    if constexpr (requires { operation.rest(true); }) rest_ = operation.rest(overlaps_);
    const auto [sends, receives] = operation.most();
    edges_.sends.reserve(sends);
    edges_.receives.reserve(receives);
    edges_.one_way = operation.one_way();
    if (!operation.edges(*this)) return false;
    in_place_ = operation.in_place();
    if (in_place_) copy_aside();
    edges_.prepare(overlaps_);
    return true;
  }
  bool send(int partner, int tag, const PartnerData& data, int k);
  bool receive(int partner, int tag, const PartnerData& data, int k) {
    return add(received_, edges_.receives, false, partner, tag, data, k);
  }

  // Returns an error class that the caller has to raise.
  int run() { return store(edges_.run()); }
  int post();
  bool complete() const { return edges_.complete(); }
  int finalize() { return store(edges_.outcome()); }
  void progress() {}  // the messenger's
  void abandon() { edges_.abandon(); }
  bool goes_on_without(int member) {
    edges_.end_with(member);
    return true;
  }
  bool involves(int member) const { return edges_.involves(member); }
  bool stays() const { return false; }
  std::uint64_t bytes() const { return edges_.bytes_to_all(); }

 private:
  using Copies = std::vector<std::unique_ptr<Packed>>;
  bool add(Copies& copies, std::pmr::vector<messages::Edge>& edges, bool sends, int partner, int tag,
           const PartnerData& data, int k);
  int store(const messages::EdgeError& error);
  static void pack(Packed& copy);
  void copy_aside();
  void renew();
  const Form form_;
  const bool overlaps_;
  bool in_place_ = false, posted_ = false;
  const MPI_Comm comm_;
  const std::vector<int> members_;  // copied for calls that may outlive their communicator
  messages::Edges edges_;
  std::tuple<void*, MPI_Count, MPI_Datatype> last_sent_{};
  std::vector<std::shared_ptr<const TypeLayout>> layouts_;  // of the edges
  Copies sent_, received_;                                  // of what the messenger cannot address
  std::unique_ptr<StagingBuffers> rest_;
};

// A visitor of the edges that are not empty: of those that are sent, or of those that are received.
struct Filled {
  bool sends, in_place;
  messages::VisitEdge visit;

  bool send(int partner, int tag, const PartnerData& data, int k) {
    if (sends) look(partner, tag, data, k);
    return true;
  }
  bool receive(int partner, int tag, const PartnerData& data, int k) {
    if (!sends || in_place) look(partner, tag, data, k);
    return true;
  }

 private:
  void look(int partner, int tag, const PartnerData& data, int k);
};

// Called if memory is short: tells the partners that this rank cannot take part.
template <class Operation>
void refuse(const Communicator& c, std::uint64_t context, const Operation& operation) {
  messages::refuse(partners_of(c, context), [&](bool sends, messages::VisitEdge visit) {
    Filled filled{sends, operation.in_place(), visit};
    operation.edges(filled);
  });
}

// Counts a call that edges serve.
void count_exchange(Collective collective, std::uint64_t bytes, std::uint64_t start);

// Returns the error class of the edges, and logs whose message was truncated.
int code_of_error(const messages::EdgeError& error);

// A call that messages serve. `prepare()` completes the operation; false: arguments that the host must judge.
template <class Operation, class When>
int exchange(Collective collective, const char* function, Communicator& c, const When& when, Operation& operation,
             FunctionRef<bool()> prepare) {
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  // All members make persistent calls in the same order. A call counts even if this rank's arguments are wrong.
  std::uint64_t context = context_of_collectives(c);
  if constexpr (When::plans) context = context_of_plan(c, c.plans++);
  else if constexpr (When::overlaps) context = context_of_overlapping(c);
  return guarded(c.comm, function, [&]() -> int {
    if (!prepare()) return when.at_host(collective, Reason::argument);
    if constexpr (When::overlaps) {
      try {
        auto task = std::make_unique<CollectiveTask<Exchange>>(c, context, When::form);
        if (!task->work.describe(operation)) return when.at_host(collective, Reason::argument);
        count_exchange(collective, task->work.bytes(), start);
        return report(c.comm, make_request(c.comm, std::move(task), When::plans, when.request));
      } catch (const OutOfMemory&) {
        refuse(c, context, operation);
        throw;
      }
    } else {
      const auto done = [&](int code, std::uint64_t bytes) {
        if (open_windows.load(std::memory_order_relaxed)) the_messenger->process().progress().step_host();
        count_exchange(collective, bytes, start);
        return report(c.comm, code);
      };
      if (ShortEdges edges(partners_of(c, context)); edges.run(operation))
        return done(code_of_error(edges.error()), edges.bytes());
      std::optional<Exchange> ready;
      try {
        ready.emplace(c, context);
        if (!ready->describe(operation)) return when.at_host(collective, Reason::argument);
      } catch (const OutOfMemory&) {
        refuse(c, context, operation);
        throw;
      }
      const int code = ready->run();
      return done(code, ready->bytes());
    }
  });
}

}  // namespace nearfield::mpi
