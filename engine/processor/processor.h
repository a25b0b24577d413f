/* All code that depends on the processor beyond C++ and the C library: the interface here, and a file per architecture.
   C, C++ and the assembler include it, so it is written in their common syntax.

   For C++, in nearfield::processor:

     pause()                 between two polls of a word that another core will write; yields the core to its sibling
     await_loads()           between two polls without a pause: the second load does not begin before the first has its
                             value. Without it the processor loads many rounds ahead, and discards all of these loads
                             when the polled line changes, so that it sees the change later
     await_all()             before a look at the clock: waits until earlier loads and stores are done. Otherwise the
                             clock is read while stores of some kilobytes have yet to fetch their lines, and only kinds
                             of stores that have a fence of their own seem slow
     finish_streams()        orders earlier streaming stores before a release store that follows
     ticks()                 a monotonic clock of one rate on all cores of a machine, with a resolution of nanoseconds
     ticks_since(start)      ticks from then until all earlier loads and stores are done
     ticks_in(nanoseconds)   approximate number of ticks, for time slices: correct within a factor of four
     can_claim()             whether claim() is faster than any loop for lines that other cores hold
     claim(to, from, bytes)  copies, taking ownership of whole lines without reading them; ordered like other stores
                             pre: can_claim(), no overlap
     can_demote()            whether demote() does anything
     demote(at)              sends a line that has been written to the shared cache, where another core finds it sooner
                             than in this core's own; a hint
     NEARFIELD_RETURN_SLOT   address of the return address of the function that uses it
     describe(text, bytes)   name and revision, since measurements hold for one processor only. pre: bytes >= 64
     has(set)                whether the processor and the system support one of the instruction sets that vector
                             kernels are compiled for

   Models of the protocols have their own pause, ticks and can_demote instead (tests/engine/model/atomic.hpp).

   For the assembler, in the trampolines (mpi/preload/trampolines.S has the contracts):

     JUMP, BIND, BINDER, LOADER

   For all: NEARFIELD_FIRST_GLIBC, the symbol version of the C library's oldest functions;
   NEARFIELD_DLINFO_GLIBC, that of dlinfo; NEARFIELD_STAT_VERSION, the number of the layout of struct stat for
   __fxstat; NEARFIELD_RELOCATED_..., the relocations in which the loader stores addresses of functions;
   NEARFIELD_FLOAT16 and NEARFIELD_FLOAT128, the compiler's types for IEEE's numbers of 16 and 128 bits. */
#ifndef NEARFIELD_PROCESSOR_H
#define NEARFIELD_PROCESSOR_H

#if defined(__cplusplus) && !defined(__ASSEMBLER__)
#include <cstddef>
#include <cstdint>

namespace nearfield::processor {

/* Instruction sets of vector kernels: those of Highway's targets that are worth a compilation. */
enum class Set { sse4, avx2, avx512, neon };

} // namespace nearfield::processor
#endif

#if defined(__x86_64__)
#include "engine/processor/x86_64.h"
#elif defined(__aarch64__)
#include "engine/processor/aarch64.h"
#else
#error "Nearfield knows x86-64 and aarch64. Another processor is one more file beside engine/processor/x86_64.h"
#endif

#if defined(__cplusplus) && !defined(__ASSEMBLER__)
namespace nearfield::processor {

inline std::uint64_t ticks_since(std::uint64_t start) {
  await_all();
  return ticks() - start;
}

} // namespace nearfield::processor
#endif

#endif
