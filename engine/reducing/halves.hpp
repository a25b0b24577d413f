// The 16-bit floats, and how a float is rounded to one: to nearest, ties to even. bfloat16 is the upper half of a
// float.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/processor/processor.h"

namespace nearfield::reducing {

using Float16 = NEARFIELD_FLOAT16;

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

template <class T>
T narrowed(float value) {
  if constexpr (std::is_same_v<T, Bfloat16>) return Bfloat16::from(value);
  else return T(value);
}

}  // namespace nearfield::reducing
