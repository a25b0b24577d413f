// Reductions of an intercommunicator: each group, or the root alone, gets the result of the other group's operands,
// combined in rank order. Each operand is sent to each rank that gets a result (exchange.hpp), which receives it in a
// place of its own. The thread that completes the call combines the places, on its own stack (folding.hpp):
//
//   all of the vector   if the receiver gets all of the result, or a part whose position only its own group knows
//   a block of it       in MPI_Reduce_scatter_block
//
// So a call of any form consists of one exchange, which the messenger progresses alone.
#pragma once
#include <climits>

#include "mpi/shim/collectives/engine/folding.hpp"
#include "mpi/shim/collectives/engine/reductions.hpp"
#include "mpi/shim/collectives/intercomm/intercomm.hpp"

namespace nearfield::mpi::intercomm {

// A rank's part in a reduction, in elements.
struct InterReduction {
  void* send;
  void* recv;
  MPI_Count total;  // elements of the vector; of a block if in_blocks
  MPI_Datatype type;
  MPI_Op op;
  MPI_Count first = 0, count = 0;  // the elements of the result that this rank gets
  int root = -1;                   // the only rank that gets a result, known to those that give; -1: all get one
  bool gives = true, gets = true;
  bool in_blocks = false;  // everybody gets an equal part
};

// Received operands in one place each; store() combines them and stores the result.
class CombinedOperands final : public StagingBuffers {
 public:
  // Throws std::bad_alloc.
  CombinedOperands(const InterReduction& reduction, int operands, std::size_t place_bytes, bool overlaps,
                   MPI_Comm comm);
  std::byte* places() const { return places_.data(); }
  // Combines into the last place, and copies our part to the program's buffer.
  int store() override;

 private:
  const int operands_;
  const std::size_t place_bytes_, first_, count_;
  combining::Fold fold_;
  Packed result_;
  const memory::Temporary places_;
};

// The exchange of operands.
struct Reduced {
  PartnerData send;    // the whole vector to each partner, or one part
  PartnerData places;  // where operands are received, in bytes
  InterReduction reduction;
  int size, me;
  bool combines;  // false: the only operand is the result
  MPI_Comm comm;

  bool in_place() const { return false; }
  bool one_way() const { return reduction.root >= 0; }
  std::pair<std::size_t, std::size_t> most() const { return {reduction.gives ? size : 0, reduction.gets ? size : 0}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    return in_rotated_order(me, size, 0, [&](int to, int from) {
      const bool is_taker = reduction.gives && (reduction.root < 0 || to == reduction.root);
      return (!reduction.gets || visitor.receive(from, 0, places, from)) &&
             (!is_taker || visitor.send(to, 0, send, to));
    });
  }
  std::unique_ptr<StagingBuffers> rest(bool overlaps);
  // False: arguments that the host must judge.
  bool prepare(const Communicator& c, const InterReduction& given);
};

template <Collective collective, class When>
int reduce(const char* function, When when, Communicator& c, const InterReduction& reduction) {
  Reduced operation;
  return exchange(collective, function, c, when, operation, [&] { return operation.prepare(c, reduction); });
}

template <Collective collective, class When>
int reduction(const char* function, When when, Communicator& c, const void* send, void* recv, MPI_Count count,
              MPI_Datatype type, MPI_Op op, MPI_Comm) {
  if constexpr (collectives::operation(collective).scans()) {
    return when.at_host(collective, Reason::argument);  // there is none between groups
  } else {
    InterReduction given{const_cast<void*>(send), recv, count, type, op};
    given.in_blocks = collective == Collective::reduce_scatter_block;
    given.count = given.total;
    return reduce<collective>(function, when, c, given);
  }
}

template <Collective collective, class When>
int rooted_reduction(const char* function, When when, Communicator& c, const void* send, void* recv, MPI_Count count,
                     MPI_Datatype type, MPI_Op op, int root, MPI_Comm) {
  InterReduction given{const_cast<void*>(send), recv, count, type, op};
  given.count = given.total;
  given.gets = root == MPI_ROOT;
  given.gives = root != MPI_ROOT && root != MPI_PROC_NULL;
  given.root = !given.gives ? 0 : root < 0 ? INT_MAX : root;
  return reduce<collective>(function, when, c, given);
}

template <Collective collective, class When, class N>
int parted_reduction(const char* function, When when, Communicator& c, const void* send, void* recv, const N* counts,
                     MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return guarded(comm, function, [&]() -> int {
    int own = 1, me = 0;
    host.Comm_size(comm, &own);
    host.Comm_rank(comm, &me);
    Ends ends(own);
    if (!counts || !ends.fill(counts, own)) return when.at_host(collective, Reason::argument);
    InterReduction given{const_cast<void*>(send), recv, MPI_Count(ends.get()[own]), type, op};
    given.first = MPI_Count(ends.get()[me]);
    given.count = MPI_Count(counts[me]);
    return reduce<collective>(function, when, c, given);
  });
}

}  // namespace nearfield::mpi::intercomm
