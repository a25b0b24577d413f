// What a fork does to memory of MPI_Alloc_mem: hosts have it from malloc, so parent and child do not see each other's
// stores. It lies in the segment, which both map.
//
//   before, in the parent    what no peer is using becomes apart (memory/apart.hpp), on both sides copy on write
//                            what peers are using (the noticeboard tells it) is copied for the child
//   parent                   goes on; what is freed is shared again, for the next allocation
//   child                    puts the copies in their places. The segment is the parent's: nothing is allocated or
//   freed
//
// What is placed by a wish stays shared. Where memory for a copy lacks, or a fork in a signal handler has interrupted
// an allocation, the range stays shared.
#pragma once

namespace nearfield::memory {
class Arena;
}

namespace nearfield::reach {

class Peers;

// One of a process at a time is looked after.
void watch_forks(memory::Arena& arena, Peers& peers);
void forget_forks(const Peers& peers);

}  // namespace nearfield::reach
