// All-to-all straight between user buffers, in any order (orders.hpp) with any kind of store.
//
// Rows of alltoall and allgather are instances of exchange_direct; each names an order, who makes a copy (pull: its
// destination, push: its source, or by place a third member) and which lines are streamed:
//
//   fit        temporal while all members' data fit the last-level caches, else streaming
//   temporal, streaming   always
//   prefix     the part of each block that fits a member's share of its cache is temporal
//   distant    streaming where source and destination do not share a last-level cache
//   fraction   half of the lines are streamed
#pragma once
#include "engine/collectives/pieces/direct.hpp"
#include "engine/orders/orders.hpp"

namespace nearfield::collectives {

using orders::Direction;
using orders::Order;

enum class Hybrid : std::uint8_t { fit, temporal, streaming, prefix, distant, fraction };

struct ExchangeVariant {
  Order order = Order::rotated;
  Direction direction = Direction::pull;
  Hybrid hybrid = Hybrid::fit;
};

// Kinds of stores within a last-level cache and beyond it. `working_set`: bytes of all members; `block`: of one copy.
struct Blend {
  copying::Stores near, far;
};
inline Blend blend(const Shape& s, Hybrid hybrid, double working_set, std::size_t block) {
  using copying::all_streaming, copying::all_temporal, copying::Stores;
  switch (hybrid) {
    case Hybrid::temporal: return {all_temporal, all_temporal};
    case Hybrid::streaming: return {all_streaming, all_streaming};
    case Hybrid::distant: return {all_temporal, all_streaming};
    case Hybrid::fraction: return {{0, 4}, {0, 4}};
    case Hybrid::prefix: {
      const double kept = std::min(1.0, s.all_caches() / working_set);
      const Stores part{std::size_t(kept * double(block)) / 64 * 64, 8};
      return {part, part};
    }
    case Hybrid::fit: break;
  }
  const Stores all = stores_for(s, working_set);
  return {all, all};
}

// Makes each of our copies by move(source, destination, stores), makes them visible, and meets all members.
template <ExchangeVariant variant, class Move>
void exchange_direct(CollectiveContext& context, double working_set, std::size_t block, Move move) {
  const Shape& s = context.shape();
  const int group = s.group_size();
  const Blend stores = blend(s, variant.hybrid, working_set, block);
  constexpr int split = 4;  // members of a group, where the machine has no groups
  orders::each_copy(variant.order, variant.direction, context.size(), group < s.size ? group : std::min(split, s.size),
                    context.rank(), [&](int source, int destination) {
                      move(source, destination, source / group == destination / group ? stores.near : stores.far);
                    });
  copying::fence();
  finish_direct(context);
}

// Makes the copies to members [first, last), whichever member runs it.
template <class Move>
void exchange_shares(CollectiveContext& context, double working_set, std::size_t block, int first, int last,
                     Move move) {
  const int p = context.size();
  const Blend stores = blend(context.shape(), Hybrid::fit, working_set, block);
  for (int to = first; to < last; ++to)
    orders::each_partner(Order::rotated, p, p, to, [&](int from) { move(from, to, stores.near); });
  copying::fence();
}

// Every member copies `bytes`. No estimate tells orders apart: within one last-level cache they differ by two percent,
// and among several worth_trying() leaves out those that lose. Out of cache, temporal stores fetch each line first,
// which makes three transfers of two; in cache, streaming ones go to memory all the same.
inline double exchanging(const Shape& s, Hybrid hybrid, double bytes, double working_set) {
  const double fit = copying(s, bytes, working_set), out = spilled(s, working_set);
  const double memory = copying(s, bytes, 2 * s.all_caches());
  const double temporal = fit + 0.5 * memory * out, streaming = fit + memory * (1 - out);
  switch (hybrid) {
    case Hybrid::temporal: return temporal;
    case Hybrid::streaming: return streaming;
    case Hybrid::fraction: return (temporal + streaming) / 2;
    default: return fit;
  }
}

inline bool several_caches(const Shape& s, const Call&) { return s.group_size() < s.size; }

// Returns whether the kind of stores differs from `fit`, and the order does not lose: in simulations of 48 and 192
// cores with several last-level caches, members that read one member's lines at a time wait for each other (linear),
// and writers of others' lines fetch them first and owners fetch them back (push, tiled, morton), 2.5 to 4 times the
// time of the rotated order, pulled.
inline bool worth_trying(const Shape& s, ExchangeVariant variant, double working_set) {
  const bool loses = variant.direction == Direction::push || variant.order == Order::linear ||
                     variant.order == Order::tiled || variant.order == Order::morton;
  if (loses && s.group_size() < s.size) return false;
  const bool cached = working_set <= s.all_caches();
  switch (variant.hybrid) {
    case Hybrid::temporal:
    case Hybrid::prefix: return !cached;
    case Hybrid::streaming: return cached;
    default: return true;
  }
}

// ---- conditions under which an order differs from simpler ones
inline bool from_three(const Shape& s, const Call&) { return s.size > 2; }
inline bool from_four(const Shape& s, const Call&) { return s.size > 3; }
inline bool powers_of_two(const Shape& s, const Call&) { return s.size > 3 && (s.size & (s.size - 1)) == 0; }
inline bool from_groups(const Shape& s, const Call&) { return s.size > 4; }
inline bool streamable(const Shape&, const Call& call) { return call.bytes >= copying::least_streamed; }
inline bool streamable_far(const Shape& s, const Call& call) { return streamable(s, call) && several_caches(s, call); }

// Rows of alltoall that are exchanges; the simulator runs them, too. Rows of equal estimates are tried in this order:
// those that have won somewhere come first, the plainest before all.
struct ExchangeRow {
  const char* name;
  ExchangeVariant variant;
  bool (*applies)(const Shape&, const Call&);
  const char* about;
};
inline constexpr ExchangeRow exchanges[] = {
    {"pull-rotated", {}, always, "between user buffers: every rank fetches, rotated; in place pairs swap"},
    {"push-rotated", {Order::rotated, Direction::push}, always, "every rank stores to the others, rotated"},
    {"pull-xored", {Order::xored}, powers_of_two, "every rank fetches, pair by pair"},
    {"pull-grouped", {Order::grouped}, from_groups, "every rank fetches, from each group in turn"},
    {"pull-near-first", {Order::near_first}, several_caches, "every rank fetches, first within its L3"},
    {"pull-prefix", {.hybrid = Hybrid::prefix}, streamable, "as pull-rotated, streaming what the caches do not hold"},
    {"pull-distant", {.hybrid = Hybrid::distant}, streamable_far, "as pull-rotated, streaming between L3s"},
    {"pull-temporal", {.hybrid = Hybrid::temporal}, streamable, "as pull-rotated, never streaming"},
    {"pull-streaming", {.hybrid = Hybrid::streaming}, streamable, "as pull-rotated, always streaming"},
    {"pull-fraction", {.hybrid = Hybrid::fraction}, streamable, "as pull-rotated, streaming four of eight lines"},
    {"tiled", {Order::tiled}, from_four, "every rank makes the copies of a tile of the matrix"},
    {"morton", {Order::morton}, from_four, "every rank makes the copies of a stretch of the Z curve"},
    {"push-xored", {Order::xored, Direction::push}, powers_of_two, "every rank stores, pair by pair"},
    {"push-grouped", {Order::grouped, Direction::push}, from_groups, "every rank stores, to each group in turn"},
    {"push-near-first", {Order::near_first, Direction::push}, several_caches, "every rank stores, first within its L3"},
    {"pull-linear", {Order::linear}, from_three, "every rank fetches from 0, 1, 2, ..."},
    {"push-linear", {Order::linear, Direction::push}, from_three, "every rank stores to 0, 1, 2, ..."},
};

}  // namespace nearfield::collectives
