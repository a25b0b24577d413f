// Long vectors and blocks of rooted operations: chunks through copy buffers, filled and read at the same time.
//
//   writers   wait until all readers consumed c - 4, fill, post(c)                 the root, or all others
//   readers   for each writer: wait until it posted c, read; then consume(c)       all others, or the root
//
// Members that read from the root take as many chunks as it publishes, whatever length they expect. A root that reads
// uses its own length: if senders of other lengths have as many chunks, it takes from each sender what it has room for.
// Otherwise members could not go on together, and the team is broken off.
#pragma once
#include "engine/collectives/pieces/lengths.hpp"
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

struct Chunk {
  std::size_t at, bytes;  // of the vector or of each block
  std::uint64_t tick;
  std::size_t index = 0;
};

// Returns the part of chunk `index` that a member of `length` bytes has and that lies within `own` bytes. `most`:
// length of whole chunks.
inline Chunk clipped(std::size_t length, std::size_t most, std::size_t index, std::size_t own, std::uint64_t tick) {
  const std::size_t at = std::min(index * most, own), end = std::min({(index + 1) * most, length, own});
  return {at, std::max(at, end) - at, tick, index};
}

// Compares the lengths of all senders with ours. Called by a root that reads, in its first chunk.
template <class Most>
void look_at_senders(const CollectiveContext& context, const Call& call, const Chunk& chunk, std::size_t chunks,
                     Most most, Lengths& lengths) {
  bool in_step = true;
  for (int r = 0; r < context.size(); ++r) {
    if (r == call.root) continue;
    const std::size_t theirs = context.rounds.published_length(r, chunk.tick);
    if (theirs == call.bytes) [[likely]]
      continue;
    lengths.look(theirs);
    in_step &= theirs != context::no_length && divide_up(theirs, most(theirs)) == chunks;
  }
  if (in_step) [[likely]]
    return;
  context.calls.report_lengths(false);
}

// Runs a rooted operation by chunks of most(length) bytes. write(chunk) fills our buffer; keep(chunk) does the root's
// work that needs no other member; read(chunk) waits for the writers, reads, and returns the time of reading
// (read_chunk).
template <class Most, class Write, class Keep, class Read>
void rooted_by_chunks(CollectiveContext& context, const Call& call, Most most, Write write, Keep keep, Read read) {
  const bool root = context.rank() == call.root, root_writes = operation(call.collective).gives.who == Who::root;
  const bool writes = root == root_writes;
  context.rounds.begin_rooted(call.bytes);
  const std::uint64_t first = context.ticks.now() + 1;
  Lengths lengths(context, call);
  std::size_t length = call.bytes;
  if (root_writes && !writes) {
    context.ticks.wait(call.root, first);
    length = context.rounds.published_length(call.root, first);
    if (length == context::no_length) [[unlikely]]
      context.calls.report_lengths(false);
    lengths.look(length);
  }
  const std::size_t most_bytes = most(length), chunks = divide_up(length, most_bytes);
  for (std::size_t c = 0; c < chunks; ++c) {
    const Chunk chunk = clipped(length, most_bytes, c, call.bytes, first + c);
    if (writes) {
      // In the first rounds the buffers' readers are those of an earlier operation, which may be any members.
      if (root_writes || c < context::buffers) context.ticks.claim(chunk.tick);
      else context.ticks.wait_consumed(call.root, chunk.tick - context::buffers);
      write(chunk);
      context.rounds.post(chunk.tick);
    }
    if (root) keep(chunk);
    if (!writes) {
      context.rounds.report_reading(chunk.tick, read(chunk));
      if (!root_writes && c == 0) look_at_senders(context, call, chunk, chunks, most, lengths);
      context.ticks.consume(chunk.tick);
    }
  }
  copying::fence();
  context.ticks.advance(chunks);
  if (writes) context.ticks.consume(context.ticks.now());
  lengths.report();
}

// Returns whether a writer could do its part before the readers come.
inline bool chunks_ready(CollectiveContext& context, const Call& call) {
  return context.rounds.ready(divide_up(call.bytes, chunk_bytes(context, call.bytes)));
}

// Returns the part of our chunk that the member has.
template <class Most>
Chunk of_sender(const CollectiveContext& context, const Call& call, int member, const Chunk& chunk, Most most) {
  const std::size_t length = context.rounds.published_length(member, chunk.tick);
  if (length == call.bytes) [[likely]]
    return chunk;
  return clipped(length, most(length), chunk.index, call.bytes, chunk.tick);
}

// Waits for a chunk of `member` and calls copy(from) with its buffer. Returns as Rounds::timed.
template <class Copy>
std::uint64_t read_chunk(CollectiveContext& context, int member, const Chunk& chunk, Copy copy) {
  context.ticks.wait(member, chunk.tick);
  return context.rounds.timed(chunk.tick, member, [&] { copy(context.rounds.buffer(member, chunk.tick)); });
}
// Copies a chunk to `to` from the buffer of `member`, where it lies at `place`.
inline std::uint64_t read_chunk(CollectiveContext& context, int member, const Chunk& chunk, std::size_t place,
                                std::byte* to, copying::Stores stores) {
  return read_chunk(context, member, chunk, [&](const std::byte* from) {
    put_from(context, member, chunk.tick, to, from + place, chunk.bytes, stores);
  });
}

}  // namespace nearfield::collectives
