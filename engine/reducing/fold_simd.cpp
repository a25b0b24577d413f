// Vector kernels, written once and compiled for every instruction set (Highway); the best one is taken at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/reducing/fold_simd.cpp"
#include <type_traits>

#include "engine/processor/kernels.hpp"
#include "engine/reducing/fold.hpp"

HWY_BEFORE_NAMESPACE();
namespace nearfield::reducing {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Minimum and maximum agree with the plain kernels also for NaN operands.
struct Add {
  template <class V>
  V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Mul {
  template <class V>
  V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct Min {
  template <class V>
  V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Lt(b, a), b, a);
  }
};
struct Max {
  template <class V>
  V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Lt(a, b), b, a);
  }
};
struct And {
  template <class V>
  V operator()(V a, V b) const {
    return hn::And(a, b);
  }
};
struct Or {
  template <class V>
  V operator()(V a, V b) const {
    return hn::Or(a, b);
  }
};
struct Xor {
  template <class V>
  V operator()(V a, V b) const {
    return hn::Xor(a, b);
  }
};

// Loads elements that do not fill a vector, through scratch memory of a vector's length.
template <class D, class T>
HWY_INLINE auto load_partial(D d, const T* from, std::size_t count) {
  HWY_ALIGN T scratch[hn::MaxLanes(d)] = {};
  __builtin_memcpy(scratch, from, count * sizeof(T));
  return hn::Load(d, scratch);
}

// Not inlined: each of the three bodies is compiled once for every type, operator and instruction set.
template <class T, class Combine, std::size_t fixed_inputs, std::size_t fixed_outputs>
HWY_NOINLINE void pass(T* const* outs, std::size_t any_outputs, const T* const* ins, std::size_t nin,
                       std::size_t count) {
  const std::size_t nout = fixed_outputs ? fixed_outputs : any_outputs;
  const hn::ScalableTag<T> d;
  const Combine combine;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t inputs = fixed_inputs ? fixed_inputs : nin;
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto a = hn::LoadU(d, ins[0] + i), b = hn::LoadU(d, ins[0] + i + lanes);
    auto c = hn::LoadU(d, ins[0] + i + 2 * lanes), e = hn::LoadU(d, ins[0] + i + 3 * lanes);
    for (std::size_t k = 1; k < inputs; ++k) {
      a = combine(a, hn::LoadU(d, ins[k] + i));
      b = combine(b, hn::LoadU(d, ins[k] + i + lanes));
      c = combine(c, hn::LoadU(d, ins[k] + i + 2 * lanes));
      e = combine(e, hn::LoadU(d, ins[k] + i + 3 * lanes));
    }
    for (std::size_t o = 0; o < nout; ++o) {
      hn::StoreU(a, d, outs[o] + i);
      hn::StoreU(b, d, outs[o] + i + lanes);
      hn::StoreU(c, d, outs[o] + i + 2 * lanes);
      hn::StoreU(e, d, outs[o] + i + 3 * lanes);
    }
  }
  for (; i + lanes <= count; i += lanes) {
    auto a = hn::LoadU(d, ins[0] + i);
    for (std::size_t k = 1; k < inputs; ++k) a = combine(a, hn::LoadU(d, ins[k] + i));
    for (std::size_t o = 0; o < nout; ++o) hn::StoreU(a, d, outs[o] + i);
  }
  if (const std::size_t rest = count - i) {
    auto a = load_partial(d, ins[0] + i, rest);
    for (std::size_t k = 1; k < inputs; ++k) a = combine(a, load_partial(d, ins[k] + i, rest));
    HWY_ALIGN T scratch[hn::MaxLanes(d)];
    hn::Store(a, d, scratch);
    for (std::size_t o = 0; o < nout; ++o) __builtin_memcpy(outs[o] + i, scratch, rest * sizeof(T));
  }
}

// With more streams than prefetchers follow, a block of the running value stays in the first-level cache and one
// input is read at a time.
template <class T, class Combine>
void blocks(T* const* outs, std::size_t nout, const T* const* ins, std::size_t nin, std::size_t count) {
  constexpr std::size_t block = 4096 / sizeof(T);
  HWY_ALIGN T value[block];
  T* const into[1] = {value};
  for (std::size_t i = 0; i < count; i += block) {
    const std::size_t n = count - i < block ? count - i : block;
    const T* first[2] = {ins[0] + i, ins[1] + i};
    pass<T, Combine, 2, 1>(into, 1, first, 2, n);
    for (std::size_t k = 2; k < nin; ++k) {
      const T* next[2] = {value, ins[k] + i};
      pass<T, Combine, 2, 1>(into, 1, next, 2, n);
    }
    for (std::size_t o = 0; o < nout; ++o) __builtin_memcpy(outs[o] + i, value, n * sizeof(T));
  }
}

template <class T, class Combine>
void kernel(void* const* outs, std::size_t nout, const void* const* ins, std::size_t nin, std::size_t count) {
  auto* const* to = reinterpret_cast<T* const*>(outs);
  auto* const* from = reinterpret_cast<const T* const*>(ins);
  if (nin == 2 && nout == 1) pass<T, Combine, 2, 1>(to, 1, from, 2, count);
  else if (nin == 2) pass<T, Combine, 2, 0>(to, nout, from, 2, count);
  else if (nin <= 8) pass<T, Combine, 0, 0>(to, nout, from, nin, count);
  else blocks<T, Combine>(to, nout, from, nin, count);
}

