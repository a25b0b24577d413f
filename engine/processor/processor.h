/* The one door to the processor: what C++ and the C library do not say, here for all, and one file per architecture.
   C, C++ and the assembler read it; so it is written in what they share.

   For C++, in nearfield::processor:

     pause()                 between two looks at a word that somebody else will write; leaves the core to its sibling
     await_loads()           between two looks that follow each other at once: the second is not begun before the first
                             has its value. Without it the processor loads for many rounds ahead, and throws all of
                             that away when the line that is looked at changes: it sees the change later
     finish_streams()        a release store afterwards publishes what has been written past the cache before
     ticks()                 a clock of one rate on all cores of a machine, some nanoseconds fine; never going back
     ticks_in(nanoseconds)   about so many, for choices of time slices: right within a factor of four
     can_claim()             whether claim() is faster than any loop for lines that other cores hold
     claim(to, from, bytes)  copies, taking whole lines over without fetching them; ordered like other stores
                             pre: can_claim(), no overlap
     NEARFIELD_RETURN_SLOT   where the return address lies of the function that names it
     describe(text, bytes)   name and revision: figures measured on another one are not this one's. pre: bytes >= 64
     has(set)                whether the processor and the system support one of the instruction sets that vector
                             kernels are compiled for

   Models have an explorer's pause and ticks instead (tests/engine/model/atomic.hpp).

   For the assembler, in the trampolines (mpi/preload/trampolines.S has the contracts):

     JUMP, BIND, BINDER, LOADER

   For all: NEARFIELD_FIRST_GLIBC, the version of the C library's oldest functions, and of
   dlinfo NEARFIELD_DLINFO_GLIBC; NEARFIELD_STAT_VERSION, what its
   __fxstat calls the layout of struct stat; the relocations in which the loader stores addresses of functions
   (NEARFIELD_RELOCATED_...); what the compiler calls IEEE's floating-point numbers of 16 and 128 bits. */
#ifndef NEARFIELD_PROCESSOR_H
#define NEARFIELD_PROCESSOR_H

#if defined(__cplusplus) && !defined(__ASSEMBLER__)
#include <cstddef>
#include <cstdint>

namespace nearfield::processor {

/* Of vector kernels: those of Highway's targets that are worth a compilation, by their least members. */
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

#endif
