// Kernels that are compiled for every instruction set (Highway), since each converts 16-bit floats in its own way. The
// compiler vectorises them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/reducing/wide.cpp"
#include "engine/reducing/wide.hpp"

#include <algorithm>
#include <complex>
#include <cstring>

#include "engine/processor/kernels.hpp"
#include "engine/reducing/halves.hpp"

HWY_BEFORE_NAMESPACE();
namespace nearfield::reducing {
namespace HWY_NAMESPACE {

#include "engine/reducing/wide.def"

}  // namespace HWY_NAMESPACE
}  // namespace nearfield::reducing
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nearfield::reducing {
namespace baseline {
#include "engine/reducing/wide.def"
}  // namespace baseline

namespace {

template <class T>
void scale_as(void* data, std::size_t count, double factor) {
  auto* const values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 2) values[i] = narrowed<T>(float(values[i]) * float(factor));
    else values[i] *= T(factor);
  }
}

}  // namespace

FoldFn wide_fold(Op op, Type type, unsigned skip) noexcept {
  const auto found = [](unsigned skipped) {
    return processor::best<FoldFn(Op, Type)>({NEARFIELD_COMPILED(wide_lookup)}, skipped);
  };
  if (const auto lookup = found(skip)) return lookup(op, type);
  return skip == 0 || found(skip - 1) ? baseline::wide_lookup(op, type) : nullptr;  // the last one, of every processor
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
#endif
