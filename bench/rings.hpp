// Rings through which ranks hand each other data by two copies, the second of which overlaps the first.
//
// Everybody copies what it contributes into a ring of its own, in chunks, from which the others read it while the next
// chunk is written; no line of a user's array leaves its core. Memory of a ring is used again once it has moved from
// the readers' private caches to the shared one: rings span twice the private cache, and all rings of a shared cache
// less than half of it. Cores that share no cache fill them by streaming stores.
//
//   writer   waits until drained of all members >= position + group - span;  fills;  filled = position
//   reader   waits until the writer's filled >= position;  reads;  drained = position
//
// All streams advance together, also those of ranks that write nothing: one position says where each is.
#pragma once
#include <emmintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/ranks.hpp"

namespace bench {

// The first CPU's unified cache of a level; nothing where the kernel does not tell.
struct Cache {
  std::size_t bytes = 0;
  int cpus = 1;  // that share it
};

inline Cache cache_of(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string at = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int of = 0;
    std::string kind, sharers;
    std::size_t kibibytes = 0;
    if (!(std::ifstream(at + "level") >> of)) break;
    std::ifstream(at + "type") >> kind, std::ifstream(at + "size") >> kibibytes;
    std::ifstream(at + "shared_cpu_map") >> sharers;  // hexadecimal digits and commas
    if (of != level || kind != "Unified") continue;
    int cpus = 0;
    for (const char digit : sharers)
      if (std::isxdigit(static_cast<unsigned char>(digit)))
        cpus += std::popcount(unsigned(std::stoi(std::string(1, digit), nullptr, 16)));
    return {kibibytes << 10, std::max(cpus, 1)};
  }
  return {};
}

// How bytes are copied into rings and out of them. copied: by memcpy, which does what its authors found best for the
// CPU; in_words: by loads and stores of 32 bytes; streamed: into rings by streaming stores, out of them in words.
enum class Copies { copied, in_words, streamed };

using Word [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = char;

[[gnu::target("avx2")]] inline void copy_in_words(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) *reinterpret_cast<Word*>(to + i) = *reinterpret_cast<const Word*>(from + i);
  for (; i < n; ++i) to[i] = from[i];
}

inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  for (; i < n; ++i) to[i] = from[i];
}

inline bool has_words() { return __builtin_cpu_supports("avx2"); }

// to = a + b; `to` may be a.
template <class T>
[[gnu::target("avx2")]] std::size_t add_in_words(T* to, const T* a, const T* b, std::size_t n) {
  using Lanes [[gnu::vector_size(32), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  constexpr std::size_t lanes = 32 / sizeof(T);
  std::size_t j = 0;
  for (; j + lanes <= n; j += lanes)
    *reinterpret_cast<Lanes*>(to + j) = *reinterpret_cast<const Lanes*>(a + j) + *reinterpret_cast<const Lanes*>(b + j);
  return j;
}
template <class T>
void add(T* to, const T* a, const T* b, std::size_t n) {
  for (std::size_t j = has_words() ? add_in_words(to, a, b, n) : 0; j < n; ++j) to[j] = a[j] + b[j];
}

inline void look_again() {
  if (pinned) nearfield::processor::pause();
  else sched_yield();
}

class Rings {
 public:
  struct alignas(128) Counter {
    std::atomic<long> bytes;
  };
  struct Flags {  // written by their rank
    Counter filled, drained;
  };

  // What a rank moves with each chunk: one piece for everybody, or one for each of the others.
  struct Pattern {
    bool writes = false, one_each = false;
    std::vector<int> from;     // whom this rank reads, in this order
    std::vector<int> members;  // who takes part
  };
  struct Chunks {
    std::size_t bytes;
    Copies how;

    void in(std::byte* to, const std::byte* from, std::size_t n) const {
      if (how == Copies::streamed) copy_streaming(to, from, n);
      else out(to, from, n);
    }
    void out(std::byte* to, const std::byte* from, std::size_t n) const {
      if (how == Copies::copied || !has_words()) std::memcpy(to, from, n);
      else copy_in_words(to, from, n);
    }
    std::size_t stride() const { return std::max<std::size_t>(64, std::bit_ceil(bytes)); }
  };

  static std::size_t span() {
    static const std::size_t found = span_of_caches();
    return found;
  }
  static bool fits(const Chunks& chunks, bool one_each) {
    return chunks.stride() * std::size_t(one_each ? std::max(size - 1, 1) : 1) * 2 <= span();
  }

  Rings(Flags* flags, std::vector<std::byte*> memory) : flags_(flags), ring_(std::move(memory)) {}

  // Moves n bytes a piece. `source(i)`: the piece for everybody (i = 0), or for the i-th rank after this one;
  // `take(peer, offset, at, m)`: m bytes of the peer's piece are at `at`.
  template <class Source, class Take>
  void exchange(const Pattern& pattern, std::size_t n, const Chunks& chunks, Source source, Take take) {
    const int pieces = pattern.one_each ? size - 1 : 1;
    const std::size_t stride = chunks.stride();
    const long group = long(stride) * pieces;
    for (std::size_t offset = 0; offset < n; offset += chunks.bytes, at_ += group) {
      const std::size_t m = std::min(chunks.bytes, n - offset);
      if (pattern.writes) {
        wait_for_room(pattern, group);
        for (int i = 0; i < pieces; ++i)
          chunks.in(place(rank, at_ + i * long(stride)), source(pattern.one_each ? i + 1 : 0) + offset, m);
        if (chunks.how == Copies::streamed) nearfield::processor::finish_streams();
        flags_[rank].filled.bytes.store(at_ + group, std::memory_order_release);  // pairs with the load below
      }
      for (const int peer : pattern.from) {
        while (flags_[peer].filled.bytes.load(std::memory_order_acquire) < at_ + group) look_again();
        const int piece = pattern.one_each ? (rank - peer + size) % size - 1 : 0;
        take(peer, offset, place(peer, at_ + piece * long(stride)), m);
      }
      flags_[rank].drained.bytes.store(at_ + group, std::memory_order_release);  // pairs with wait_for_room
    }
  }

  // For chunks of another size: on all ranks, which meet before and after.
  void begin_anew() {
    at_ = ((at_ >> 20) + 1) << 20;
    least_drained_ = at_;
    flags_[rank].filled.bytes.store(at_, std::memory_order_relaxed);
    flags_[rank].drained.bytes.store(at_, std::memory_order_relaxed);
  }

 private:
  static std::size_t span_of_caches() {
    const Cache last = cache_of(3);
    const std::size_t own = cache_of(2).bytes ? cache_of(2).bytes : 1 << 20;
    const std::size_t most = last.bytes ? last.bytes / 2 / std::size_t(std::min(size, last.cpus)) : 2 * own;
    return std::bit_floor(std::max<std::size_t>(std::min(2 * own, most), 512 << 10));
  }

  std::byte* place(int of, long position) const {
    return ring_[std::size_t(of)] + (std::size_t(position) & (span_ - 1));
  }

  void wait_for_room(const Pattern& pattern, long group) {
    const long needed = at_ + group - long(span_);
    if (least_drained_ >= needed) return;
    long least = at_;
    for (const int member : pattern.members) {
      if (member == rank) continue;
      long drained;
      while ((drained = flags_[member].drained.bytes.load(std::memory_order_acquire)) < needed) look_again();
      least = std::min(least, drained);
    }
    least_drained_ = least;
  }

  Flags* flags_;
  std::vector<std::byte*> ring_;
  const std::size_t span_ = span();
  long at_ = 0, least_drained_ = 0;
};

}  // namespace bench
