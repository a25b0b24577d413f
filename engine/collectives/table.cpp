#include "engine/collectives/pieces/gaps.hpp"

namespace nearfield::collectives {

namespace {

using Buffer = team::Track::Buffer;

// What peers may have to load of ours, and to store. `own`: also what only the root itself needs of its own, where it
// shares with all others what is not combined.
Buffer exposed(const team::Track& track, const Call& call, const Side& side, const void* at, bool own) {
  const Operation& op = operation(call.collective);
  const bool private_copy = op.rooted() && !op.reduces() && side.who == Who::all && track.rank() == call.root && !own;
  const std::size_t blocks = private_copy ? 0 : side.blocks(track.rank(), track.size(), call.root);
  return {const_cast<void*>(at), blocks * call.bytes};
}

// Whether this root's own block needs no copy: peers then leave it more of theirs.
bool in_place_at_root(const team::Track& track, const Call& call) {
  if (track.rank() != call.root || !rooted(call.collective)) return false;
  const Operation& op = operation(call.collective);
  const auto *const send = static_cast<const std::byte*>(call.send), *const recv =
                                                                         static_cast<const std::byte*>(call.recv);
  const std::size_t at = op.in_place_at(call.root, call.bytes);
  return (op.in_place == InPlace::own_block_of_recv && send == recv + at) ||
         (op.in_place == InPlace::own_block_of_send && recv == send + at);
}

// Parts worth the trouble of sharing them out, some to every CPU.
std::size_t parts_of(const team::Track& track, const Call& call) {
  constexpr std::size_t least = 64 << 10;  // bytes of one part
  const auto p = std::size_t(track.size());
  const Side& gets = operation(call.collective).gets;
  const std::size_t blocks = gets.who == Who::all ? gets.each(track.size()) : 1;
  const auto cpus = std::size_t(double(p) / track.shape().ranks_per_cpu + 0.5);
  return std::clamp<std::size_t>(call.bytes * p * blocks / least, 1, std::min(p, 4 * std::max<std::size_t>(cpus, 1)));
}

// What a member tells of its buffers beside where they are: of bcast how long its own is, since a root may have more or
// less than others expect, whom it must not write to then; else what only the root knows (in_place_at_root).
std::uint64_t note(const team::Track& track, const Call& call) {
  return call.collective == Collective::bcast ? call.bytes : in_place_at_root(track, call);
}

// The call as far as all members have memory for it.
Call shortest(const team::Track& track, const Call& call) {
  Call common = call;
  if (call.collective == Collective::bcast)
    for (int r = 0; r < track.size(); ++r) common.bytes = std::min<std::size_t>(common.bytes, track.note_of(r));
  return common;
}

// At the end. `told`: the root's note.
void report_length(const team::Track& track, const Call& call, std::uint64_t told) {
  if (call.collective != Collective::bcast || told == call.bytes) [[likely]]
    return;
  if (told > call.bytes || track.team().exact_bcast) track.report_lengths(call.root, told, call.bytes);
}

}  // namespace

bool run(team::Track& track, const Algorithm& algorithm, const Call& call) {
  if (algorithm.reach == staged) {
    algorithm.run(track, call);
    return true;
  }
  const Operation& op = operation(call.collective);
  gather_gaps(track, call);
  Buffer send = exposed(track, call, op.gives, call.send, algorithm.share),
         recv = exposed(track, call, op.gets, call.recv, algorithm.share);
  if (!(algorithm.reach & send_buffers)) send.bytes = 0;
  if (!(algorithm.reach & recv_buffers)) recv.bytes = 0;
  const struct Exposed {
    team::Track& track;
    ~Exposed() { track.end_exposure(); }
  } ends{track};
  if (algorithm.share) {
    const std::size_t parts = parts_of(track, call);
    const auto work = [&](std::size_t part) {
      const Range ranks = share(std::size_t(track.size()), parts, part);
      algorithm.share(track, shortest(track, call), int(ranks.begin), int(ranks.end));
    };
    // By reference: nothing is allocated, which could fail here alone.
    if (!track.work_exposed(send, recv, note(track, call), parts, std::ref(work))) return false;
    scatter_gaps(track, call);
    report_length(track, call, track.note_of(call.root));
    return true;
  }
  if (!track.meet_exposed(send, recv, note(track, call))) return false;
  const std::uint64_t told = track.note_of(call.root);
  algorithm.run(track, shortest(track, call));
  report_length(track, call, told);
  return true;
}

std::span<const Algorithm> algorithms(Collective collective) {
  using Rows = std::span<const Algorithm> (*)();
  static constexpr Rows rows[] = {
#define OPERATION(name, ...) name##_rows,
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"
  };
  return rows[std::size_t(collective)]();
}

}  // namespace nearfield::collectives
