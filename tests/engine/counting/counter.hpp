// Counts the cache lines that the engine's own code moves between members, on a machine with as many cores as members.
//
// The program is compiled for ThreadSanitizer and linked without it: counter.cpp has its functions in the compiler's
// place, so that every access of the engine to memory that members share comes by. Members are threads, with as few
// CPUs as there are: counts need no cores. Each has a core with a cache that nothing is lost from:
//
//   a line is valid at those who have read it since it was last written, and at who wrote it last
//   moved         an access by somebody else; from the nearest core at which the line was valid
//   taken         a write by who has it, while others have it as well
//   steps         the longest chain of moved lines, each of which was written after its writer had got the one before:
//                 what a call waits for one after the other, whatever else overlaps
//
// What is waited for is looked at again and again; a line counts each time that it has been written in between.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace nearfield::testing {

struct Counted {
  std::uint64_t near = 0, far = 0, packages = 0;  // lines moved: within a group of members, a package, and beyond
  std::uint64_t taken = 0;
  std::uint64_t first = 0;  // lines that nobody had, out of memory
  std::uint64_t steps = 0;
  std::uint64_t moved() const { return near + far + packages; }
};
Counted operator-(const Counted& after, const Counted& before);

inline constexpr int most_counted = 256;

// Begins anew: nobody has any line. Members of a group share a cache.
void begin_counting(int members, int group, int package);
// This thread is that member from now on; -1: none, whose accesses are not counted.
void count_as(int member);
// Memory that members share.
void count_in(const void* base, std::size_t bytes);
// Of all members so far. pre: none is at work.
Counted counted();
void end_counting();

}  // namespace nearfield::testing
