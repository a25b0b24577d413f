#include "mpi/shim/communicators/host_transport.hpp"

#include <climits>

#include "mpi/shim/communicators/bootstrap.hpp"

namespace nearfield::mpi {

using hierarchy::LaneTransfer;
using hierarchy::Move;

HostTransport::HostTransport(MPI_Comm comm, MPI_Comm within, const hierarchy::Placement& placement, int rank)
    : comm_(comm),
      within_(within),
      placement_(placement),
      rank_(rank),
      lanes_(std::size_t(placement.most()), host.comm_null),
      open_(std::size_t(placement.most())),
      counts_(2 * std::size_t(placement.size()) * sizeof(MPI_Count)) {
  const auto most = std::size_t(std::max(placement.nodes(), placement.most()));
  for (Slot& slot : slots_)
    for (Amounts* const amounts : {&slot.from, &slot.into}) {
      amounts->bytes.reserve(most);
      amounts->at.reserve(most);
      if (longest() == INT_MAX) continue;
      amounts->many.reserve(most);
      amounts->far.reserve(most);
    }
}

// After MPI_Finalize communicators can no longer be freed.
HostTransport::~HostTransport() {
  if (!process()) return;
  for (MPI_Comm& lane : lanes_)
    if (lane != host.comm_null) host.Comm_free(&lane);
  if (within_ != host.comm_null) host.Comm_free(&within_);
}

std::size_t HostTransport::longest() const { return host.Iallgatherv_c && host.Ialltoallv_c ? SIZE_MAX / 2 : INT_MAX; }

// If all nodes have the same number of ranks, every rank is in one lane, and one call makes all lanes. The call blocks
// in the host, but only after all_and() has returned: then all ranks are in this call, so none needs our progress.
void HostTransport::open(int lane) {
  const auto number = std::size_t(lane);
  if (open_[number]) return;
  const int node = placement_.node_of(rank_), local = placement_.local_of(rank_);
  HostBootstrap(comm_).all_and(1);
  MPI_Comm made = host.comm_null;
  const bool equal = placement_.equal(), in = equal || placement_.in_lane(lane, node) == local;
  if (host.Comm_split(comm_, in ? equal ? local : 0 : MPI_UNDEFINED, node, &made) != MPI_SUCCESS)
    throw team::Broken("the host failed to create a communicator of one rank of each node");
  if (equal) open_.assign(open_.size(), true);
  open_[number] = true;
  lanes_[equal ? std::size_t(local) : number] = made;
}

void HostTransport::Amounts::set(const hierarchy::MemberParts& parts, bool large) {
  bytes.clear();
  at.clear();
  many.clear();
  far.clear();
  for (std::size_t i = 0; i < parts.bytes.size(); ++i) {
    if (large) {
      many.push_back(MPI_Count(parts.bytes[i]));
      far.push_back(MPI_Aint(parts.at[i]));
    } else {
      bytes.push_back(int(parts.bytes[i]));
      at.push_back(int(parts.at[i]));
    }
  }
}

namespace {
bool is_long(const hierarchy::MemberParts& parts) {
  for (std::size_t i = 0; i < parts.bytes.size(); ++i)
    if (parts.at[i] + parts.bytes[i] > INT_MAX) return true;
  return false;
}
}  // namespace

void HostTransport::start(unsigned slot, int lane, const LaneTransfer& t) {
  Slot& s = slots_[slot];
  const MPI_Comm comm = lane == within_node ? within_ : lanes_[std::size_t(lane)];
  const auto me = std::size_t(lane == within_node ? placement_.local_of(rank_) : placement_.node_of(rank_));
  const bool large = t.bytes > INT_MAX || is_long(t.from) || is_long(t.into), root = int(me) == t.root;
  s.from.set(t.from, large);
  s.into.set(t.into, large);
  // Blocks that lie in place already.
  const bool in_place = t.into.buffer && !t.into.at.empty() && t.one == t.into.buffer + t.into.at[me];
  const bool stays = t.from.buffer && !t.from.at.empty() && t.to == t.from.buffer + t.from.at[me];
  const void* const one = in_place ? MPI_IN_PLACE : t.one;
  void* const to = stays ? MPI_IN_PLACE : t.to;
  const MPI_Datatype byte = host.byte;
  auto call = [&](MPI_Request* request, auto bytes, auto& from, auto& from_at, auto& into, auto& into_at, auto bcast,
                  auto gather, auto scatter, auto allgather, auto alltoall) -> int {
    switch (t.move) {
      case Move::barrier: return host.Ibarrier(comm, request);
      case Move::bcast: return bcast(t.to, bytes, byte, t.root, comm, request);
      case Move::gather:
        return gather(root ? one : t.one, bytes, byte, t.into.buffer, into.data(), into_at.data(), byte, t.root, comm,
                      request);
      case Move::scatter:
        return scatter(t.from.buffer, from.data(), from_at.data(), byte, root ? to : t.to, bytes, byte, t.root, comm,
                       request);
      case Move::allgather:
        return allgather(one, bytes, byte, t.into.buffer, into.data(), into_at.data(), byte, comm, request);
      case Move::alltoall:
        return alltoall(t.from.buffer, from.data(), from_at.data(), byte, t.into.buffer, into.data(), into_at.data(),
                        byte, comm, request);
    }
    return MPI_ERR_OTHER;
  };
  const int code = start(slot, [&](MPI_Request* request) -> int {
    return large ? call(request, MPI_Count(t.bytes), s.from.many, s.from.far, s.into.many, s.into.far, host.Ibcast_c,
                        host.Igatherv_c, host.Iscatterv_c, host.Iallgatherv_c, host.Ialltoallv_c)
                 : call(request, int(t.bytes), s.from.bytes, s.from.at, s.into.bytes, s.into.at, host.Ibcast,
                        host.Igatherv, host.Iscatterv, host.Iallgatherv, host.Ialltoallv);
  });
  if (code != MPI_SUCCESS) throw team::Broken("the host failed to move a part of a collective to other nodes");
}

int HostTransport::start(unsigned slot, FunctionRef<int(MPI_Request*)> call) {
  const int code = call(&slots_[slot].request);
  if (code != MPI_SUCCESS) return code;
  slots_[slot].busy = true;
  transfers_under_way.fetch_add(1, std::memory_order_relaxed);
  return code;
}

bool HostTransport::done(unsigned slot) {
  Slot& s = slots_[slot];
  if (!s.busy) return true;
  if (revoked(comm_)) [[unlikely]]
    throw team::Revoked("the communicator has been revoked");
  int flag = 0;
  if (host.Test(&s.request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    s.busy = false;
    transfers_under_way.fetch_sub(1, std::memory_order_relaxed);
    throw team::Broken("the host failed to move a part of a collective to other nodes");
  }
  if (!flag) {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_any_source();  // the others may wait for a rank that sends to us
    return false;
  }
  s.busy = false;
  transfers_under_way.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

}  // namespace nearfield::mpi
