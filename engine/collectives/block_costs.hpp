// Estimates of the operations that move one block between the root and every rank.
#pragma once
#include "engine/collectives/costs.hpp"

namespace nearfield::collectives::blocks {

inline double line(const Shape& s, const Call& call) {
  return collecting(s, lines_ahead) + copying(s, in_bytes(call) * s.size, 0);
}
inline double slots(const Shape& s, const Call& call) {
  return collecting(s, slots_ahead) + constants::line_overlapped * line_within(s, s.size) +
         copying(s, in_bytes(call) * (s.size - 1), 0) + keeping(s, in_bytes(call), 0);
}
// `fill`, `empty`: bytes of the member that fills, or empties, most. The member that has all blocks also copies its
// own. Lines leave the root's cache one after another, however many members read them.
inline double pipeline_by(const Shape& s, const Call& call, double fill, double empty) {
  const double all = 2 * in_bytes(call) * s.size;
  return pipelined(s, in_bytes(call), filling(s, fill, all), emptying(s, empty, all)) + keeping(s, in_bytes(call), all);
}
inline double pipeline(const Shape& s, const Call& call) {
  const double n = in_bytes(call), others = n * (s.size - 1);
  if (!s.oversubscribed())
    return operation(call.collective).gives.who == Who::root ? pipeline_by(s, call, others, others)
                                                             : pipeline_by(s, call, n, others);
  return rounds_of(s, in_bytes(call), buffers_ahead) +
         copying(s, in_bytes(call) * s.size, 2 * in_bytes(call) * s.size) * constants::oversubscribed_copies * alone(s);
}
inline double direct(const Shape& s, const Call& call) {
  return buffer_exchange(s) + copying(s, in_bytes(call), 2 * in_bytes(call) * s.size);
}

}  // namespace nearfield::collectives::blocks
