#include "mpi/shim/packing.hpp"

#include <algorithm>

#include "mpi/shim/requests.hpp"

namespace nearfield::mpi {

void Packed::inspect() {
  layout_ = find_layout(type_);
  if (layout_) {
    element_ = layout_->size;
    bytes_ = count_ * element_;
    dense_ = layout_->view.dense();
    return;
  }
  MPI_Count bytes = 0;
  if (type_ == host.type_null || host.Type_size_x(type_, &bytes) != MPI_SUCCESS || bytes < 0) {
    error_ = -1;
    return;
  }
  element_ = std::size_t(bytes);
  bytes_ = count_ * element_;
}

int Packed::move(bool pack, std::size_t first, std::size_t count) {
  const std::size_t at = first * element_, bytes = count * element_;
  if (device_) {
    const bool moved = pack ? devices::gather(temporary_->data() + at, data(), at, bytes)
                            : devices::scatter(data(), at, temporary_->data() + at, bytes);
    return moved ? MPI_SUCCESS : raise_code(comm_, MPI_ERR_BUFFER);
  }
  if (layout_) {
    const layout::Data data = this->data();
    if (pack) layout::gather(temporary_->data() + at, data, at, bytes);
    else layout::scatter(data, at, temporary_->data() + at, bytes);
    return MPI_SUCCESS;
  }
  // MPI_Pack counts in int: pieces of at most a gibibyte.
  const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 30) / std::max<std::size_t>(element_, 1));
  MPI_Aint low = 0, extent = 0;
  if (int code = host.Type_get_extent(type_, &low, &extent); code != MPI_SUCCESS) return code;
  for (std::size_t at = first; at < first + count; at += step) {
    const std::size_t n = std::min(step, first + count - at);
    int position = 0;
    void* const user = const_cast<void*>(offset_by(buffer_, at * std::uintptr_t(extent)));
    std::byte* packed = temporary_->data() + at * element_;
    const int code = pack ? host.Pack(user, int(n), type_, packed, int(n * element_), &position, comm_)
                          : host.Unpack(packed, int(n * element_), &position, user, int(n), type_, comm_);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

std::byte* Packed::room() {
  if (dense_) return static_cast<std::byte*>(buffer_);
  if (!temporary_) temporary_.emplace(bytes_);
  return temporary_->data();
}

}  // namespace nearfield::mpi
