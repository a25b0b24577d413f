#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

const char* name(Collective collective) noexcept {
  static constexpr const char* names[] = {"barrier",  "bcast",  "reduce",  "allreduce",           "allgather",
                                          "alltoall", "gather", "scatter", "reduce_scatter_block"};
  static_assert(sizeof names / sizeof *names == collective_count);
  return collective < Collective::count ? names[std::size_t(collective)] : "unknown";
}

namespace {

using Buffer = team::Track::Buffer;

// What peers may have to load of ours, and to store. `own`: also what only the root itself needs of its own.
Buffer sent(const team::Track& track, const Call& call, bool own) {
  const bool root = track.rank() == call.root;
  const std::size_t all = call.bytes * std::size_t(track.size());
  void* const at = const_cast<void*>(call.send);
  switch (call.collective) {
    case Collective::bcast: return {at, root ? call.bytes : 0};
    case Collective::scatter: return {at, root ? all : 0};
    case Collective::gather: return {at, root && !own ? 0 : call.bytes};
    case Collective::alltoall:
    case Collective::reduce_scatter_block: return {at, all};
    default: return {at, call.bytes};
  }
}

Buffer received(const team::Track& track, const Call& call, bool own) {
  const bool root = track.rank() == call.root;
  const std::size_t all = call.bytes * std::size_t(track.size());
  switch (call.collective) {
    case Collective::bcast: return {call.recv, root ? 0 : call.bytes};
    case Collective::scatter: return {call.recv, root && !own ? 0 : call.bytes};
    case Collective::gather: return {call.recv, root ? all : 0};
    case Collective::reduce: return {call.recv, root ? call.bytes : 0};
    case Collective::allgather:
    case Collective::alltoall: return {call.recv, all};
    default: return {call.recv, call.bytes};
  }
}

// Whether this root's own block needs no copy: peers then leave it more of theirs.
bool in_place_at_root(const team::Track& track, const Call& call) {
  if (track.rank() != call.root) return false;
  const std::size_t own = call.bytes * std::size_t(call.root);
  if (call.collective == Collective::gather) return call.send == static_cast<std::byte*>(call.recv) + own;
  return call.collective == Collective::scatter && call.recv == static_cast<const std::byte*>(call.send) + own;
}

// Parts worth the trouble of sharing them out, some to every CPU.
std::size_t parts_of(const team::Track& track, const Call& call) {
  constexpr std::size_t least = 64 << 10;  // bytes of one part
  const auto p = std::size_t(track.size());
  const std::size_t blocks =
      call.collective == Collective::allgather || call.collective == Collective::alltoall ? p : 1;
  const auto cpus = std::size_t(double(p) / track.shape().ranks_per_cpu + 0.5);
  return std::clamp<std::size_t>(call.bytes * p * blocks / least, 1, std::min(p, 4 * std::max<std::size_t>(cpus, 1)));
}

}  // namespace

bool run(team::Track& track, const Algorithm& algorithm, const Call& call) {
  if (algorithm.reach == staged) {
    algorithm.run(track, call);
    return true;
  }
  Buffer send = sent(track, call, algorithm.share), recv = received(track, call, algorithm.share);
  if (!(algorithm.reach & send_buffers)) send.bytes = 0;
  if (!(algorithm.reach & recv_buffers)) recv.bytes = 0;
  const struct Exposed {
    team::Track& track;
    ~Exposed() { track.end_exposure(); }
  } exposed{track};
  if (algorithm.share) {
    const std::size_t parts = parts_of(track, call);
    const auto work = [&](std::size_t part) {
      const Range ranks = share(std::size_t(track.size()), parts, part);
      algorithm.share(track, call, int(ranks.begin), int(ranks.end));
    };
    // By reference: nothing is allocated, which could fail here alone.
    return track.work_exposed(send, recv, in_place_at_root(track, call), parts, std::ref(work));
  }
  if (!track.meet_exposed(send, recv, in_place_at_root(track, call))) return false;
  algorithm.run(track, call);
  return true;
}

std::span<const Algorithm> algorithms(Collective collective) {
  using Rows = std::span<const Algorithm> (*)();
  static constexpr Rows rows[] = {barrier_rows,  bcast_rows,  reduce_rows,  allreduce_rows,           allgather_rows,
                                  alltoall_rows, gather_rows, scatter_rows, reduce_scatter_block_rows};
  static_assert(sizeof rows / sizeof *rows == collective_count);
  return rows[std::size_t(collective)]();
}

}  // namespace nearfield::collectives
