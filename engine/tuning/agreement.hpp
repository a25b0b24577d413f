// How those that take part in a trial come to one verdict about a block of calls.
//
//   alone      a receiver of messages, or who copies, takes its own times (of_one). Where the other side of a pair
//              tries as well, each begins blocks in slices of the clock of its own
//   team       members have one clock: all tell their moments, and each computes the same of all (of_all)
//   nodes      nodes have clocks of their own: each rank's times (of_one) are reduced to one of all ranks
//
// A call takes from the last member's entry to the last member's leaving: members that come late in the program do not
// count against an algorithm. Operations with a root let members run ahead of each other, so their calls are timed
// together: the member that was longest in all calls of a block, from the last member's entry into the first of them.
// Members that share CPUs run one after another, and whoever comes last finds all done: there a block takes from the
// first member's entry to the last one's leaving. They have agreed on the block before a few calls ago, so nobody is
// far ahead when it begins.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"

namespace nearfield::tuning {

// ns; of one member, or of all that have one clock.
struct Moment {
  std::uint64_t entered, left;
};

// What all members know of a block.
struct Agreed {
  std::vector<float> times;  // ns of each call, or one that stands for all
  float between = 0;         // ns per call between them
  float whole = 0;           // ns per call of the block and of what lies between its calls; 0: not known
};

// Of one member's calls, all of which count.
Agreed of_one(std::span<const Moment> calls);

// Of all members' calls, the first of which does not count; what it leaves behind does. `moment(r, i)`: of member r,
// call i.
enum class Timing : std::uint8_t { each, together, from_first_to_last };
Agreed of_all(int members, std::size_t calls, Timing timing, FunctionRef<Moment(int, std::size_t)> moment);

}  // namespace nearfield::tuning
