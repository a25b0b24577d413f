#include "engine/copying/kernels.hpp"

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/copying/kernels.cpp"
#include "engine/processor/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace nearfield::copying {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t line = 64;

template <class Store>
HWY_INLINE void copy_lines(std::byte* to, const std::byte* from, std::size_t lines, Store store) {
  const hn::CappedTag<std::uint8_t, line> d;
  constexpr std::size_t width = hn::MaxLanes(d), parts = line / width;
  auto* t = reinterpret_cast<std::uint8_t*>(to);
  const auto* f = reinterpret_cast<const std::uint8_t*>(from);
  for (; lines; --lines, t += line, f += line) {
    if constexpr (parts == 1) {
      store(hn::LoadU(d, f), d, t);
    } else if constexpr (parts == 2) {
      const auto a = hn::LoadU(d, f), b = hn::LoadU(d, f + width);
      store(a, d, t);
      store(b, d, t + width);
    } else {
      for (std::size_t i = 0; i < line; i += 4 * width) {
        const auto a = hn::LoadU(d, f + i), b = hn::LoadU(d, f + i + width);
        const auto c = hn::LoadU(d, f + i + 2 * width), e = hn::LoadU(d, f + i + 3 * width);
        store(a, d, t + i);
        store(b, d, t + i + width);
        store(c, d, t + i + 2 * width);
        store(e, d, t + i + 3 * width);
      }
    }
  }
}

void stream(std::byte* to, const std::byte* from, std::size_t lines) {
#ifdef __SANITIZE_THREAD__  // it does not see such stores
  copy_lines(to, from, lines, [](auto v, auto d, std::uint8_t* at) HWY_ATTR { hn::StoreU(v, d, at); });
#else
  copy_lines(to, from, lines, [](auto v, auto d, std::uint8_t* at) HWY_ATTR { hn::Stream(v, d, at); });
#endif
}

void vector(std::byte* to, const std::byte* from, std::size_t lines) {
  copy_lines(to, from, lines, [](auto v, auto d, std::uint8_t* at) HWY_ATTR { hn::StoreU(v, d, at); });
}

}  // namespace HWY_NAMESPACE
}  // namespace nearfield::copying
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nearfield::copying {
namespace {

// For processors without any of the instruction sets.
void plain(std::byte* to, const std::byte* from, std::size_t lines) { std::memcpy(to, from, lines * 64); }

CopyLines& or_plain(CopyLines* found) { return found ? *found : plain; }

}  // namespace

CopyLines& streaming_lines() noexcept {
  static CopyLines& best = or_plain(processor::best<CopyLines>({NEARFIELD_COMPILED(stream)}));
  return best;
}

CopyLines& vector_lines() noexcept {
  static CopyLines& best = or_plain(processor::best<CopyLines>({NEARFIELD_COMPILED(vector)}));
  return best;
}

}  // namespace nearfield::copying
#endif