// bfloat16 by its words: computes in float and rounds to the nearest, ties to even, after every operation, as the plain
// kernel does. (Highway's own conversion cuts off.)
template <class Combine, Op op>
void bfloat16_kernel(void* const* outs, std::size_t nout, const void* const* ins, std::size_t nin, std::size_t count) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> dw;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::uint16_t, decltype(df)> dh;
  const Combine combine;
  const std::size_t lanes = hn::Lanes(df);
  // Fewer elements than a vector are faster one by one: 4 elements take 6 ns, by vectors 22.
  if (count < lanes) return plain_fold(op, Type::bf16)(outs, nout, ins, nin, count);
  auto widened = [&](auto halves) HWY_ATTR { return hn::ShiftLeft<16>(hn::PromoteTo(dw, halves)); };
  auto combined = [&](auto a, auto b) HWY_ATTR {
    const auto value = combine(hn::BitCast(df, a), hn::BitCast(df, b));
    const auto bits = hn::BitCast(dw, value);
    const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(dw, 1));
    const auto nearest = hn::Add(bits, hn::Add(even, hn::Set(dw, 0x7fff)));
    const auto still_nan = hn::Or(bits, hn::Set(dw, 0x400000));
    const auto is_nan = hn::RebindMask(dw, hn::IsNaN(value));
    return hn::And(hn::IfThenElse(is_nan, still_nan, nearest), hn::Set(dw, 0xffff0000));
  };
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t n = count - i < lanes ? count - i : lanes;
    auto load = [&](std::size_t k) HWY_ATTR {
      const auto* const from = static_cast<const std::uint16_t*>(ins[k]) + i;
      return widened(n == lanes ? hn::LoadU(dh, from) : load_partial(dh, from, n));
    };
    auto value = load(0);
    for (std::size_t k = 1; k < nin; ++k) value = combined(value, load(k));
    const auto halves = hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(value)));
    HWY_ALIGN std::uint16_t scratch[hn::MaxLanes(dh)];
    if (n < lanes) hn::Store(halves, dh, scratch);
    for (std::size_t o = 0; o < nout; ++o) {
      auto* const to = static_cast<std::uint16_t*>(outs[o]) + i;
      if (n == lanes) hn::StoreU(halves, dh, to);
      else __builtin_memcpy(to, scratch, n * sizeof *to);
    }
  }
}

FoldFn bfloat16(Op op) {
  switch (op) {
    case Op::sum: return bfloat16_kernel<Add, Op::sum>;
    case Op::prod: return bfloat16_kernel<Mul, Op::prod>;
    case Op::min: return bfloat16_kernel<Min, Op::min>;
    case Op::max: return bfloat16_kernel<Max, Op::max>;
    default: return nullptr;
  }
}

template <class T, bool multiplies>
FoldFn arithmetic(Op op) {
  switch (op) {
    case Op::sum: return kernel<T, Add>;
    case Op::min: return kernel<T, Min>;
    case Op::max: return kernel<T, Max>;
    case Op::prod:
      if constexpr (multiplies) return kernel<T, Mul>;
      else return nullptr;
    default: return nullptr;
  }
}

template <class T>
FoldFn bitwise(Op op) {
  switch (op) {
    case Op::band: return kernel<T, And>;
    case Op::bor: return kernel<T, Or>;
    case Op::bxor: return kernel<T, Xor>;
    default: return nullptr;
  }
}

// Signed and unsigned integers share the kernels that give the same bits: a fifth of what is compiled here.
template <class T, bool multiplies>
FoldFn integer(Op op) {
  using Word = std::make_unsigned_t<T>;
  if (op == Op::min) return kernel<T, Min>;
  if (op == Op::max) return kernel<T, Max>;
  const FoldFn found = arithmetic<Word, multiplies>(op);
  return found ? found : bitwise<Word>(op);
}

FoldFn lookup(Op op, Type type) {
  switch (type) {
    case Type::i8: return integer<std::int8_t, false>(op);
    case Type::i16: return integer<std::int16_t, true>(op);
    case Type::i32: return integer<std::int32_t, true>(op);
    case Type::i64: return integer<std::int64_t, false>(op);
    case Type::u8: return integer<std::uint8_t, false>(op);
    case Type::u16: return integer<std::uint16_t, true>(op);
    case Type::u32: return integer<std::uint32_t, true>(op);
    case Type::u64: return integer<std::uint64_t, false>(op);
    case Type::bf16: return bfloat16(op);
    case Type::f32: return arithmetic<float, true>(op);
    case Type::f64: return arithmetic<double, true>(op);
    case Type::byte: return bitwise<std::uint8_t>(op);
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nearfield::reducing
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nearfield::reducing {
FoldFn simd_fold(Op op, Type type, unsigned skip) noexcept {
  const auto lookup = processor::best<FoldFn(Op, Type)>({NEARFIELD_COMPILED(lookup)}, skip);
  return lookup ? lookup(op, type) : nullptr;
}
}  // namespace nearfield::reducing
#endif
