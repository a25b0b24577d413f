// Plain kernels for every operator and type, and the table of defined pairs. fold_simd.cpp replaces those that
// vectorise; the two are compared by the tests for every operator, type and instruction set.
#include "engine/reducing/fold.hpp"

#include <array>
#include <complex>
#include <cstring>
#include <type_traits>

#include "engine/processor/processor.h"
#include "engine/reducing/halves.hpp"

namespace nearfield::reducing {
namespace {

using Float128 = NEARFIELD_FLOAT128;

struct Boolean {
  std::uint8_t value;
};
template <class T>
struct Logical {
  T value;
};
template <class V, class I>
struct ValueIndex {
  V value;
  I index;
};
struct Byte {
  std::uint8_t value;
};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class V, class I>
inline constexpr bool is_pair<ValueIndex<V, I>> = true;
template <class T>
inline constexpr bool is_logical = std::is_same_v<T, Boolean>;
template <class T>
inline constexpr bool is_logical<Logical<T>> = true;
template <class T>
inline constexpr bool is_integer = std::is_integral_v<T>;
template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T> || std::is_same_v<T, Float128> ||
                                std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

template <Op op, class T>
constexpr bool defined() {
  if constexpr (op == Op::sum || op == Op::prod) return is_integer<T> || is_real<T> || is_complex<T>;
  else if constexpr (op == Op::min || op == Op::max) return is_integer<T> || is_real<T>;
  else if constexpr (op == Op::land || op == Op::lor || op == Op::lxor) return is_integer<T> || is_logical<T>;
  else if constexpr (op == Op::band || op == Op::bor || op == Op::bxor) return is_integer<T> || std::is_same_v<T, Byte>;
  else return is_pair<T>;
}

// 16-bit floats compute in float and round after every operation.
template <Op op, class T>
T combine(T a, T b) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return Bfloat16::from(combine<op, float>(float(a), float(b)));
  } else if constexpr (std::is_same_v<T, Float16>) {
    return Float16(combine<op, float>(float(a), float(b)));
  } else if constexpr (is_logical<T>) {
    const bool x = a.value != 0, y = b.value != 0;
    return {static_cast<decltype(a.value)>(op == Op::land ? x && y : op == Op::lor ? x || y : x != y)};
  } else if constexpr (std::is_same_v<T, Byte>) {
    return {combine<op, std::uint8_t>(a.value, b.value)};
  } else if constexpr (is_pair<T>) {
    const bool second = op == Op::minloc ? b.value < a.value : a.value < b.value;
    if (second) return b;
    if (a.value == b.value && b.index < a.index) return b;
    return a;
  } else if constexpr (is_complex<T>) {
    if constexpr (op == Op::sum) return {a.real() + b.real(), a.imag() + b.imag()};
    else return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (is_integer<T>) {
    // Sums and products wrap, without the undefined behaviour of signed overflow (or of promoted small products).
    using U = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
    if constexpr (op == Op::sum) return T(U(a) + U(b));
    else if constexpr (op == Op::prod) return T(U(a) * U(b));
    else if constexpr (op == Op::min) return b < a ? b : a;
    else if constexpr (op == Op::max) return a < b ? b : a;
    else if constexpr (op == Op::land) return T(a && b);
    else if constexpr (op == Op::lor) return T(a || b);
    else if constexpr (op == Op::lxor) return T(!a != !b);
    else if constexpr (op == Op::band) return T(a & b);
    else if constexpr (op == Op::bor) return T(a | b);
    else return T(a ^ b);
  } else {
    if constexpr (op == Op::sum) return a + b;
    else if constexpr (op == Op::prod) return a * b;
    else if constexpr (op == Op::min) return b < a ? b : a;
    else return a < b ? b : a;
  }
}

template <Op op, class T>
void kernel(void* const* outs, std::size_t nout, const void* const* ins, std::size_t nin, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(ins[0]) + i * sizeof(T), sizeof(T));
    for (std::size_t k = 1; k < nin; ++k) {
      T next;
      std::memcpy(&next, static_cast<const std::byte*>(ins[k]) + i * sizeof(T), sizeof(T));
      value = combine<op>(value, next);
    }
    for (std::size_t o = 0; o < nout; ++o)
      std::memcpy(static_cast<std::byte*>(outs[o]) + i * sizeof(T), &value, sizeof(T));
  }
}

