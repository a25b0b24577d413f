#include <array>
#include <utility>

#include "engine/collectives/pieces/exchange.hpp"
#include "engine/collectives/pieces/rings.hpp"

namespace nearfield::collectives {
namespace {

double working_set(const Shape& s, const Call& call) { return 2 * double(call.bytes) * s.size * s.size; }

void slots(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  all_by_slots(
      context, in, call.bytes * p, [&](std::uint64_t) { put(out + me * call.bytes, in + me * call.bytes, call.bytes); },
      [&](std::uint64_t seq) {
        orders::each_partner(Order::rotated, p, p, me, [&](int r) {
          if (r != me) put(out + r * call.bytes, context.slots.at(r, seq) + me * call.bytes, call.bytes);
        });
      });
}

// Every round copies a piece of each block; the piece for the rank that follows us by i is piece i - 1 of the buffer.
// In place works because all members have staged all pieces of a round before any of them is overwritten.
void rounds(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  const std::size_t piece = round_bytes(context, call.bytes, p - 1), place = place_bytes(context, piece, p - 1);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const auto stores = stores_for(context.shape(), working_set(context.shape(), call));
  auto length = [&](std::size_t k) { return std::min(piece, call.bytes - k * piece); };
  all_by_rounds(
      context, call.bytes, divide_up(call.bytes, piece), BufferUse::copied,
      [&](std::size_t) { return (p - 1) * place; },
      [&](std::size_t k, std::byte* buffer) {
        for (int i = 1; i < p; ++i) {
          const int to = (me + i) % p;
          stage_in(context, buffer + (i - 1) * place, in + to * call.bytes + k * piece, length(k));
        }
      },
      [&](std::size_t k) {
        put(out + me * call.bytes + k * piece, in + me * call.bytes + k * piece, length(k), stores);
      },
      [&](std::size_t k, std::uint64_t tick) {
        for (int i = 1; i < p; ++i) {
          const int from = (me + p - i) % p;
          put_from(context, from, tick, out + from * call.bytes + k * piece,
                   context.rounds.buffer(from, tick) + (i - 1) * place, length(k), stores);
        }
      });
  copying::fence();
}

// Swaps `bytes` bytes at a and b, through a buffer that stays in the first-level cache.
void swap(std::byte* a, std::byte* b, std::size_t bytes) {
  alignas(64) std::byte room[4096];
  for (std::size_t at = 0; at < bytes; at += sizeof room) {
    const std::size_t n = std::min(sizeof room, bytes - at);
    put(room, a + at, n);
    put(a + at, b + at, n);
    put(b + at, room, n);
  }
}

// Copies the block that `from` has for `to`. In place, each member of a pair swaps half of their two blocks.
void move(CollectiveContext& context, const Call& call, int from, int to, copying::Stores stores) {
  const std::size_t n = exchanged_block(context, from, to), from_n = exchanged_length(context, from),
                    to_n = exchanged_length(context, to);
  if (call.send != call.recv) {  // the same on all ranks, as MPI requires
    copying::copy_hybrid(context.exchange.recv_of(to) + from * to_n, context.exchange.send_of(from) + to * from_n, n,
                         stores);
  } else if (to != from) {
    const auto half = divide(n, 2);
    const std::size_t at = to < from ? 0 : half.first;
    swap(context.exchange.recv_of(to) + from * to_n + at, context.exchange.recv_of(from) + to * from_n + at,
         to < from ? half.first : half.rest);
  }
}

template <ExchangeVariant variant>
void direct(CollectiveContext& context, const Call& call) {
  exchange_direct<variant>(context, working_set(context.shape(), call), call.bytes,
                           [&](int from, int to, copying::Stores stores) { move(context, call, from, to, stores); });
}

void shares(CollectiveContext& context, const Call& call, int first, int last) {
  exchange_shares(context, working_set(context.shape(), call), call.bytes, first, last,
                  [&](int from, int to, copying::Stores stores) { move(context, call, from, to, stores); });
}

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call& call) {
  return meeting_to_look(s) + copying(s, 2 * in_bytes(call) * s.size, 0);
}
double rounds_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), others = n * (s.size - 1), all = working_set(s, call);
  if (s.oversubscribed()) return rounds_of(s, n * s.size) + copying(s, 2 * n * s.size, all);
  return rounds_of(s, others) + filling(s, others, all) + emptying(s, others, all) + keeping(s, n, all);
}
template <ExchangeVariant variant>
double order_cost(const Shape& s, const Call& call) {
  return buffer_exchange(s) + exchanging(s, variant.hybrid, in_bytes(call) * s.size, working_set(s, call));
}

template <ExchangeVariant variant>
bool worth(const Shape& s, const Call& call) {
  return worth_trying(s, variant, working_set(s, call));
}

constexpr Algorithm others[] = {
    {"slots", Collective::alltoall, all_fit_slot, slots_cost, slots,
     "every rank puts all its blocks into its slot, up to 4 KiB"},
    {"rounds", Collective::alltoall, buffer_has_places, rounds_cost, rounds,
     "every rank passes its blocks on in pieces, through its copy buffers"},
    {"together", Collective::alltoall, always, together, nullptr,
     "between user buffers: the ranks that have a CPU make the copies of all ranks", all_buffers, shares},
};

template <std::size_t i>
constexpr Algorithm row() {
  if constexpr (i < std::size(others)) {
    return others[i];
  } else {
    constexpr ExchangeRow e = exchanges[i - std::size(others)];
    return {e.name,  Collective::alltoall, e.applies, order_cost<e.variant>, direct<e.variant>,
            e.about, all_buffers,          nullptr,   worth<e.variant>};
  }
}
template <std::size_t... i>
constexpr auto all_rows(std::index_sequence<i...>) {
  return std::array{row<i>()...};
}
constexpr auto rows = all_rows(std::make_index_sequence<std::size(others) + std::size(exchanges)>());

}  // namespace

std::span<const Algorithm> alltoall_rows() { return rows; }

}  // namespace nearfield::collectives
