#include "engine/collectives/pieces/exchange.hpp"
#include "engine/collectives/pieces/rings.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

double working_set(const Shape& s, const Call& call) { return double(call.bytes) * s.size * (s.size + 1); }

void slots(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  auto* out = static_cast<std::byte*>(call.recv);
  all_by_slots(
      context, call.send, call.bytes, [&](std::uint64_t) { put(out + me * call.bytes, call.send, call.bytes); },
      [&](std::uint64_t seq) {
        orders::each_partner(Order::rotated, p, p, me, [&](int r) {
          if (r != me) put(out + r * call.bytes, context.slots.at(r, seq), call.bytes);
        });
      });
}

void tree(CollectiveContext& context, const Call& call) {
  constexpr int root = 0;
  Slots& slots = context.slots;
  const std::uint64_t up = slots.next(), down = slots.next();
  auto* const out = static_cast<std::byte*>(call.recv);
  const std::size_t all = call.bytes * std::size_t(context.size());
  Lengths lengths(context, call);
  gather_up(context, slots, up, root, call.send, call.bytes, context.inputs(), lengths);
  if (context.rank() == root)
    for (int r = 0; r < context.size(); ++r) put(out + r * call.bytes, context.inputs()[r], call.bytes);
  pass_down(context, slots, down, root, out, out, all, lengths);
  slots.have_met(up);
  lengths.report();
}

void rounds(CollectiveContext& context, const Call& call) {
  const std::size_t chunk = round_bytes(context, call.bytes, 1);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const int p = context.size(), me = context.rank();
  const auto stores = stores_for(context.shape(), working_set(context.shape(), call));
  auto length = [&](std::size_t k) { return std::min(chunk, call.bytes - k * chunk); };
  all_by_rounds(
      context, call.bytes, divide_up(call.bytes, chunk), BufferUse::copied, length,
      [&](std::size_t k, std::byte* buffer) { stage_in(context, buffer, in + k * chunk, length(k)); },
      [&](std::size_t k) { put(out + me * call.bytes + k * chunk, in + k * chunk, length(k), stores); },
      [&](std::size_t k, std::uint64_t tick) {
        for (int i = 1; i < p; ++i) {
          const int r = (me + i) % p;
          put_from(context, r, tick, out + r * call.bytes + k * chunk, context.rounds.buffer(r, tick), length(k),
                   stores);
        }
      });
  copying::fence();
}

void move(CollectiveContext& context, int from, int to, copying::Stores stores) {
  put(context.exchange.recv_of(to) + from * exchanged_length(context, to), context.exchange.send_of(from),
      exchanged_block(context, from, to), stores);
}

// A pull stores to its own buffer only, so that buffer may be out of peers' reach.
template <ExchangeVariant variant>
void direct(CollectiveContext& context, const Call& call) {
  exchange_direct<variant>(context, working_set(context.shape(), call), call.bytes,
                           [&](int from, int to, copying::Stores stores) { move(context, from, to, stores); });
}

void shares(CollectiveContext& context, const Call& call, int first, int last) {
  exchange_shares(context, working_set(context.shape(), call), call.bytes, first, last,
                  [&](int from, int to, copying::Stores stores) { move(context, from, to, stores); });
}

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call& call) {
  return meeting_to_look(s) + copying(s, in_bytes(call) * (s.size + 1), 0);
}
double up_and_down_cost(const Shape& s, const Call& call) {
  return tree_cost(s, in_bytes(call) * s.size, in_bytes(call) * s.size);
}
double rounds_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), all = n * s.size * (s.size + 1);
  if (s.oversubscribed()) return rounds_of(s, n) + copying(s, 2 * n * (s.size + 1), all);
  return rounds_of(s, n) + filling(s, n, all) + emptying(s, n * (s.size - 1), all) + keeping(s, n, all);
}
template <ExchangeVariant variant>
double direct_cost(const Shape& s, const Call& call) {
  return buffer_exchange(s) + exchanging(s, variant.hybrid, in_bytes(call) * s.size, working_set(s, call));
}

template <ExchangeVariant variant>
bool worth(const Shape& s, const Call& call) {
  return worth_trying(s, variant, working_set(s, call));
}

template <ExchangeVariant variant>
constexpr Algorithm exchange(const char* name, bool (*applies)(const Shape&, const Call&), const char* about,
                             Reach reach = all_buffers) {
  return {name,    Collective::allgather, applies, direct_cost<variant>, direct<variant>, about, reach,
          nullptr, worth<variant>};
}

constexpr Algorithm rows[] = {
    {"slots", Collective::allgather, fits_slot, slots_cost, slots,
     "every rank puts its block into its slot, up to 4 KiB"},
    {"tree", Collective::allgather, all_down_fit, up_and_down_cost, tree,
     "all blocks climb the team's tree and come down it, up to 4 KiB together", staged, nullptr, worth_climbing},
    {"rounds", Collective::allgather, always, rounds_cost, rounds,
     "every rank passes its block on in chunks, through its copy buffers"},
    exchange<ExchangeVariant{}>("pull-rotated", always,
                                "between user buffers: every rank fetches all blocks, and begins after its own",
                                send_buffers),
    exchange<{Order::rotated, Direction::push}>("push-rotated", always,
                                                "every rank stores its block to all others, and begins after itself"),
    exchange<{Order::near_first}>("pull-near-first", several_caches,
                                  "every rank fetches all blocks, first those of ranks that share its L3"),
    exchange<{Order::near_first, Direction::push}>(
        "push-near-first", several_caches,
        "every rank stores its block to all others, first to ranks that share its L3"),
    exchange<{Order::tiled}>("tiled", from_four,
                             "every rank makes the copies of one tile of the matrix of senders and receivers"),
    {"together", Collective::allgather, always, together, nullptr,
     "between user buffers: the ranks that have a CPU make the copies of all ranks", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> allgather_rows() { return rows; }

}  // namespace nearfield::collectives
