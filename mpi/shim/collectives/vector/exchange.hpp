// Collectives made of edges (engine/messages/edges.hpp): what one rank has for another goes as a message from layout to
// layout. Here is what they share: the sides of a call, types, packing, devices, errors, requests. What an operation
// says of itself (exchanging.hpp, varying.hpp, neighbors.hpp) is which edges it has:
//
//   template <class Visitor> bool edges(Visitor& visitor) const
//     calls visitor.send(partner, tag, side, k) and visitor.receive(partner, tag, side, k) for part k of a side, in the
//     order in which they are sent and received; false as soon as one of them returns that
//   std::pair<...> most() const about how many are sent and received
//   bool one_way() const        who sends does not receive
//   bool in_place() const       receives alone are visited; what is sent to a partner is what lies where its part will
//   be received
//   std::unique_ptr<StagingBuffers> rest(bool overlaps)   where there is something left to do with what has come: takes
//   the room that it comes to
//
// Who takes part in messages is equal on all ranks (law 1 of docs/dev/architecture.md); arguments that are wrong go to
// the host, which raises the error. A rank that cannot take part tells the others by sending nothing (law 7).
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>

#include "engine/base/out_of_memory.hpp"
#include "engine/messages/edges.hpp"
#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/collectives/task.hpp"
#include "mpi/shim/collectives/vector/short_edges.hpp"
#include "mpi/shim/handles/packing.hpp"

namespace nearfield::mpi {

using collectives::Collective;

// The extent of a type, by which displacements and blocks count. False: the host must judge it.
bool find_extent(MPI_Datatype type, MPI_Aint& extent);

// One side of a call: what goes to, or comes from, each partner. All have count(k), type(k) and address(k).
//
// The same for everybody, or for the only partner there is.
template <class Count>
struct Same {
  void* buffer;
  Count one;
  MPI_Datatype element;
  bool prepare() { return true; }
  Count count(int) const { return one; }
  MPI_Datatype type(int) const { return element; }
  void* address(int) const { return buffer; }
};

// A block for each, one after the other.
template <class Count>
struct Blocks {
  void* buffer;
  Count each;
  MPI_Datatype element;
  MPI_Aint extent = 1;
  bool prepare() { return find_extent(element, extent); }
  Count count(int) const { return each; }
  MPI_Datatype type(int) const { return element; }
  void* address(int k) const { return const_cast<void*>(offset_by(buffer, std::uintptr_t(k) * each * extent)); }
};

// For each so many elements, displaced from the buffer: by extents of the one type, or in bytes where each has its own.
template <class Count, class Displacement>
struct VaryingParts {
  using Counts = Count;
  void* buffer;
  const Count* counts;
  const Displacement* displacements;
  MPI_Datatype element;
  const MPI_Datatype* types;
  MPI_Aint extent = 1;

  bool prepare() { return counts && displacements && (types || find_extent(element, extent)); }
  Count count(int k) const { return counts[k]; }
  MPI_Datatype type(int k) const { return types ? types[k] : element; }
  void* address(int k) const {
    return const_cast<void*>(offset_by(buffer, std::uintptr_t(MPI_Aint(displacements[k]) * extent)));
  }
};
template <class Count, class Place>
VaryingParts<Count, Place> parts(const void* buffer, const Count* counts, const Place* places, MPI_Datatype type) {
  return {const_cast<void*>(buffer), counts, places, type, nullptr};
}
template <class Count, class Place>
VaryingParts<Count, Place> parts(const void* buffer, const Count* counts, const Place* places,
                                 const MPI_Datatype* types) {
  return {const_cast<void*>(buffer), counts, places, MPI_DATATYPE_NULL, types};
}

// What MPICH rejects. Nothing more may go to the host for such a reason, since the other ranks do not know of it.
template <class Ours, class Theirs>
bool aliased(const Ours& ours, int i, const Theirs& theirs, int k) {
  return host_rejects_aliases && ours.buffer && ours.address(i) == theirs.address(k) &&
         ours.type(i) == theirs.type(k) && ours.count(i) > 0 && theirs.count(k) > 0;
}

inline messages::Partners partners_of(const Communicator& c, std::uint64_t context) {
  return {*the_messenger, c.members, c.rank, context, c.inter};
}

// Our part of a call: the edges as the engine takes them, and what they need for as long as it does. On the stack of a
// blocking call, or as a task (../task.hpp).
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
  template <class Side>
  bool send(int partner, int tag, const Side& side, int k) {
    // Many partners may get the same: it is described and packed once.
    const auto what = std::tuple{side.address(k), MPI_Count(side.count(k)), side.type(k)};
    if (!edges_.sends.empty() && what == last_sent_) {
      edges_.sends.push_back({partner, tag, edges_.sends.back().data});
      return true;
    }
    last_sent_ = what;
    return add(sent_, edges_.sends, true, partner, tag, side, k);
  }
  template <class Side>
  bool receive(int partner, int tag, const Side& side, int k) {
    return add(received_, edges_.receives, false, partner, tag, side, k);
  }

