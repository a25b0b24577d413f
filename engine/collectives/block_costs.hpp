// Estimates of the operations that move one block between the root and every rank.
#pragma once
#include "engine/collectives/costs.hpp"

namespace nearfield::collectives::blocks {

inline double line(const Shape& s, const Call& call) {
  return collecting(s, lines_ahead) + copying(s, in_bytes(call) * s.size, 0);
}
inline double slots(const Shape& s, const Call& call) {
  return collecting(s, slots_ahead) + line_within(s, s.size) / 2 + copying(s, in_bytes(call) * s.size, 0);
}
inline double pipeline(const Shape& s, const Call& call) {
  return rounds_of(s, in_bytes(call), buffers_ahead) +
         copying(s, in_bytes(call) * s.size, 2 * in_bytes(call) * s.size) * (s.crowded() ? 6 * alone(s) : 1);
}
inline double direct(const Shape& s, const Call& call) {
  return exposing(s) + copying(s, in_bytes(call), 2 * in_bytes(call) * s.size);
}
inline double together(const Shape& s, const Call& call) {
  const double n = in_bytes(call) * s.size;
  return collectives::together(s, n, alone(s) * copying(s, n, 2 * n));
}

}  // namespace nearfield::collectives::blocks
