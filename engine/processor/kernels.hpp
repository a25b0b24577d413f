// Vector kernels, written once and compiled for every instruction set by Highway, of which only headers are used: its
// run-time dispatch is in a shared library, which would pull libstdc++ into every rank (2 ms of start-up).
//
//   #define HWY_TARGET_INCLUDE "this file"
//   #include "engine/processor/kernels.hpp"     includes Highway; the rest of the file is compiled once per target
//   ...
//   #if HWY_ONCE
//   best({NEARFIELD_COMPILED(kernel)})          the pointer to HWY_NAMESPACE::kernel of the best target
#ifndef NEARFIELD_KERNELS_HPP
#define NEARFIELD_KERNELS_HPP

// Each of these targets would add code for little speed.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/detect_targets.h>

#include <initializer_list>

#include "engine/processor/processor.h"

#if HWY_TARGETS & HWY_AVX3
#define NEARFIELD_AVX512(kernel) {N_AVX3::kernel, processor::Set::avx512},
#else
#define NEARFIELD_AVX512(kernel)
#endif
#if HWY_TARGETS & HWY_AVX2
#define NEARFIELD_AVX2(kernel) {N_AVX2::kernel, processor::Set::avx2},
#else
#define NEARFIELD_AVX2(kernel)
#endif
#if HWY_TARGETS & HWY_SSE4
#define NEARFIELD_SSE4(kernel) {N_SSE4::kernel, processor::Set::sse4},
#else
#define NEARFIELD_SSE4(kernel)
#endif
#if HWY_TARGETS & HWY_NEON
#define NEARFIELD_NEON(kernel) {N_NEON::kernel, processor::Set::neon},
#else
#define NEARFIELD_NEON(kernel)
#endif
// In the order of preference.
#define NEARFIELD_COMPILED(kernel) \
  NEARFIELD_AVX512(kernel) NEARFIELD_AVX2(kernel) NEARFIELD_SSE4(kernel) NEARFIELD_NEON(kernel)

namespace nearfield::processor {

template <class Kernel>
struct Compiled {
  Kernel* kernel;
  Set set;
};

// Returns the kernel of the best set that this processor has, after skipping the `skip` best; nullptr: none is left.
template <class Kernel>
Kernel* best(std::initializer_list<Compiled<Kernel>> compiled, unsigned skip = 0) {
  for (const auto& each : compiled)
    if (has(each.set) && skip-- == 0) return each.kernel;
  return nullptr;
}

}  // namespace nearfield::processor
#endif

#include <hwy/foreach_target.h>
#include <hwy/highway.h>