  // A code that is yet to be raised.
  int run() { return store(edges_.run()); }
  int post();
  bool complete() const { return edges_.complete(); }
  int finalize() { return store(edges_.outcome()); }
  void progress() {}  // the messenger's
  void abandon() { edges_.abandon(); }
  bool involves(int member) const { return edges_.involves(member); }
  bool stays() const { return false; }
  std::uint64_t bytes() const { return edges_.bytes_to_all(); }

 private:
  using Copies = std::vector<std::unique_ptr<Packed>>;
  template <class Side>
  bool add(Copies& copies, std::pmr::vector<messages::Edge>& edges, bool sends, int partner, int tag, const Side& side,
           int k) {
    const auto count = side.count(k);
    messages::Edge edge{partner, tag, {}};
    if (count < 0 || (count && side.address(k) == MPI_IN_PLACE)) return false;
    if (count) {
      TypedData typed(side.address(k), count, side.type(k));
      if (!typed.good) return false;
      auto packed = packed_copy(typed, side.address(k), count, side.type(k), comm_, overlaps_);
      if (packed && sends) pack(*packed);
      if (packed) copies.push_back(std::move(packed));
      if (typed.layout) layouts_.push_back(std::move(typed.layout));
      edge.data = typed.data;
    }
    edges.push_back(edge);
    return true;
  }
  int store(const messages::EdgeError& error);
  static void pack(Packed& copy);
  void copy_aside();
  void renew();
  const Form form_;
  const bool overlaps_;
  bool in_place_ = false, posted_ = false;
  const MPI_Comm comm_;
  const std::vector<int> members_;  // of what may outlive its communicator
  messages::Edges edges_;
  std::tuple<void*, MPI_Count, MPI_Datatype> last_sent_{};
  std::vector<std::shared_ptr<const TypeLayout>> layouts_;  // of the edges
  Copies sent_, received_;                                  // of what the messenger cannot address
  std::unique_ptr<StagingBuffers> rest_;
};

// The edges in which anything goes out (sends), or comes in.
struct Filled {
  bool sends, in_place;
  messages::VisitEdge visit;

  template <class Side>
  bool send(int partner, int tag, const Side& side, int k) {
    if (sends) look(partner, tag, side, k);
    return true;
  }
  template <class Side>
  bool receive(int partner, int tag, const Side& side, int k) {
    if (!sends || in_place) look(partner, tag, side, k);
    return true;
  }

 private:
  template <class Side>
  void look(int partner, int tag, const Side& side, int k) {
    MPI_Count size = 0;
    if (side.count(k) > 0 && host.Type_size_x(side.type(k), &size) == MPI_SUCCESS && size > 0) visit(partner, tag);
  }
};

// Without memory we cannot take part.
template <class Operation>
void refuse(const Communicator& c, std::uint64_t context, const Operation& operation) {
  messages::refuse(partners_of(c, context), [&](bool sends, messages::VisitEdge visit) {
    Filled filled{sends, operation.in_place(), visit};
    operation.edges(filled);
  });
}

// Counts a call that edges serve.
void count_exchange(Collective collective, std::uint64_t bytes, std::uint64_t start);

// Says whose part has been cut.
int code_of_error(const messages::EdgeError& error);

// A call that messages serve. `make(c, operation)` makes what says which edges there are; false: arguments that the
// host must judge.
template <class Operation, class When, class Make>
int exchange(Collective collective, const char* function, Communicator& c, const When& when, Make make) {
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  // All members plan in the same order; what one of them gets wrong counts as well.
  std::uint64_t context = context_of_collectives(c);
  if constexpr (When::plans) context = context_of_plan(c, c.plans++);
  else if constexpr (When::overlaps) context = context_of_overlapping(c);
  return guarded(c.comm, function, [&]() -> int {
    Operation operation;
    if (!make(c, operation)) return when.at_host(collective, Reason::argument);
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
