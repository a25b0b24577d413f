// bfloat16: the upper half of a float, to which it is rounded to nearest, ties to even.
#pragma once
#include <cstdint>
#include <cstring>

namespace nearfield::reducing {

struct Bfloat16 {
  std::uint16_t bits;
  explicit operator float() const {
    const std::uint32_t wide = std::uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  static Bfloat16 from(float value) {
    std::uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    if ((wide & 0x7fffffff) > 0x7f800000) return {std::uint16_t(wide >> 16 | 0x40)};  // NaN stays NaN
    return {std::uint16_t((wide + 0x7fff + (wide >> 16 & 1)) >> 16)};
  }
};

}  // namespace nearfield::reducing
