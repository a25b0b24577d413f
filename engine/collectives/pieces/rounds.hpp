// Pieces that several collectives share: copies that skip data already in place, lengths of rounds, and the loop of
// operations in which all members stage and read.
//
//   member      stage 0  post 0  keep 0 | meet 0  stage 1  post 1  keep 1  read 0 | meet 1  stage 2  post 2  ...
//
// Staging the next round before reading this one lets a late member find its input ready. It is safe with three buffers
// (there are four): a member that has posted round k has read round k - 2, and round k + 1 goes into the buffer of k -
// 3.
#pragma once
#include <algorithm>
#include <cstring>

#include "engine/collectives/costs.hpp"
#include "engine/collectives/pieces/lengths.hpp"
#include "engine/copying/copy.hpp"

namespace nearfield::collectives {

// Copies, unless a rank's own contribution lies in place already.
inline void put(void* to, const void* from, std::size_t bytes, copying::Store store = copying::Store::temporal) {
  if (to != from && bytes) copying::copy(to, from, bytes, store);
}

// Copies into a slot, whose lines others have read.
inline void stage(void* to, const void* from, std::size_t bytes) { put(to, from, bytes, copying::Store::claiming); }

// Copies into the copy buffer that the context is filling.
inline void stage_in(const CollectiveContext& context, void* to, const void* from, std::size_t bytes) {
  if (!bytes) return;
  const copying::Store store = context.rounds.filling();
  if (store == copying::Store::streaming) copying::copy_hybrid(to, from, bytes, copying::all_streaming);
  else copying::copy(to, from, bytes, store);
}

// Streaming is faster if the bytes will not be read from the cache. `working_set`: of all members together.
inline copying::Store store_for(const CollectiveContext& context, std::size_t working_set) {
  return copying::choose_store(working_set, std::size_t(context.shape().all_caches()));
}

// The same for pieces of any length of a long copy; the caller fences when all are done.
inline copying::Stores stores_for(const Shape& s, double working_set) {
  return working_set > s.all_caches() ? copying::all_streaming : copying::all_temporal;
}
inline void put(void* to, const void* from, std::size_t bytes, copying::Stores stores) {
  if (to != from && bytes) copying::copy_hybrid(to, from, bytes, stores);
}

// Copies from the copy buffer of `member` in `tick`.
inline void put_from(const CollectiveContext& context, int member, std::uint64_t tick, void* to, const void* from,
                     std::size_t bytes, copying::Stores stores) {
  if (stores.temporal == 0 && bytes) copying::copy_hybrid(to, from, bytes, stores);
  else put(to, from, bytes, context.rounds.emptying(member, tick));
}

inline std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// Length of a pipeline's chunks. Several chunks overlap copies in and out, but none is shorter than least_chunk() or
// longer than a buffer. Ranks that share CPUs overlap nothing, and every chunk would cost them a turn.
inline std::size_t chunk_bytes(const CollectiveContext& context, std::size_t bytes) {
  const Shape& s = context.shape();
  if (s.oversubscribed()) return std::clamp<std::size_t>(bytes, 8 << 10, s.buffer_bytes);
  const std::size_t wanted = std::max(divide_up(bytes, std::size_t{chunks_wanted}), std::size_t(least_chunk(s)));
  return std::min(divide_up(wanted, 4096) * 4096, s.buffer_bytes);
}

// Length of each of the `pieces` of a round, for as few rounds as possible.
inline std::size_t round_bytes(const CollectiveContext& context, std::size_t bytes, std::size_t pieces) {
  const std::size_t places =
      std::max<std::size_t>(pieces, 1) + (pieces > 1 && context.shape().oversubscribed());  // as in place_bytes()
  const std::size_t most = context.shape().buffer_bytes / places / 64 * 64, rounds = divide_up(bytes, most);
  return divide_up(divide_up(bytes, rounds), 64) * 64;
}

// Distance between pieces in a buffer. It is large for ranks that share CPUs: a scatter of 4 KiB on 8 ranks took twice
// as long with adjacent pieces.
inline std::size_t place_bytes(const CollectiveContext& context, std::size_t piece, std::size_t pieces) {
  return (context.shape().oversubscribed() ? context.shape().buffer_bytes / (pieces + 1) / 64 : divide_up(piece, 64)) *
         64;
}

struct Slice {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

// Returns share `index` of `parts` of `total` units; shares differ by one at most.
inline Slice share(std::size_t total, std::size_t parts, std::size_t index) {
  const std::size_t base = total / parts, more = total % parts;
  const std::size_t begin = index * base + std::min(index, more);
  return {begin, begin + base + (index < more)};
}

// Returns the elements of a block that are a member's part.
inline Slice part_of(const Call& call, int size, int member) {
  if (call.parts) return {std::min(call.parts[member], call.count), std::min(call.parts[member + 1], call.count)};
  return share(call.count, std::size_t(size), std::size_t(member));
}

// For a vector or block of `length`: stage(k, buffer) fills our buffer of round k with bytes(k) bytes; keep(k) does
// work that needs no other member; read(k, tick) may read all members' buffers of that tick.
template <class Bytes, class Stage, class Keep, class Read>
void all_by_rounds(CollectiveContext& context, std::size_t length, std::size_t rounds, BufferUse use, Bytes bytes,
                   Stage stage, Keep keep, Read read) {
  context.rounds.begin(length);
  const std::uint64_t first = context.ticks.now() + 1;
  auto publish = [&](std::size_t k) {
    stage(k, context.rounds.my_buffer(first + k, bytes(k), use));
    context.rounds.post(first + k);
    keep(k);
  };
  publish(0);
  for (std::size_t k = 0; k < rounds; ++k) {
    context.ticks.meet(first + k);
    if (k == 0) compare_in_rounds(context, first, length);
    if (k + 1 < rounds) publish(k + 1);
    context.rounds.report_reading(first + k, context.rounds.timed(first + k, -1, [&] { read(k, first + k); }));
  }
  context.ticks.advance(rounds);
  context.ticks.consume(context.ticks.now());
}

}  // namespace nearfield::collectives
