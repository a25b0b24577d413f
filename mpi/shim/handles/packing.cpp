// Elements are packed and unpacked by their layout, by a device's run-time, or by the host.
#include "mpi/shim/handles/packing.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

void Packed::inspect() {
  layout_ = find_layout(type_);
  if (!layout_) {
    error_ = -1;
    return;
  }
  element_ = layout_->size;
  dense_ = layout_->described && layout_->view.dense();
}

int Packed::move(bool pack, std::byte* packed, std::size_t first, std::size_t count) {
  const std::size_t at = first * element_, bytes = count * element_;
  if (device_) {
    const bool moved =
        pack ? devices::gather(packed, user_data(), at, bytes) : devices::scatter(user_data(), at, packed, bytes);
    return moved ? MPI_SUCCESS : raise_code(comm_, MPI_ERR_BUFFER);
  }
  if (!layout_ || layout_->described) {
    const layout::Data data = user_data();
    if (pack) layout::gather(packed, data, at, bytes);
    else layout::scatter(data, at, packed, bytes);
    return MPI_SUCCESS;
  }
  return move_by_host(pack, packed, first, count);
}

// In pieces of at most a gibibyte, or of one longer element, since MPI_Pack counts in int.
int Packed::move_by_host(bool pack, std::byte* packed, std::size_t first, std::size_t count) {
  constexpr std::size_t piece = std::size_t{1} << 30;
  const std::size_t step = std::max<std::size_t>(1, piece / std::max<std::size_t>(element_, 1));
  const bool large = element_ > INT_MAX;
  if (large && !(host.Pack_c && host.Unpack_c))
    return raise(raised_on(comm_), "packing", "an element of this datatype is longer than this MPI library can pack");
  MPI_Aint low = 0, extent = 0;
  if (int code = host.Type_get_extent(type_, &low, &extent); code != MPI_SUCCESS) return code;
  for (std::size_t at = first; at < first + count; at += step) {
    const std::size_t n = std::min(step, first + count - at), bytes = n * element_;
    void* const user = const_cast<void*>(offset_by(buffer_, at * std::uintptr_t(extent)));
    int code, position = 0;
    MPI_Count far = 0;
    if (large)
      code = pack ? host.Pack_c(user, MPI_Count(n), type_, packed, MPI_Count(bytes), &far, packs_on_)
                  : host.Unpack_c(packed, MPI_Count(bytes), &far, user, MPI_Count(n), type_, packs_on_);
    else
      code = pack ? host.Pack(user, int(n), type_, packed, int(bytes), &position, packs_on_)
                  : host.Unpack(packed, int(bytes), &position, user, int(n), type_, packs_on_);
    if (code != MPI_SUCCESS) return code;
    packed += bytes;
  }
  return MPI_SUCCESS;
}

int Packed::fit(std::size_t blocks, std::size_t length) {
  const std::size_t theirs = bytes_ / blocks;
  if (bytes_ && !room()) return MPI_ERR_NO_MEM;
  if (const int code = pack_all(); code != MPI_SUCCESS) return code;
  memory::Temporary fitted(blocks * length);
  if (!fitted.data()) return MPI_ERR_NO_MEM;
  std::memset(fitted.data(), 0, blocks * length);
  for (std::size_t i = 0; bytes_ && i < blocks; ++i)
    std::memcpy(fitted.data() + i * length, room() + i * theirs, std::min(theirs, length));
  temporary_.emplace(std::move(fitted));
  layout_.reset();
  count_ = bytes_ = blocks * length;
  element_ = 1;
  dense_ = device_ = false;
  fitted_ = true;
  return MPI_SUCCESS;
}

int Packed::unpack_bytes(std::size_t bytes) {
  bytes = std::min(bytes, bytes_);
  if (dense_ || bytes == 0) return MPI_SUCCESS;
  if (device_)
    return devices::scatter(user_data(), 0, temporary_->data(), bytes) ? MPI_SUCCESS
                                                                       : raise_code(comm_, MPI_ERR_BUFFER);
  if (layout_->described) {
    layout::scatter(user_data(), 0, temporary_->data(), bytes);
    return MPI_SUCCESS;
  }
  const std::size_t whole = bytes / element_, rest = bytes % element_;
  if (const int code = unpack(0, whole); code != MPI_SUCCESS || rest == 0) return code;
  // Bytes of the last element that were not received keep their values.
  std::byte* const last = temporary_->data() + whole * element_;
  const memory::Temporary got(rest);
  if (!got.data()) return raise(raised_on(comm_), "unpacking", "out of memory for the last element");
  std::memcpy(got.data(), last, rest);
  if (const int code = pack(whole, 1); code != MPI_SUCCESS) return code;
  std::memcpy(last, got.data(), rest);
  return unpack(whole, 1);
}

void Packed::keep_type() {
  packs_on_ = host.self;  // the program may free its communicator before the request is complete
  struct Kept {
    Kept(std::shared_ptr<const TypeLayout> of, MPI_Datatype type) : layout(std::move(of)), type(type) {}
    const std::shared_ptr<const TypeLayout> layout;
    const Committed type;
  };
  if (!layout_ || layout_->described) return;
  const auto kept = std::make_shared<const Kept>(layout_, type_);
  if (kept->type.good()) type_ = kept->type.type();
  layout_ = {kept, kept->layout.get()};  // holds both
}

std::byte* Packed::room() {
  if (dense_) return static_cast<std::byte*>(buffer_);
  if (!temporary_) temporary_.emplace(bytes_);
  return temporary_->data();
}

layout::Data Packed::data() {
  std::byte* const at = room();
  if (!at && bytes_) throw OutOfMemory();
  return {at, bytes_, {}};
}

}  // namespace nearfield::mpi
