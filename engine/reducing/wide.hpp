// What callers outside of MPI want of reductions beside fold.hpp: sums and products of 16-bit floats that are rounded
// once, and averages.
//
// One kernel call rounds once, whatever the number of its inputs. Where a row combines the operands of a collective in
// several calls (trees of large teams), each of them rounds.
#pragma once
#include "engine/reducing/fold.hpp"

namespace nearfield::reducing {

// Returns a kernel that rounds once; nullptr: fold()'s does, or MPI does not define the operator on the type. `skip` as
// for simd_fold().
FoldFn wide_fold(Op op, Type type, unsigned skip = 0) noexcept;

// Multiplies `count` elements by a factor. pre: can_scale(type).
bool can_scale(Type type) noexcept;
void scale(void* data, std::size_t count, Type type, double factor) noexcept;

}  // namespace nearfield::reducing
