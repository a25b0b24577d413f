#include "engine/copying/copy.hpp"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <atomic>

namespace nearfield::copying {
namespace {

std::atomic<std::uint64_t> lines_streamed{0};
constexpr std::size_t line = 64;
constexpr std::size_t streaming_pays = 1024;  // shorter copies are over before the fence is
constexpr std::size_t claiming_pays = 2048;   // rep movsb needs some time to begin

using CopyLines = void (*)(std::byte* to, const std::byte* from, std::size_t lines);

__attribute__((target("avx512f"))) void stream_avx512(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * line), _mm512_loadu_si512(from + i * line));
}

__attribute__((target("avx2"))) void stream_avx2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i) {
    const auto a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * line));
    const auto b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * line + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i * line), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i * line + 32), b);
  }
}

void stream_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < 4 * lines; ++i)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i * 16),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 16)));
}

__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i) _mm512_storeu_si512(to + i * line, _mm512_loadu_si512(from + i * line));
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < 2 * lines; ++i)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * 32),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * 32)));
}

void copy_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < 4 * lines; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 16),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 16)));
}

// Enhanced rep movsb writes whole lines without a read for ownership. Sanitizers do not see what it touches.
bool can_claim() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return false;
#endif
  constexpr unsigned enhanced = 1u << 9;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & enhanced);
}

// The widest that this CPU has.
CopyLines widest(CopyLines avx512, CopyLines avx2, CopyLines sse2) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") ? avx512 : __builtin_cpu_supports("avx2") ? avx2 : sse2;
}

CopyLines streaming() {
  static const CopyLines stream = widest(stream_avx512, stream_avx2, stream_sse2);
  return stream;
}

CopyLines vector() {
  static const CopyLines copy = widest(copy_avx512, copy_avx2, copy_sse2);
  return copy;
}

}  // namespace

void fence() noexcept { _mm_sfence(); }

void copy_hybrid(void* to, const void* from, std::size_t bytes, Stores stores) noexcept {
  auto* d = static_cast<std::byte*>(to);
  const auto* s = static_cast<const std::byte*>(from);
  const auto [head, lines, of_eight] = parts_of(reinterpret_cast<std::uintptr_t>(d), bytes, stores);
  if (!lines) return copy(to, from, bytes);
  copy(d, s, head);
  const CopyLines stream = streaming();
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
  lines_streamed.fetch_add(streamed, std::memory_order_relaxed);
}

void copy_large(void* to, const void* from, std::size_t bytes, Store store) noexcept {
  if (store == Store::claiming) {
    static const bool can = can_claim();
    if (can && bytes >= claiming_pays) asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
    else std::memcpy(to, from, bytes);
    return;
  }
  if (store == Store::vector) {
    const std::size_t lines = bytes / line;
    vector()(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), lines);
    std::memcpy(static_cast<std::byte*>(to) + lines * line, static_cast<const std::byte*>(from) + lines * line,
                bytes - lines * line);
    return;
  }
  if (store == Store::temporal || bytes < streaming_pays) {
    std::memcpy(to, from, bytes);
    return;
  }
  const CopyLines stream = streaming();
  auto* d = static_cast<std::byte*>(to);
  const auto* s = static_cast<const std::byte*>(from);
  const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(d) % line) % line;
  const std::size_t lines = (bytes - head) / line, tail = bytes - head - lines * line;
  std::memcpy(d, s, head);
  stream(d + head, s + head, lines);
  std::memcpy(d + head + lines * line, s + head + lines * line, tail);
  _mm_sfence();
  lines_streamed.fetch_add(lines, std::memory_order_relaxed);
}

std::uint64_t streamed_lines() noexcept { return lines_streamed.load(std::memory_order_relaxed); }

}  // namespace nearfield::copying
