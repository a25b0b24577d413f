#include "engine/collectives/table.hpp"

namespace nearfield::collectives {

const char* name(Collective collective) noexcept {
  static constexpr const char* names[] = {"barrier",  "bcast",  "reduce",  "allreduce",           "allgather",
                                          "alltoall", "gather", "scatter", "reduce_scatter_block"};
  static_assert(sizeof names / sizeof *names == collective_count);
  return collective < Collective::count ? names[std::size_t(collective)] : "unknown";
}

namespace {

using Buffer = team::Team::Buffer;

// What peers may have to load of ours, and to store.
Buffer sent(const team::Team& team, const Call& call) {
  const bool root = team.rank() == call.root;
  const std::size_t all = call.bytes * std::size_t(team.size());
  void* const at = const_cast<void*>(call.send);
  switch (call.collective) {
    case Collective::bcast: return {at, root ? call.bytes : 0};
    case Collective::scatter: return {at, root ? all : 0};
    case Collective::gather: return {at, root ? 0 : call.bytes};
    case Collective::alltoall:
    case Collective::reduce_scatter_block: return {at, all};
    default: return {at, call.bytes};
  }
}

Buffer received(const team::Team& team, const Call& call) {
  const bool root = team.rank() == call.root;
  const std::size_t all = call.bytes * std::size_t(team.size());
  switch (call.collective) {
    case Collective::bcast:
    case Collective::scatter: return {call.recv, root ? 0 : call.bytes};
    case Collective::gather: return {call.recv, root ? all : 0};
    case Collective::reduce: return {call.recv, root ? call.bytes : 0};
    case Collective::allgather:
    case Collective::alltoall: return {call.recv, all};
    default: return {call.recv, call.bytes};
  }
}

// Whether this root's own block needs no copy: peers then leave it more of theirs.
bool in_place_at_root(const team::Team& team, const Call& call) {
  if (team.rank() != call.root) return false;
  const std::size_t own = call.bytes * std::size_t(call.root);
  if (call.collective == Collective::gather) return call.send == static_cast<std::byte*>(call.recv) + own;
  return call.collective == Collective::scatter && call.recv == static_cast<const std::byte*>(call.send) + own;
}

}  // namespace

bool run(team::Team& team, const Algorithm& algorithm, const Call& call) {
  if (algorithm.reach == staged) {
    algorithm.run(team, call);
    return true;
  }
  Buffer send = sent(team, call), recv = received(team, call);
  if (!(algorithm.reach & send_buffers)) send.bytes = 0;
  if (!(algorithm.reach & recv_buffers)) recv.bytes = 0;
  const struct Exposed {
    team::Team& team;
    ~Exposed() { team.end_exposure(); }
  } exposed{team};
  if (!team.meet_exposed(send, recv, in_place_at_root(team, call))) return false;
  algorithm.run(team, call);
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
