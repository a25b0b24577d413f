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

bool Exchange::send(int partner, int tag, const PartnerData& data, int k) {
  // Many partners may get the same data, which are described and packed once.
  const auto what = std::tuple{data.address(k), data.count(k), data.type(k)};
  if (!edges_.sends.empty() && what == last_sent_) {
    edges_.sends.push_back({partner, tag, edges_.sends.back().data});
    return true;
  }
  last_sent_ = what;
  return add(sent_, edges_.sends, true, partner, tag, data, k);
}

bool Exchange::add(Copies& copies, std::pmr::vector<messages::Edge>& edges, bool sends, int partner, int tag,
                   const PartnerData& data, int k) {
  const MPI_Count count = data.count(k);
  messages::Edge edge{partner, tag, {}};
  if (count < 0 || (count && data.address(k) == MPI_IN_PLACE)) return false;
  if (count) {
    TypedData typed(data.address(k), count, data.type(k));
    if (!typed.good) return false;
    auto packed = packed_copy(typed, data.address(k), count, data.type(k), comm_, overlaps_);
    if (packed && sends) pack(*packed);
    if (packed) copies.push_back(std::move(packed));
    if (typed.layout) layouts_.push_back(std::move(typed.layout));
    edge.data = typed.data;
  }
  edges.push_back(edge);
  return true;
}

void Filled::look(int partner, int tag, const PartnerData& data, int k) {
  MPI_Count size = 0;
  if (data.count(k) > 0 && host.Type_size_x(data.type(k), &size) == MPI_SUCCESS && size > 0) visit(partner, tag);
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
