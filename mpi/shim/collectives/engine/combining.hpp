// Reductions that only the host can combine: operators of the program's, and predefined ones on types that our kernels
// do not know (logical operators on Fortran's integers). Operator and type are the same on all ranks, and so is what
// their hosts say of them: all take this road or none. Bytes are moved by the engine, the host combines by
// MPI_Reduce_local, on the caller's own stack: operators may be written in Python.
//
//                 1. operands                     2. fold           3. results
//   whole         all to whoever combines         all of it         -
//                 (gather, allgather, alltoall)
//   shares        share i to member i             its own share     shares to whoever gets them
//                 (alltoall)                                        (gather, allgather, alltoall)
//
// Of parts that members get whole, each is padded to the longest; where one of them is most of the vector, all members
// get all shares.
//
// Operands lie side by side in rank order, one place each (folding.hpp): place r becomes what members 0 to r have
// given. So the last place holds the result, and place r that of member r's scan.
//
// Nothing is stored for the program before all has been moved, so that until then the host can still take the call.
#pragma once
#include <algorithm>

#include "engine/collectives/pieces/rounds.hpp"
#include "mpi/shim/collectives/engine/folding.hpp"
#include "mpi/shim/collectives/engine/form.hpp"

namespace nearfield::mpi::combining {

// As the program gives them; `count` as its call counts.
struct Operands : ReductionArguments {
  const void* send;
  void* recv;
  int root = -1;  // none
  const std::size_t* ends =
      nullptr;  // of parts, elements; each member's begins where the one before ends, the first at 0
};

enum class Way : std::uint8_t { whole, shares };

// One call, in the steps above. pre: possible(), a communicator with a team.
class Combining {
 public:
  Combining(const Communicator& c, collectives::Collective collective, const Operands& given);
  // False: arguments that the host must judge.
  bool right() const { return right_; }
  collectives::Call whole() const;  // as the program has made it

  // 1. Room for what has to be packed, and for all that comes; throws without memory.
  void prepare(Way way);
  // For a request: the program may free type, operator and communicator. Before prepare().
  void keep();
  // Packs what has to be, once more for each start. An MPI error code.
  int load();
  collectives::Call exchange() const;
  // 2. An MPI error code. The others wait for the third step whatever it is.
  int fold();
  // 3. In shares; else nothing is left to move.
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
  std::byte* into_ = nullptr;  // of the third step
  std::optional<memory::Temporary> operands_, places_, gathered_;
  std::vector<std::size_t> kept_ends_;
};

// The whole of a blocking call.
int combine(Communicator& c, collectives::Collective collective, const Operands& given, const char* function,
            FunctionRef<int()> host_call);
// An allreduce or a reduce on a communicator that has no team yet: the host hands operands round.
int combine_by_host(Communicator& c, collectives::Collective collective, const Operands& given, const char* function,
                    FunctionRef<int()> host_call);

// The same as a request: all is combined by whoever completes it, on its own stack.
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
