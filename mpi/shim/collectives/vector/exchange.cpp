#include "mpi/shim/collectives/vector/exchange.hpp"

#include "engine/base/out_of_memory.hpp"

namespace nearfield::mpi {

bool find_extent(MPI_Datatype type, MPI_Aint& extent) {
  if (const TypeInfo* info = find_type(type); info && info->dense) {
    extent = info->bytes;
    return true;
  }
  if (const auto layout = find_layout(type); layout && layout->described) {
    extent = layout->view.dense() ? MPI_Aint(layout->size) : MPI_Aint(layout->view.extent);
    return true;
  }
  MPI_Aint low = 0;
  return type != host.type_null && host.Type_get_extent(type, &low, &extent) == MPI_SUCCESS;
}

void count_exchange(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  *last_algorithm = "messages";
  if (counting()) [[unlikely]]
    count_call(collective, bytes, start);
}

// Prepares another start, which sends the data that the buffers hold now. Throws std::bad_alloc.
void Exchange::renew() {
  edges_.renew();
  if (in_place_) return copy_aside();
  for (const auto& copy : sent_) pack(*copy);
}

void Exchange::copy_aside() {
  for (const auto& copy : received_) pack(*copy);
  edges_.copy_aside();
}

void Exchange::pack(Packed& copy) {
  if (copy.pack_all() != MPI_SUCCESS) throw OutOfMemory();
}

int Exchange::post() {
  bool renewed = false;
  try {
    if (form_ == Form::persistent) renew();
    renewed = true;
    edges_.start();
  } catch (const OutOfMemory&) {
    if (!renewed) edges_.refuse();
    return MPI_ERR_NO_MEM;
  }
  posted_ = true;
  return MPI_SUCCESS;
}

int code_of_error(const messages::EdgeError& error) {
  if (error.kind == messages::ErrorKind::truncated) say_what_is_cut(error.partner, error.bytes, error.room);
  return code_of_error(error.kind);
}

int Exchange::store(const messages::EdgeError& error) {
  int code = code_of_error(error);
  for (const auto& copy : received_)
    if (code == MPI_SUCCESS) code = raised_by_host(copy->unpack_bytes(copy->bytes()));
  return code == MPI_SUCCESS && rest_ ? rest_->store() : code;
}

}  // namespace nearfield::mpi
