// From the host's predefined datatypes and operators to the engine's. Any thread may look, once bind_types() has
// returned. A type's size is equal on all ranks, so what is carried follows from it (law 1 of docs/architecture.md).
#pragma once
#include <atomic>
#include <cstddef>
#include <optional>

#include "engine/reducing/fold.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

struct TypeInfo {
  reducing::Type type;   // none: not reducible here
  std::uint32_t bytes;   // size of the type signature
  bool dense;            // an array of them has no gaps and needs no packing
  bool fortran_integer;  // logical operators are not defined on it; what a host makes of them is its business
  MPI_Datatype handle;
};

// Builds the tables; call once, before any look-up.
void bind_types();

// nullptr for everything that is not a predefined type that we know.
const TypeInfo* find_type(MPI_Datatype type);
// Of a predefined type that find_type does not know: Fortran's parameterised kinds, and types of one host, which are
// moved, and combined by the host. nullptr: it has gaps. Such types are never freed, nor is this.
const TypeInfo* find_other_type(MPI_Datatype type);

std::optional<reducing::Op> find_op(MPI_Op op);

// Raised whenever a type goes whose layout a thread may have at hand (layouts.hpp); pairs with types_gone.
extern std::atomic<std::uint64_t> layout_epoch;
inline std::uint64_t types_epoch() { return layout_epoch.load(std::memory_order_acquire); }
// Before the host frees a type: its handle may be another's at once.
inline void types_gone() { layout_epoch.fetch_add(1, std::memory_order_acq_rel); }

// A committed type of ours with the layout of another: what that was constructed from need not be committed, and hosts
// abort when they are asked to pack such a type; and the program may free it at any time. No callback of the program's
// is called, as MPI_Type_dup would.
class Committed {
 public:
  explicit Committed(MPI_Datatype type) {
    good_ = host.Type_contiguous(1, type, &type_) == MPI_SUCCESS && host.Type_commit(&type_) == MPI_SUCCESS;
  }
  ~Committed() {
    if (!good_) return;
    types_gone();
    host.Type_free(&type_);
  }
  Committed(const Committed&) = delete;
  bool good() const { return good_; }
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_;
  bool good_;
};

}  // namespace nearfield::mpi
