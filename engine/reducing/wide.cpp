#include "engine/reducing/wide.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>

#include "engine/processor/processor.h"
#include "engine/reducing/bfloat16.hpp"

namespace nearfield::reducing {
namespace {

using Float16 = NEARFIELD_FLOAT16;

float widened(Float16 value) { return float(value); }
float widened(Bfloat16 value) { return float(value); }
template <class T>
T narrowed(float value) {
  if constexpr (std::is_same_v<T, Bfloat16>) return Bfloat16::from(value);
  else return T(value);
}

// Blocks of the running value in float32, input by input, so that loops over elements are vectorised.
template <Op op, class T>
void once_rounded(void* const* outs, std::size_t nout, const void* const* ins, std::size_t nin, std::size_t count) {
  constexpr std::size_t block = 512;
  std::array<float, block> value;
  std::array<T, block> given;
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    for (std::size_t k = 0; k < nin; ++k) {
      std::memcpy(given.data(), static_cast<const T*>(ins[k]) + at, n * sizeof(T));
      for (std::size_t i = 0; i < n; ++i) {
        const float next = widened(given[i]);
        value[i] = k == 0 ? next : op == Op::sum ? value[i] + next : value[i] * next;
      }
    }
    for (std::size_t i = 0; i < n; ++i) given[i] = narrowed<T>(value[i]);
    for (std::size_t o = 0; o < nout; ++o) std::memcpy(static_cast<T*>(outs[o]) + at, given.data(), n * sizeof(T));
  }
}

template <class T>
void scale_as(void* data, std::size_t count, double factor) {
  auto* const values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 2) values[i] = narrowed<T>(widened(values[i]) * float(factor));
    else values[i] *= T(factor);
  }
}

}  // namespace

FoldFn wide_fold(Op op, Type type) noexcept {
  if (op != Op::sum && op != Op::prod) return nullptr;
  if (type == Type::f16) return op == Op::sum ? once_rounded<Op::sum, Float16> : once_rounded<Op::prod, Float16>;
  if (type == Type::bf16) return op == Op::sum ? once_rounded<Op::sum, Bfloat16> : once_rounded<Op::prod, Bfloat16>;
  return nullptr;
}

bool can_scale(Type type) noexcept {
  return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64 || type == Type::c32 ||
         type == Type::c64;
}

void scale(void* data, std::size_t count, Type type, double factor) noexcept {
  switch (type) {
    case Type::f16: return scale_as<Float16>(data, count, factor);
    case Type::bf16: return scale_as<Bfloat16>(data, count, factor);
    case Type::f32: return scale_as<float>(data, count, factor);
    case Type::f64: return scale_as<double>(data, count, factor);
    case Type::c32: return scale_as<float>(data, 2 * count, factor);
    default: return scale_as<double>(data, 2 * count, factor);
  }
}

}  // namespace nearfield::reducing
