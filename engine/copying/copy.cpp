#include "engine/copying/copy.hpp"

#include <algorithm>

#include "engine/base/globals.hpp"
#include "engine/copying/kernels.hpp"
#include "engine/processor/processor.h"

namespace nearfield::copying {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t streaming_pays = 1024;  // shorter copies take less time than the fence
constexpr std::size_t claiming_pays = 2048;   // rep movsb needs some time to begin; glibc's memcpy has the same

// Past the caches.
void copy_streamed(void* to, const void* from, std::size_t bytes) noexcept {
  CopyLines& stream = streaming_lines();
  auto* d = static_cast<std::byte*>(to);
  const auto* s = static_cast<const std::byte*>(from);
  const std::size_t head = std::min((line - reinterpret_cast<std::uintptr_t>(d) % line) % line, bytes);
  const std::size_t lines = (bytes - head) / line, tail = bytes - head - lines * line;
  std::memcpy(d, s, head);
  stream(d + head, s + head, lines);
  std::memcpy(d + head + lines * line, s + head + lines * line, tail);
  processor::finish_streams();
  globals().lines_streamed.fetch_add(lines, std::memory_order_relaxed);
}

}  // namespace

void fence() noexcept { processor::finish_streams(); }

void copy_hybrid(void* to, const void* from, std::size_t bytes, Stores stores) noexcept {
  auto* d = static_cast<std::byte*>(to);
  const auto* s = static_cast<const std::byte*>(from);
  const auto [head, lines, of_eight] = parts_of(reinterpret_cast<std::uintptr_t>(d), bytes, stores);
  if (!lines) return copy(to, from, bytes);
  copy(d, s, head);
  CopyLines& stream = streaming_lines();
  std::size_t streamed = 0;
  if (of_eight >= 8) {
    stream(d + head, s + head, streamed = lines);
  } else {
    for (std::size_t at = 0; at < lines; at += 8) {
      const std::size_t n = std::min<std::size_t>(8, lines - at), past = std::min<std::size_t>(of_eight, n);
      stream(d + head + at * line, s + head + at * line, past);
      std::memcpy(d + head + (at + past) * line, s + head + (at + past) * line, (n - past) * line);
      streamed += past;
    }
  }
  copy(d + head + lines * line, s + head + lines * line, bytes - head - lines * line);
  globals().lines_streamed.fetch_add(streamed, std::memory_order_relaxed);
}

void copy_large(void* to, const void* from, std::size_t bytes, Store store) noexcept {
  if (store == Store::claiming) {
    static const bool can = processor::can_claim();
    if (can && bytes >= claiming_pays) processor::claim(to, from, bytes);
    else std::memcpy(to, from, bytes);
    return;
  }
  if (store == Store::vector) {
    const std::size_t lines = bytes / line;
    vector_lines()(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), lines);
    std::memcpy(static_cast<std::byte*>(to) + lines * line, static_cast<const std::byte*>(from) + lines * line,
                bytes - lines * line);
    return;
  }
  if (store == Store::temporal || bytes < streaming_pays) std::memcpy(to, from, bytes);
  else copy_streamed(to, from, bytes);
}

std::uint64_t streamed_lines() noexcept { return globals().lines_streamed.load(std::memory_order_relaxed); }

}  // namespace nearfield::copying
