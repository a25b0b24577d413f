// Shared words of one context, and their writers. Every member owns one ContextControlBlock of each context; the first
// member also owns the words that all of them write (ContextGate).
//
// All counters grow and are never reset, so members need not agree before they reuse them. The protocols are drawn in
// connector.hpp, rounds.hpp, buffer_exchange.hpp, shared_work.hpp and barrier.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/reach/attach_agreement.hpp"
#include "engine/team/control_block.hpp"
#include "engine/waiting/wake_word.hpp"

namespace nearfield::context {

using team::line;

inline constexpr std::size_t line_payload = line - 8, slot_payload = 4096;  // bytes
inline constexpr unsigned buffers = 4;
inline constexpr std::uint64_t no_staging = 1;  // in place of an offset: the member has no memory for staging
// In place of the length of a member that has published none, since it runs another row or has found different lengths.
inline constexpr std::size_t no_length = ~std::size_t{0};
// Entries of `called`. Rings and buffers have fewer, so a member is never so many calls ahead of one that waits for it.
inline constexpr unsigned calls_known = 256;
// Bytes of a member's own buffers for rounds, allocated at the team's first rounds.
constexpr std::size_t staging_bytes(std::size_t buffer_bytes) { return buffers * buffer_bytes; }

// Records whose payload and number share cache lines: a reader finds both at once. `more`: entries that a writer wants
// beyond one when it waits for them.
template <unsigned count, std::size_t bytes, unsigned more>
struct RingControlBlock {
  static constexpr unsigned entries = count, batch = more, length_bits = 16;
  static constexpr std::size_t payload_bytes = bytes;
  alignas(line) Atomic<std::uint64_t> consumed;  // owner: it has read what it wants of all records up to this number
  struct alignas(line) Record {
    Record() noexcept : head(0) {}  // leaves the payload: zeroing it takes half of a team's creation
    Atomic<std::uint64_t> head;     // owner: number << length_bits | bytes of the payload
    alignas(bytes % 16 ? 8 : 16) std::byte payload[bytes];  // owner, published by head
  };
  Record record[count];
};

// Where a buffer of a round lies.
struct BufferPlace {
  static constexpr std::uint64_t kind_bits = 3, sampled_bit = 4, returned_bit = 8;
  static constexpr unsigned sum_shift = 48;
  // The offset in the segment, a multiple of 64. Its low bits hold the kind and the two flags named above; from
  // sum_shift on lies a hash of the writer's length and of the tick.
  std::uint64_t word;
  std::size_t offset() const { return word & ((std::uint64_t{1} << sum_shift) - 64); }
  std::size_t kind() const { return word & kind_bits; }  // the kind of stores that have filled it
  bool sampled() const { return word & sampled_bit; }    // the writer asks for the time of reading
  bool returned() const { return word & returned_bit; }  // it lies in the segment of the other one of two members
  bool of(std::size_t length, std::uint64_t tick) const { return word >> sum_shift == sum(length, tick); }
  static constexpr std::uint64_t sum(std::size_t length, std::uint64_t tick) {
    return ((length + tick * 0xc2b2ae3d27d4eb4f) * 0x9e3779b97f4a7c15) >> sum_shift;
  }
};

struct ExchangedBuffers {
  reach::RemoteBuffer send, recv;
  std::uint64_t note;  // number of the exchange << 48 | a word for peers that the algorithm defines
};

struct ContextControlBlock {
  alignas(line) Atomic<std::uint64_t> posted;  // owner: the last tick that it has published
  Atomic<std::uint64_t> staging;  // owner, published by posted: its buffers for rounds, no_staging, or 0: not yet
  BufferPlace place[buffers];     // owner, published by posted
  ExchangedBuffers exchange[2];   // owner, published by posted
  alignas(line) Atomic<std::uint64_t> consumed;  // owner: it has read what it wants of all ticks up to this one
  Atomic<std::uint64_t> reading[buffers];        // owner: tick << 24 | clock ticks in which it read that tick's buffers
  alignas(line) Atomic<std::uint64_t> gathered;  // owner: the last meeting to which all members below it have come
  alignas(line) Atomic<std::uint64_t> released;  // owner: the last meeting to which all members have come
  // Owner: its call (collectives::pack), 0: none; for reports only.
  alignas(line) Atomic<std::uint64_t> doing;
  Atomic<std::uint64_t> calls;                // owner: number of collective calls that it has begun
  Atomic<std::uint64_t> called[calls_known];  // owner, published by calls: call n, as `doing`, at n % calls_known
  // Owner, published by ProcessHeader::asleep_on: the word that its suspended body awaits, as in
  // MemberControlBlock::awaits.
  Atomic<std::uint32_t> awaits, awaits_what;
  Atomic<std::uint64_t> awaits_value;
  std::uint64_t lengths[buffers];  // owner, published by posted: bytes of its vector or block in that tick's operation
  reach::AttachAgreement::ControlBlock settling;
  RingControlBlock<128, line_payload, 64> lines;
  RingControlBlock<16, slot_payload, 0> slots;
};
static_assert(offsetof(ContextControlBlock, consumed) == line);  // a reader at a barrier finds all of these in one line

struct ContextGate {
  alignas(line) Atomic<std::uint64_t> gate;      // every member adds one per barrier (acq_rel)
  alignas(line) Atomic<std::uint32_t> sleepers;  // number of members asleep that await all: each counts itself
  waiting::WakeWord wake_word;                   // written by the member that completes what the sleepers await
  // round << 32 | number of parts << 16 | next part (shared_work.hpp). The last member to arrive
  // begins a round, and its number of parts counts; all members take parts by compare-and-swap.
  alignas(line) Atomic<std::uint64_t> parts;
  Atomic<std::uint64_t> verdict;  // round << 2 | BufferExchange::Verdict: any member that takes a part, before `done`
  alignas(line) Atomic<std::uint64_t> done;  // parts done so far in all rounds; each member adds its own
};

}  // namespace nearfield::context
