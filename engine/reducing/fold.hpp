// Reduction kernels: every predefined operator on every element type that it is defined for.
//
// A kernel combines any number of inputs from left to right and stores the result to any number of outputs, with the
// running value in registers: every input is loaded once and every output stored once. The order of operands is
// fixed, so floating-point results depend neither on the path nor on the instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

namespace nearfield::reducing {

enum class Op : std::uint8_t { sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, maxloc, count };

// Element types by representation, not by MPI name. Pairs with _i32 are the C structs {value, int}; the others are
// two equal values.
enum class Type : std::uint8_t {
  none,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f80,   // long double, 16 bytes: x87's on x86-64
  f128,  // IEEE's of 128 bits, which is long double on aarch64
  c32,   // complex float, 8 bytes
  c64,
  c80,
  boolean,   // bool
  logical1,  // Fortran LOGICAL of 1, 2, 4 or 8 bytes
  logical2,
  logical4,
  logical8,
  byte,       // bitwise operators only
  character,  // moved, never reduced
  f32_i32,
  f64_i32,
  i64_i32,
  i32_i32,
  i16_i32,
  f80_i32,
  f32_f32,
  f64_f64,
  i64_i64,
  count
};

std::size_t size_of(Type type) noexcept;  // bytes from one element to the next; 0 for none

// outs[0..nout) <- ins[0] op ins[1] op ... op ins[nin - 1], from left to right, `count` elements. Any output may be
// exactly one of the inputs; otherwise nothing overlaps. nin and nout are at least 1. Pointers need no alignment.
using FoldFn = void (*)(void* const* outs, std::size_t nout, const void* const* ins, std::size_t nin,
                        std::size_t count);

// Returns the kernel; nullptr: MPI does not define the operator on the type.
FoldFn fold(Op op, Type type) noexcept;

// Returns whether all operators on the type are associative to the last bit: integers and truth values.
constexpr bool associative(Type type) noexcept {
  return (type >= Type::i8 && type <= Type::u64) || (type >= Type::boolean && type <= Type::byte);
}

const char* name(Op op) noexcept;
const char* name(Type type) noexcept;

// Returns the vector kernel (fold_simd.cpp) of the best instruction set that this CPU has, after skipping the `skip`
// best. nullptr: there is none, or none is left.
FoldFn simd_fold(Op op, Type type, unsigned skip = 0) noexcept;
// Returns the plain kernel, which is the reference for all others.
FoldFn plain_fold(Op op, Type type) noexcept;

}  // namespace nearfield::reducing
