// Combines operands that lie side by side, from left to right, on the caller's own stack: with a kernel of ours if
// there is one for type and operator, else with the host's MPI_Reduce_local (operators may be written in Python).
//
//   places   | 0 | 1 | 2 | ...   packed bytes, one place for each operand, in rank order
//
// Operators get elements in the layout that they have in the program's memory. If packed bytes have another layout,
// each operand is unpacked first.
#pragma once
#include <memory>
#include <optional>

#include "engine/reducing/fold.hpp"
#include "mpi/shim/handles/in_use.hpp"
#include "mpi/shim/handles/packing.hpp"

namespace nearfield::mpi::combining {

// Returns whether the host's MPI_Reduce_local accepts operator and type. We call it with no elements, so it does not
// call an operator of the program's. `layout`: that of the type; nullptr if the type is predefined and dense.
bool host_combines(MPI_Op op, MPI_Datatype type, const std::shared_ptr<const TypeLayout>& layout);
// The same for any two handles.
bool possible(MPI_Datatype type, MPI_Op op);

// pre: possible().
class Fold {
 public:
  Fold(MPI_Datatype type, MPI_Op op, MPI_Comm comm);
  // For a request: the program may free type, operator and communicator. Throws std::bad_alloc.
  void keep();
  std::size_t element() const { return as_packed_.element(); }  // packed bytes

  // Combines the first `count` elements of n places, `place_bytes` apart. The last place gets the result of all; with
  // `prefixes` each gets that of itself and those before it. Returns an MPI error code. Throws std::bad_alloc.
  int combine(std::byte* places, std::size_t place_bytes, int n, std::size_t count, bool prefixes) const;

 private:
  struct Laid;  // elements with the layout that operators expect
  int combine_laid(std::byte* places, std::size_t place_bytes, int n, std::size_t count, bool prefixes) const;
  int reduce_local(const void* in, void* inout, std::size_t count) const {
    return host.Reduce_local(in, inout, int(count), type_, op_);
  }
  std::size_t piece() const;

  const MPI_Datatype type_;
  const MPI_Op op_;
  MPI_Comm comm_;
  const Packed as_packed_;  // no elements
  reducing::FoldFn kernel_ = nullptr;
  std::optional<InUse<Datatype>> kept_type_;
  std::optional<InUse<Operator>> kept_op_;
};

}  // namespace nearfield::mpi::combining
