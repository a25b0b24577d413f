// Pieces of the estimates that the algorithms' rows give: nanoseconds until the slowest member is through.
//
// Memory is in cache while the working set of all members fits the shared cache, and out of cache beyond; around that
// limit the estimate is interpolated. Out of cache all cores share the memory's bandwidth.
#pragma once
#include <algorithm>
#include <cmath>

#include "engine/collectives/table.hpp"
#include "engine/machine/left_behind.hpp"
#include "engine/tuning/constants.hpp"

namespace nearfield::collectives {

namespace constants = tuning::constants;

// Number of calls by which the giving members of a rooted operation run ahead if ranks share CPUs.
inline constexpr double lines_ahead = context::Lines::entries / 8, slots_ahead = context::Slots::entries / 2,
                        buffers_ahead = context::buffers / 2;
inline constexpr unsigned chunks_wanted = 4;  // in a pipeline, if they are long enough

// The time in which each of the ranks that share CPUs has a turn. If they are in scheduling groups of their own, a
// yield helps less the more ranks share a CPU.
inline double around(const Shape& s) {
  const double turns = std::clamp(s.ranks_per_cpu / constants::group_ranks, 1.0, constants::group_most);
  return s.machine.turn * s.ranks_per_cpu * (s.one_group ? 1 : turns);
}

// A line moves between two members, of a run of `members` consecutive ones.
inline double line_within(const Shape& s, int members) {
  return s.machine.near > 0 && members <= s.group ? s.machine.near : s.machine.line;
}

// Reads a line of every other member; the transfers overlap.
inline double looking(const Shape& s) {
  const int near = s.group_size() - 1, far = s.size - s.group_size();
  return constants::line_overlapped * (near * line_within(s, s.group_size()) + far * s.machine.line);
}

// One member waits for data of all others. In rooted operations, ranks that share CPUs run ahead by some of the
// operations that their rings hold (`ahead`), and pay one turn for all of these.
inline double collecting(const Shape& s, double ahead = 1) {
  if (s.oversubscribed()) return around(s) / (s.deep() ? 1 : ahead);
  return (1 - constants::line_overlapped) * line_within(s, s.size) + looking(s);
}
// All others wait for the root. When deeply oversubscribed they sleep, and the root wakes them one by one; otherwise
// they compete for its line.
inline double hop_from_root(const Shape& s, double ahead = 1) {
  if (s.oversubscribed()) return s.deep() ? constants::sleepers_woken * around(s) : around(s) / ahead;
  return line_within(s, s.size) * (1 + constants::line_queued * (s.size - 2));
}

// All data go along the tree of the team once, up or down. A leader reads its children's lines one after another; the
// transfers overlap.
inline double climb(const Shape& s) {
  const team::Tree& tree = s.tree;
  if (s.oversubscribed()) return tree.levels() * around(s);
  double time = 0;
  for (int level = 0, below = 1; level < tree.levels(); below = tree.span(level++)) {
    const int parts = (tree.span(level) + below - 1) / below;
    time += line_within(s, tree.span(level)) * (1 + constants::line_overlapped * (parts - 2));
  }
  return time;
}

// A barrier: one turn of all ranks if they share CPUs. Otherwise they read each other's lines, or go up and down the
// tree, or add to one counter, whose line each member must own once.
inline double meeting(const Shape& s) {
  if (s.oversubscribed()) return around(s);
  switch (s.meeting) {
    case Meeting::tree: return 2 * climb(s);
    case Meeting::gate: return s.machine.line * s.size;
    default: return collecting(s);
  }
}
// A barrier, and reading a line of every member: with flags these lines have been read for the barrier.
inline double meeting_to_look(const Shape& s) {
  return meeting(s) + (s.oversubscribed() || s.meeting == Meeting::flags ? 0 : looking(s));
}

inline double spilled(const Shape& s, double working_set) { return machine::part_beyond(working_set, s.all_caches()); }

// Time per byte from one member to another: mean over near and far members.
inline double pair_cost(const Shape& s, double PairCosts::*what) {
  const double far = double(s.size - s.group_size()) / std::max(s.size - 1, 1);
  return s.machine.pair(false).*what * (1 - far) + s.machine.pair(true).*what * far;
}

// Barriers before and after work between exchanged buffers: each member's addresses are in a line of its own.
inline double buffer_exchange(const Shape& s) {
  const double meetings = meeting_to_look(s) + meeting(s), measured = pair_cost(s, &PairCosts::line);
  if (s.oversubscribed()) return meetings;
  return meetings + (measured > 0 ? measured : line_within(s, s.size)) *
                        (constants::exchange_lines + constants::exchange_member * (s.size - 1));
}

// All members move `bytes` at the same time; `in_cache`: nanoseconds per byte in cache.
inline double moving(const Shape& s, double bytes, double in_cache, double working_set) {
  const Machine& m = s.machine;
  const double active = std::min<double>(s.size, m.cpus);
  const double out = spilled(s, working_set);
  const double each = in_cache * (1 - out) + std::max(m.memory, m.all_memory * active) * out;
  return bytes * each * s.ranks_per_cpu;
}

// Every member copies `bytes` that others have written.
inline double copying(const Shape& s, double bytes, double working_set) {
  const bool known = s.machine.near_pair.line > 0 && !s.oversubscribed();
  return moving(s, bytes, known ? pair_cost(s, &PairCosts::copy) : s.machine.copy, working_set);
}

// Every member reads `bytes` of operands, most of them written by others, and stores a part of that.
inline double folding(const Shape& s, double bytes, double working_set) {
  const bool known = s.machine.near_pair.line > 0 && !s.oversubscribed();
  const double others = known ? pair_cost(s, &PairCosts::copy) * (s.size - 1) / s.size : 0;
  return moving(s, bytes, std::max(s.machine.fold, others), working_set);
}

// ---- rounds of copy buffers. Not for oversubscribed teams, whose lines do not move between caches.
inline double filling(const Shape& s, double bytes, double working_set) {
  return moving(s, bytes, pair_cost(s, &PairCosts::fill), working_set);
}
inline double emptying(const Shape& s, double bytes, double working_set) {
  return moving(s, bytes, pair_cost(s, &PairCosts::empty), working_set);
}
inline double keeping(const Shape& s, double bytes, double working_set) {
  return moving(s, bytes, pair_cost(s, &PairCosts::own), working_set);
}
// Combines operands of others from their copy buffers with our own.
inline double combining(const Shape& s, double others, double own, double working_set) {
  return moving(s, others, std::max(s.machine.fold, pair_cost(s, &PairCosts::empty)), working_set) +
         moving(s, own, s.machine.fold, working_set);
}

// Cost of rounds without that of their bytes. `bytes`: through one member's buffers.
inline double rounds_of(const Shape& s, double bytes, double ahead = 1) {
  const double rounds = std::ceil(bytes / double(s.buffer_bytes));
  if (s.oversubscribed())
    return std::max(rounds, double(constants::oversubscribed_rounds)) * constants::oversubscribed_round_lines *
               s.machine.line +
           rounds / (s.deep() ? 1 : ahead) * meeting(s);
  return rounds * meeting_to_look(s) + line_within(s, s.size);
}
// Bytes whose copies take as long as publishing and awaiting some chunks.
inline double least_chunk(const Shape& s) {
  return constants::chunk_handover * line_within(s, s.size) /
         (pair_cost(s, &PairCosts::fill) + pair_cost(s, &PairCosts::empty));
}
// A pipeline from or to a root: handing over its chunks, and the copies that do not overlap. The number of the first
// chunk comes before its bytes. The root looks at all members, for chunks and for the buffers that they have read.
inline double pipelined(const Shape& s, double bytes, double fill, double empty) {
  const double longest = double(s.buffer_bytes),
               chunk = std::min(std::max(bytes / chunks_wanted, least_chunk(s)), longest);
  const double chunks = std::max(std::ceil(bytes / chunk), 1.0);
  return (1 + chunks) * line_within(s, s.size) + 2 * looking(s) + std::max(fill, empty) +
         std::min(fill, empty) / chunks;
}

inline double in_bytes(const Call& call) { return double(call.bytes); }
// Factor that converts the time of an oversubscribed team, in which ranks_per_cpu ranks share each CPU, to the time of
// one of these ranks alone on it.
inline double alone(const Shape& s) { return 1 / s.ranks_per_cpu; }

// Rows `together`, where running members do the work of all: one barrier, then the time of one CPU for the whole, some
// times over, since the data lie in other CPUs' caches and in pages not used lately. The amount of work follows from
// operations.def: all bytes given, or got if these are more.
inline double together(const Shape& s, const Call& call) {
  const Operation& op = operation(call.collective);
  const auto all_of = [&](const Contribution& side) {
    return in_bytes(call) * double(side.each(s.size)) * (side.who == Who::root ? 1 : s.size);
  };
  const double given = all_of(op.gives), got = all_of(op.gets), most = std::max(given, got);
  const double touched = given == got ? 2 * most : most;  // the smaller side hardly counts
  const double copied = !op.reduces() ? most : given == got ? most / 2 : 0;
  const double folded = op.reduces() ? most : 0;
  const double whole = alone(s) * (folding(s, folded, touched) + copying(s, copied, touched));
  if (!s.oversubscribed())
    return buffer_exchange(s) + whole;  // an estimate of one CPU doing all; the chooser never tries these rows then
  return meeting(s) + constants::together_lines * s.machine.line * s.size +
         constants::together_price * whole / (most > double(constants::together_shared) ? s.machine.cpus : 1);
}

// ---- conditions
inline bool always(const Shape&, const Call&) { return true; }
inline bool fits_line(const Shape&, const Call& call) { return call.bytes <= context::line_payload; }
inline bool all_fit_line(const Shape& s, const Call& call) {
  return call.bytes <= context::line_payload && call.bytes * std::size_t(s.size) <= context::line_payload;
}
inline bool fits_slot(const Shape&, const Call& call) { return call.bytes <= context::slot_payload; }
inline bool all_fit_slot(const Shape& s, const Call& call) {
  return call.bytes <= context::slot_payload && call.bytes * std::size_t(s.size) <= context::slot_payload;
}
inline bool fits_buffer(const Shape& s, const Call& call) { return call.bytes <= s.buffer_bytes; }
inline bool buffer_has_places(const Shape& s, const Call&) { return s.buffer_bytes / std::size_t(s.size) >= 64; }

}  // namespace nearfield::collectives
