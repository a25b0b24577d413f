// Reductions whose operands only the host can combine: with the program's operators, or on types that our kernels do
// not know (logical operators on Fortran's integers). Operator and type, and whether the host accepts them, are equal
// on all ranks, so either all ranks do this or none does. The engine moves the operands as bytes. The host combines
// them by MPI_Reduce_local, on the caller's own stack, not on a fiber: operators may be written in Python.
//
//                 1. move operands                2. combine        3. move results
//   whole         all to each member that         all elements      -
//                 gets a result
//                 (gather, allgather, alltoall)
//   shares        share i to member i             its own share     shares to the members that get a result
//                 (alltoall)                                        (gather, allgather, alltoall)
//
// If members get parts of the result (Reduce_scatter), each part is padded to the longest. If the longest is most of
// the vector, the call is made in shares and all members get all shares.
//
// Operands lie side by side in rank order, in one place each (folding.hpp). Combining turns place r into the result for
// the operands of members 0 to r. So the last place holds the result of the reduction, place r that of member r's scan.
//
// Results are stored in the program's buffers only when all data have been moved; until then the host can take over.
#pragma once
#include <algorithm>

#include "engine/collectives/pieces/rounds.hpp"
#include "mpi/shim/collectives/engine/folding.hpp"
#include "mpi/shim/collectives/engine/form.hpp"

namespace nearfield::mpi::combining {

// Operands as the program gives them: `count` is that of its call.
struct Operands : ReductionArguments {
  const void* send;
  void* recv;
  int root = -1;                      // none
  const std::size_t* ends = nullptr;  // element indices: member r's part is [ends[r], ends[r + 1])
};

enum class Way : std::uint8_t { whole, shares };

// One call, in the steps above. pre: possible(), a communicator with a team.
class Combining {
 public:
  Combining(const Communicator& c, collectives::Collective collective, const Operands& given);
  // False: arguments that the host must judge.
  bool right() const { return right_; }
  collectives::Call whole() const;  // the call that the program has made

  // Step 1. Allocates room for packed operands and for all that is received; throws if memory is short.
  void prepare(Way way);
  // For a request, before prepare(): the program may free type, operator and communicator.
  void keep();
  // Packs the operands if necessary; called once for each start of the call. Returns an MPI error code.
  int load();
  collectives::Call exchange() const;
  // Step 2. Returns an MPI error code. Step 3 follows even after an error, since the other members wait for it.
  int fold();
  // Step 3. sharing() only if shares(), else nothing is left to move.
  bool shares() const { return way_ == Way::shares; }
  collectives::Call sharing() const;
  int store();

 private:
  using Collective = collectives::Collective;
  std::byte* place(int member) const { return places_->data() + lead_ + std::size_t(member) * place_bytes_; }
  int members() const;  // whose operands are ours to combine
  bool scans() const { return collectives::operation(collective_).scans(); }
  bool parted() const { return collective_ == Collective::reduce_scatter; }
  collectives::Slice part(int member) const;  // elements
  int pad_parts(std::byte* to);

  const Collective collective_;
  const int root_, me_, size_;
  const std::size_t* ends_;
  const bool gets_;
  std::size_t count_ = 0;  // elements of a vector or block
  Packed given_, result_;
  Fold fold_;
  bool right_ = true;
  std::size_t bytes_ = 0;

  Way way_ = Way::whole;
  std::size_t place_bytes_ = 0, lead_ = 0;
  std::size_t mine_ = 0;  // elements that this member combines
  const std::byte* from_ = nullptr;
  std::byte* into_ = nullptr;  // where step 3 receives
  std::optional<memory::Temporary> operands_, places_, gathered_;
  std::vector<std::size_t> kept_ends_;
};

// Serves a blocking call.
int combine(Communicator& c, collectives::Collective collective, const Operands& given, const char* function,
            FunctionRef<int()> host_call);
// An allreduce or a reduce on a communicator that has no team yet: the host gathers the operands.
int combine_by_host(Communicator& c, collectives::Collective collective, const Operands& given, const char* function,
                    FunctionRef<int()> host_call);

// The same for a call with a request: the thread that completes the request combines, on its own stack.
class CombiningBuffers final : public mpi::StagingBuffers {
 public:
  CombiningBuffers(const Communicator& c, collectives::Collective collective, const Operands& given)
      : work(c, collective, given) {}
  int fetch() override { return work.load(); }
  int store() override {
    const int code = work.fold();
    return code == MPI_SUCCESS ? work.store() : code;
  }
  Combining work;
};
template <class When>
int post(Communicator& c, collectives::Collective collective, const Operands& given, const char* function,
         const When& when) {
  return with_memory(c, function, [&]() -> int {
    auto buffers = std::make_unique<CombiningBuffers>(c, collective, given);
    Combining& work = buffers->work;
    if (!work.right()) return when.at_host(collective, Reason::argument);
    const collectives::Call whole = work.whole();
    if (whole.bytes == 0) return post_task(c, whole, function, nullptr, when, whole);
    work.keep();
    work.prepare(Way::whole);
    return post_task(c, work.exchange(), function, std::move(buffers), when, whole);
  });
}

}  // namespace nearfield::mpi::combining
