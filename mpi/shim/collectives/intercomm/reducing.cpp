#include "mpi/shim/collectives/intercomm/reducing.hpp"

#include "engine/base/out_of_memory.hpp"

namespace nearfield::mpi::intercomm {

CombinedOperands::CombinedOperands(const InterReduction& reduction, int operands, std::size_t place_bytes,
                                   bool overlaps, MPI_Comm comm)
    : operands_(operands),
      place_bytes_(place_bytes),
      first_(std::size_t(reduction.first)),
      count_(std::size_t(reduction.count)),
      fold_(reduction.type, reduction.op, comm),
      result_(reduction.recv, reduction.count, reduction.type, comm),
      places_(std::size_t(operands) * place_bytes) {
  if (!places_.data()) throw OutOfMemory();
  if (!overlaps) return;
  fold_.keep();
  result_.keep_type();
}

int CombinedOperands::store() {
  std::byte* const from = places() + first_ * fold_.element();
  const int code = fold_.combine(from, place_bytes_, operands_, count_, false);
  if (code != MPI_SUCCESS) return code;
  return result_.store(from + std::size_t(operands_ - 1) * place_bytes_, 0, count_);
}

bool Reduced::prepare(const Communicator& c, const InterReduction& given) {
  reduction = given;
  size = c.size;
  me = c.rank;
  comm = c.comm;
  if (given.gives && given.root >= size) return false;
  if (!given.gives && !given.gets) return true;
  int own = 1;
  if (given.in_blocks && (host.Comm_size(comm, &own) != MPI_SUCCESS ||
                          __builtin_mul_overflow(given.count, MPI_Count(own), &reduction.total)))
    return false;
  send = PartnerData::cut(given.send, reduction.total, given.type, given.in_blocks ? size : 1);
  if (given.gives && (given.send == MPI_IN_PLACE || !send.prepare())) return false;
  if (!combining::possible(given.type, given.op)) return false;
  if (!given.gets) return true;
  const Packed result(given.recv, given.count, given.type, comm);
  if (given.recv == MPI_IN_PLACE || given.total < 0 || result.error()) return false;
  const MPI_Count comes = given.in_blocks ? given.count : given.total;
  combines = size > 1 || comes != given.count;
  places = PartnerData::blocks(given.recv, comes, given.type);
  if (!combines) return true;
  MPI_Count bytes = 0;
  if (__builtin_mul_overflow(comes, MPI_Count(result.element()), &bytes)) return false;
  places = PartnerData::blocks(nullptr, bytes, host.byte);
  return true;
}

std::unique_ptr<StagingBuffers> Reduced::rest(bool overlaps) {
  if (!reduction.gets || !combines || places.each() == 0) return nullptr;
  auto combined = std::make_unique<CombinedOperands>(reduction, size, std::size_t(places.each()), overlaps, comm);
  places = PartnerData::blocks(combined->places(), places.each(), host.byte);
  return combined;
}

}  // namespace nearfield::mpi::intercomm
