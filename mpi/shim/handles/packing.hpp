// Data of a derived type, or in device memory, as contiguous bytes in ordinary memory. Only the rank itself knows
// whether its type is derived, so such calls cannot simply go to the host: the rank packs into a pooled buffer and
// takes part like all others. Messages are packed only if the messenger cannot address the data: data of types with too
// many runs, and data in device memory. A Packed belongs to one call or one request.
#pragma once
#include <memory>
#include <optional>

#include "engine/memory/temporaries.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/handles/layouts.hpp"

namespace nearfield::mpi {

// Arithmetic on integers: a buffer may be MPI_BOTTOM, a null pointer in every ABI, and extents may be negative.
inline const void* offset_by(const void* buffer, std::uintptr_t bytes) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(buffer) + bytes);
}

// A view of `count` elements of `type` at `buffer`.
class Packed {
 public:
  // error(): 0, or -1 for arguments that the host must judge.
  template <class Count>
  Packed(void* buffer, Count count, MPI_Datatype type, MPI_Comm comm)
      : buffer_(buffer), count_(std::size_t(count)), type_(type), comm_(comm), packs_on_(comm) {
    if (count < 0) {
      error_ = -1;
      return;
    }
    const TypeInfo* const info = find_type(type);
    if (info && info->dense) {
      dense_ = true;
      element_ = info->bytes;
    } else {
      inspect();
    }
    if (__builtin_mul_overflow(count_, element_, &bytes_)) error_ = -1;
    if (bytes_ && (buffer == MPI_IN_PLACE || (dense_ && !buffer))) error_ = -1;
    if (!error_ && devices::possible() && bytes_ && (dense_ || layout_->described) && devices::is_device(user_data()))
        [[unlikely]] {
      device_ = true;
      dense_ = false;
    }
  }
  int error() const { return error_; }
  std::size_t bytes() const { return bytes_; }  // of the type signature: equal on all ranks that take part
  bool dense() const { return dense_; }

  // Room for all bytes: the buffer itself where it is dense. nullptr without memory.
  std::byte* room();
  // Keeps the type for a request, since the program may free type and communicator before it completes.
  void keep_type();
  // Copy elements [first, first + count) from the user's buffer into room(), and back. Return an MPI error code, here
  // and below, which has been raised (raised_by_host).
  int pack(std::size_t first, std::size_t count) {
    return dense_ || fitted_ ? MPI_SUCCESS : move(true, temporary_->data() + first * element_, first, count);
  }
  int unpack(std::size_t first, std::size_t count) {
    return dense_ ? MPI_SUCCESS : move(false, temporary_->data() + first * element_, first, count);
  }
  // The same with packed bytes elsewhere, those of element `first` at their start.
  int load(std::byte* packed, std::size_t first, std::size_t count) { return move(true, packed, first, count); }
  int store(const std::byte* packed, std::size_t first, std::size_t count) {
    return move(false, const_cast<std::byte*>(packed), first, count);
  }
  std::size_t element() const { return element_; }  // bytes
  // Returns whether packed elements have the same layout as in memory, be it ordinary or device memory.
  bool as_packed() const { return !layout_ || (layout_->described && layout_->view.dense()); }
  // Returns all elements with their layout, if it has gaps and this process can copy them; else nothing.
  std::optional<layout::Data> with_gaps() const {
    if (dense_ || device_ || !layout_ || !layout_->described) return std::nullopt;
    return user_data();
  }
  // Returns all of it as data of a message, to be packed by pack_all() before a send. Throws without memory.
  layout::Data data();
  int pack_all() { return pack(0, count_); }
  // Makes it a packed copy of `blocks` blocks, at least one, each cut or filled up to `length` bytes. Returns an MPI
  // error code.
  int fit(std::size_t blocks, std::size_t length);
  // Unpacks the first `bytes` bytes, at most all: a message may be shorter than its receive, and end within an element.
  int unpack_bytes(std::size_t bytes);

 private:
  void inspect();
  // pre: the type is dense or described.
  layout::Data user_data() const {
    return {static_cast<std::byte*>(buffer_), bytes_, layout_ ? layout_->view : layout::View{}};
  }
  int move(bool pack, std::byte* packed, std::size_t first, std::size_t count);
  int move_by_host(bool pack, std::byte* packed, std::size_t first, std::size_t count);
  void* buffer_;
  std::size_t count_, bytes_ = 0, element_ = 0;
  MPI_Datatype type_;
  const MPI_Comm comm_;  // on which errors are raised (raised_on)
  MPI_Comm packs_on_;    // argument of the host's MPI_Pack
  bool dense_ = false;
  bool device_ = false;  // memory that only its run-time can copy
  bool fitted_ = false;  // temporary_ holds the blocks that fit() has made
  int error_ = 0;
  std::shared_ptr<const TypeLayout> layout_;  // of derived types
  std::optional<memory::Temporary> temporary_;
};

// Makes a packed copy of data that the messenger cannot address, and lets `typed` describe the copy. Returns nullptr if
// the messenger can address the data. `keeps`: the copy belongs to a request. Throws std::bad_alloc.
template <class Count>
std::unique_ptr<Packed> packed_copy(TypedData& typed, const void* buffer, Count count, MPI_Datatype type, MPI_Comm comm,
                                    bool keeps = false) {
  if (!typed.packs() && !(devices::possible() && devices::is_device(typed.data))) [[likely]]
    return nullptr;
  auto packed = std::make_unique<Packed>(const_cast<void*>(buffer), count, type, comm);
  if (keeps) packed->keep_type();
  typed.data = packed->data();
  return packed;
}

}  // namespace nearfield::mpi
