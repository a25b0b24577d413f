// Maps the host's predefined datatypes and operators to the engine's. Any thread may look them up after bind_types(). A
// type's size is equal on all ranks, so decisions may depend on it (law 1 of docs/dev/architecture.md).
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
  bool fortran_integer;  // logical operators are not defined on it; the host decides
  MPI_Datatype handle;
};

// Builds the tables; call once, before any look-up.
void bind_types();

// nullptr: no predefined type, or one that we do not know.
const TypeInfo* find_type(MPI_Datatype type);
// For a predefined type that find_type does not know: Fortran's types of a given precision and range, and types that
// only one host has; we move their data, the host reduces them. nullptr: the type has gaps. Results are never freed.
const TypeInfo* find_other_type(MPI_Datatype type);

std::optional<reducing::Op> find_op(MPI_Op op);

// Incremented whenever a type is freed whose layout a thread may have cached (layouts.hpp).
inline constinit std::atomic<std::uint64_t> layout_epoch{1};
inline std::uint64_t types_epoch() { return layout_epoch.load(std::memory_order_acquire); }  // SYNC: types-epoch
// Called before the host frees a type, since its handle may be reused at once.
inline void types_gone() { layout_epoch.fetch_add(1, std::memory_order_acq_rel); }  // SYNC: types-epoch

// A committed type of ours with the layout of another type, which the program may free at any time. The other type may
// be an old type of a constructor, which need not be committed; hosts abort if they pack such a type. Unlike
// MPI_Type_dup this calls no callbacks of the program.
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
