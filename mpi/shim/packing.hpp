// Data of a derived type as contiguous bytes. Whether a rank's type is derived is known to that rank only, so such
// calls cannot simply go to the host: the rank packs into a pooled buffer and takes part like everybody else.
#pragma once
#include <optional>

#include "engine/memory/temporaries.hpp"
#include "mpi/shim/devices.hpp"
#include "mpi/shim/layouts.hpp"

namespace nearfield::mpi {

// Arithmetic on integers: a buffer may be MPI_BOTTOM, a null pointer in every ABI, and extents may be negative.
inline const void* offset_by(const void* buffer, std::uintptr_t bytes) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(buffer) + bytes);
}

// A view of `count` elements of `type` at `buffer`.
class Packed {
 public:
  // error(): 0, an MPI error code that the host has raised already, or -1 for arguments that the host must judge.
  template <class Count>
  Packed(void* buffer, Count count, MPI_Datatype type, MPI_Comm comm)
      : buffer_(buffer), count_(std::size_t(count)), type_(type), comm_(comm) {
    if (count < 0) {
      error_ = -1;
      return;
    }
    if (const TypeInfo* info = find_type(type)) {
      bytes_ = std::size_t(count) * info->bytes;
      dense_ = info->dense;
      element_ = info->bytes;
    } else {
      inspect();
    }
    if (dense_ && bytes_ && !buffer) error_ = -1;
    if (!error_ && devices::possible() && bytes_ && (dense_ || layout_) && devices::is_device(data())) [[unlikely]] {
      device_ = true;
      dense_ = false;
    }
  }
  int error() const { return error_; }
  std::size_t bytes() const { return bytes_; }  // of the type signature: equal on all ranks that take part
  bool dense() const { return dense_; }

  // Room for all bytes: the buffer itself where it is dense. nullptr without memory.
  std::byte* room();
  // Elements [first, first + count) from the user's buffer into room(), and back. An MPI error code.
  int pack(std::size_t first, std::size_t count) { return dense_ ? MPI_SUCCESS : move(true, first, count); }
  int unpack(std::size_t first, std::size_t count) { return dense_ ? MPI_SUCCESS : move(false, first, count); }

 private:
  void inspect();
  layout::Data data() const {
    return {static_cast<std::byte*>(buffer_), bytes_, layout_ ? layout_->view : layout::View{}};
  }
  int move(bool pack, std::size_t first, std::size_t count);
  void* buffer_;
  std::size_t count_, bytes_ = 0, element_ = 0;
  MPI_Datatype type_;
  MPI_Comm comm_;
  bool dense_ = false;
  bool device_ = false;  // memory that only its run-time can copy
  int error_ = 0;
  std::shared_ptr<const TypeLayout> layout_;  // where it is known; else the host packs
  std::optional<memory::Temporary> temporary_;
};

}  // namespace nearfield::mpi
