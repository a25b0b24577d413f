// A fork and memory of MPI_Alloc_mem. Hosts allocate it by malloc, so parent and child do not see each other's stores;
// ours lies in the segment, which both map.
//
//   before, in the parent    ranges that no peer uses become apart (memory/apart.hpp): copy on write on both sides
//                            ranges that peers use (noted as in flight), or that are tied to the kernel or a device
//                            (heap/kept.hpp), are copied for the child
//   parent                   goes on; memory it frees is shared again, for the next allocation
//   child                    maps the copies in their places. The segment is the parent's, so it allocates and frees
//                            nothing there
//
// Memory that is placed by a wish stays shared. Where memory for a copy lacks, or a fork in a signal handler has
// interrupted an allocation, the range stays shared.
#pragma once

namespace nearfield::memory {
class Arena;
}

namespace nearfield::reach {

class Peers;

// A process watches one arena at a time.
void watch_forks(memory::Arena& arena, Peers& peers);
void forget_forks(const Peers& peers);

}  // namespace nearfield::reach
