// Orders of the p * p copies of an all-to-all: the member that makes each copy, and the sequence.
//
// Copy (source, destination) moves the block that `source` has for `destination`. Every member makes p of them; an
// order says which and in what sequence, and nothing about how bytes are moved. Two families:
//
//   by partner   a member makes the copies into its own buffer (pull) or out of it (push), one partner after another
//                linear     0, 1, 2, ...: all members at the same partner at the same time
//                rotated    beginning with itself: all members at different partners
//                xored      r ^ i: members pair up; no member idles in a step if p is a power of two
//                grouped    one partner of each group in turn, rotated: all groups are busy all the time
//                near_first all of its own group, then the next: data in the shared cache first
//   by place     the matrix of all copies is walked along a curve, and each member makes p consecutive copies. These
//                have few sources and few destinations, instead of one and p
//                tiled      tiles of about sqrt(p) * sqrt(p), row by row
//                morton     the Z curve (Morton 1966), tiles of tiles at every scale
//
// A group consists of `group` consecutive ranks, as of one cache; the last group may be shorter.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nearfield::orders {

enum class Order : std::uint8_t { linear, rotated, xored, grouped, near_first, tiled, morton, count };
enum class Direction : std::uint8_t { pull, push };
inline constexpr bool by_place(Order order) { return order >= Order::tiled; }

inline constexpr const char* names[] = {"linear", "rotated", "xored", "grouped", "near-first", "tiled", "morton"};
static_assert(sizeof names / sizeof *names == std::size_t(Order::count));

// Calls visit(partner) for every partner of `me`, itself among them, each once.
template <class Visit>
void each_partner(Order order, int p, int group, int me, Visit&& visit) {
  const int groups = (p + group - 1) / group, own = me / group, place = me % group;
  auto members = [&](int g) { return std::min(group, p - g * group); };
  auto member = [&](int g, int turn) { return g * group + (place + turn) % members(g); };
  switch (order) {
    case Order::linear:
      for (int i = 0; i < p; ++i) visit(i);
      return;
    case Order::xored: {
      int span = 1;
      while (span < p) span *= 2;
      for (int i = 0; i < span; ++i)
        if ((me ^ i) < p) visit(me ^ i);
      return;
    }
    case Order::grouped:
      for (int turn = 0; turn < group; ++turn)
        for (int i = 0; i < groups; ++i)
          if (const int g = (own + i) % groups; turn < members(g)) visit(member(g, turn));
      return;
    case Order::near_first:
      for (int i = 0; i < groups; ++i) {
        const int g = (own + i) % groups;
        for (int turn = 0; turn < members(g); ++turn) visit(member(g, turn));
      }
      return;
    default:
      for (int i = 0; i < p; ++i) visit(me + i < p ? me + i : me + i - p);
  }
}

// Visits `left` cells of the Z curve over p * p from number `first` on. (row, column) is the corner of a square of
// `side`; cells beyond p do not count.
template <class Visit>
void walk_morton(int p, int row, int column, int side, std::int64_t& first, std::int64_t& left, Visit&& visit) {
  if (row >= p || column >= p || left == 0) return;
  const std::int64_t cells = std::int64_t{std::min(side, p - row)} * std::min(side, p - column);
  if (first >= cells) {
    first -= cells;
    return;
  }
  if (side == 1) {
    --left;
    return visit(row, column);
  }
  const int half = side / 2;
  for (int quarter = 0; quarter < 4; ++quarter)
    walk_morton(p, row + (quarter >> 1) * half, column + (quarter & 1) * half, half, first, left, visit);
}

// Calls copy(source, destination) for the copies of member `me` of `p`, in its order. `group`: members of one group,
// 1 .. p.
template <class Copy>
void each_copy(Order order, Direction direction, int p, int group, int me, Copy&& copy) {
  if (order == Order::tiled) {
    int side = 1;
    while (side * side < p) ++side;
    for (int i = 0; i < p; ++i) {
      const std::int64_t at = std::int64_t{me} * p + i;
      const int band = int(at / (std::int64_t{side} * p)), high = std::min(side, p - band * side);
      const int in_band = int(at - std::int64_t{band} * side * p), tile = in_band / (side * high);
      const int wide = std::min(side, p - tile * side), in_tile = in_band - tile * side * high;
      copy(tile * side + in_tile % wide, band * side + in_tile / wide);
    }
  } else if (order == Order::morton) {
    int side = 1;
    while (side < p) side *= 2;
    std::int64_t first = std::int64_t{me} * p, left = p;
    walk_morton(p, 0, 0, side, first, left, [&](int row, int column) { copy(column, row); });
  } else if (direction == Direction::pull) {
    each_partner(order, p, group, me, [&](int partner) { copy(partner, me); });
  } else {
    each_partner(order, p, group, me, [&](int partner) { copy(me, partner); });
  }
}

}  // namespace nearfield::orders