template <Op op, class T>
constexpr FoldFn kernel_or_none() {
  if constexpr (defined<op, T>()) return kernel<op, T>;
  else return nullptr;
}

constexpr std::size_t op_count = std::size_t(Op::count), type_count = std::size_t(Type::count);
struct KernelRow {
  const char* name = "";
  std::size_t bytes = 0;
  std::array<FoldFn, op_count> kernels{};
};

template <class T, std::size_t... ops>
constexpr KernelRow row(const char* name, std::index_sequence<ops...>) {
  return {name, sizeof(T), {kernel_or_none<Op(ops), T>()...}};
}
template <class T>
constexpr KernelRow row(const char* name) {
  return row<T>(name, std::make_index_sequence<op_count>{});
}

// In the order of Type.
constexpr std::array<KernelRow, type_count> table = {
    KernelRow{"none", 0, {}},
    row<std::int8_t>("int8"),
    row<std::int16_t>("int16"),
    row<std::int32_t>("int32"),
    row<std::int64_t>("int64"),
    row<std::uint8_t>("uint8"),
    row<std::uint16_t>("uint16"),
    row<std::uint32_t>("uint32"),
    row<std::uint64_t>("uint64"),
    row<Float16>("float16"),
    row<Bfloat16>("bfloat16"),
    row<float>("float"),
    row<double>("double"),
    row<long double>("long double"),
    row<Float128>("float128"),
    row<std::complex<float>>("complex float"),
    row<std::complex<double>>("complex double"),
    row<std::complex<long double>>("complex long double"),
    row<Boolean>("bool"),
    row<Logical<std::int8_t>>("logical1"),
    row<Logical<std::int16_t>>("logical2"),
    row<Logical<std::int32_t>>("logical4"),
    row<Logical<std::int64_t>>("logical8"),
    row<Byte>("byte"),
    KernelRow{"character", 1, {}},
    row<ValueIndex<float, std::int32_t>>("{float, int}"),
    row<ValueIndex<double, std::int32_t>>("{double, int}"),
    row<ValueIndex<std::int64_t, std::int32_t>>("{long, int}"),
    row<ValueIndex<std::int32_t, std::int32_t>>("{int, int}"),
    row<ValueIndex<std::int16_t, std::int32_t>>("{short, int}"),
    row<ValueIndex<long double, std::int32_t>>("{long double, int}"),
    row<ValueIndex<float, float>>("{float, float}"),
    row<ValueIndex<double, double>>("{double, double}"),
    row<ValueIndex<std::int64_t, std::int64_t>>("{int64, int64}"),
};

}  // namespace

std::size_t size_of(Type type) noexcept { return table[std::size_t(type)].bytes; }

FoldFn plain_fold(Op op, Type type) noexcept { return table[std::size_t(type)].kernels[std::size_t(op)]; }

FoldFn fold(Op op, Type type) noexcept {
  static const auto best = [] {
    std::array<std::array<FoldFn, type_count>, op_count> all{};
    for (std::size_t o = 0; o < op_count; ++o) {
      for (std::size_t t = 0; t < type_count; ++t) {
        all[o][t] = plain_fold(Op(o), Type(t));
        if (!all[o][t]) continue;
        if (const FoldFn simd = simd_fold(Op(o), Type(t))) all[o][t] = simd;
      }
    }
    return all;
  }();
  return best[std::size_t(op)][std::size_t(type)];
}

const char* name(Op op) noexcept {
  static constexpr const char* names[] = {"sum",  "prod", "min", "max",  "land",   "lor",
                                          "lxor", "band", "bor", "bxor", "minloc", "maxloc"};
  static_assert(sizeof names / sizeof *names == op_count);
  return op < Op::count ? names[std::size_t(op)] : "?";
}

const char* name(Type type) noexcept { return type < Type::count ? table[std::size_t(type)].name : "?"; }

}  // namespace nearfield::reducing
