// Combines operands that lie side by side, on the caller's own stack: by a kernel of ours where there is one for type
// and operator, else by the host's MPI_Reduce_local (operators may be written in Python). From left to right, always.
//
//   places   | 0 | 1 | 2 | ...   packed bytes, one place for each operand, in rank order
//
// Operators see elements as they lie in the program's memory: where packed bytes do not, each operand is unpacked
// first.
#pragma once
#include <memory>
#include <optional>

#include "engine/reducing/fold.hpp"
#include "mpi/shim/handles/in_use.hpp"
#include "mpi/shim/handles/packing.hpp"

namespace nearfield::mpi::combining {

// Returns whether the host's MPI_Reduce_local accepts the two; asked without elements, which calls no operator of the
// program's. `layout`: of the type, none where it is predefined and dense.
bool host_combines(MPI_Op op, MPI_Datatype type, const std::shared_ptr<const TypeLayout>& layout);
// The same of any handle.
bool possible(MPI_Datatype type, MPI_Op op);

// pre: possible().
class Fold {
 public:
  Fold(MPI_Datatype type, MPI_Op op, MPI_Comm comm);
  // For a request: the program may free type, operator and communicator. Throws std::bad_alloc.
  void keep();
  std::size_t element() const { return as_packed_.element(); }  // packed bytes

  // Of each of n places, `place_bytes` apart, the first `count` elements: the last place gets what all of them make,
  // or, with `prefixes`, each what it and those before it make. An MPI error code. Throws std::bad_alloc.
  int combine(std::byte* places, std::size_t place_bytes, int n, std::size_t count, bool prefixes) const;

 private:
  struct Laid;  // elements as an operator sees them
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
