// Long vectors and blocks of rooted operations: chunks through copy buffers, filled and read at the same time.
//
//   writers   wait until all readers consumed c - 4, fill, post(c)                 the root, or all others
//   readers   for each writer: wait until it posted c, read; then consume(c)       all others, or the root
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

struct Chunk {
  std::size_t at, bytes;  // of the vector or of each block
  std::uint64_t tick;
};

// Chunks of `most` bytes. write(chunk) fills our buffer; keep(chunk) does what the root needs no one else for;
// read(chunk) waits for who writes, reads, and returns how long reading took (read_chunk).
template <class Write, class Keep, class Read>
void rooted_by_chunks(Track& track, const Call& call, std::size_t most, Write write, Keep keep, Read read) {
  const bool root = track.rank() == call.root, root_writes = operation(call.collective).gives.who == Who::root;
  const bool writes = root == root_writes;
  const std::size_t chunks = divide_up(call.bytes, most);
  track.begin_rooted_rounds();
  const std::uint64_t first = track.tick() + 1;
  for (std::size_t c = 0; c < chunks; ++c) {
    const Chunk chunk{c * most, std::min(most, call.bytes - c * most), first + c};
    if (writes) {
      // In the first rounds of an operation the readers are those of an earlier one, whoever they were.
      if (root_writes || c < team::buffers) track.wait_buffer_free(chunk.tick);
      else track.wait_consumed(call.root, chunk.tick - team::buffers);
      write(chunk);
      track.post(chunk.tick);
    }
    if (root) keep(chunk);
    if (!writes) {
      track.tell_reading(chunk.tick, read(chunk));
      track.consume(chunk.tick);
    }
  }
  copying::fence();
  track.advance(chunks);
  if (writes) track.consume(track.tick());
}

// What read() makes, and how long it takes where the writer wants to know: of a member's buffer or of all (-1).
template <class Read>
std::uint64_t timed_reading(const Track& track, std::uint64_t tick, int member, Read read) {
  const std::uint64_t begun = track.begin_reading(tick, member);
  read();
  return begun ? processor::ticks() - begun : 0;
}

// Copies a chunk to `to` out of the buffer of `member`, where it lies at `place`.
// copy(from): what takes the chunk out of the member's buffer.
template <class Copy>
std::uint64_t read_chunk(Track& track, int member, const Chunk& chunk, Copy copy) {
  track.wait_posted(member, chunk.tick);
  return timed_reading(track, chunk.tick, member, [&] { copy(track.buffer(member, chunk.tick)); });
}
inline std::uint64_t read_chunk(Track& track, int member, const Chunk& chunk, std::size_t place, std::byte* to,
                                copying::Stores stores) {
  return read_chunk(track, member, chunk, [&](const std::byte* from) {
    put_from(track, member, chunk.tick, to, from + place, chunk.bytes, stores);
  });
}

}  // namespace nearfield::collectives
