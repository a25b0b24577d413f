// Memory that must stay the parent's own at a fork: what the kernel or a device ties to its pages (registered, locked),
// and what the program has marked for its children (madvise).
//
// A fork maps the parent's blocks again, private (fork.cpp). A page that is pinned would be left to the file then, and
// the parent's next store would go to a copy that the device never sees. So kept ranges stay shared with the file, as
// ranges that peers use do, and the child gets a copy of these alone, as the kernel makes one of pinned pages.
//
//   noted by      interpose_registrations.cpp, after the function that ties the range has succeeded
//   forgotten by  its counterpart; free(), which ends locks and marks as returning the memory to the kernel would
//   read by       fork.cpp
//
// Registrations that no function told of are found by their sum, which the kernel counts (VmPin): where it is larger
// than that of the table, a fork keeps all blocks. All words are the process's own, under the heap's lock.
#pragma once
#include <cstddef>
#include <cstdint>

#include "heap/system.hpp"

namespace nearfield::heap {

enum class Kept : std::uint8_t {
  counted,     // registered by a function whose pins the kernel counts in VmPin (RDMA, io_uring)
  registered,  // by another one (CUDA, HIP)
  locked,      // mlock
  unforked,    // MADV_DONTFORK: children have nothing there
  wiped,       // MADV_WIPEONFORK: children find zeros
};

struct KeptRange {
  std::byte *begin, *end;  // whole pages
  const void* key;         // what the counterpart is told: an address, or a library's object
  Kept kind;
};

// Each takes the lock, and does nothing in code that has interrupted its holder.
void keep(const void* begin, std::size_t bytes, Kept kind, const void* key = nullptr);
void keep_no_more(const void* begin, std::size_t bytes, Kept kind);  // also parts of what was noted
void keep_no_more(const void* key);
void keep_all(bool all);  // mlockall
// Carries out advice that concerns children, on blocks as on private memory. Returns 0; -1 with errno set; or 1: the
// advice is another, or no block's, and left to the kernel.
int mark(void* begin, std::size_t bytes, int advice);

// pre, of all below: the lock is held.
// Ends locks and marks of a block that is freed.
void release_kept(std::byte* begin, std::size_t bytes);
// The program has mapped something else there: marks and locks were those of what was there before.
void forget_marks(const std::byte* begin, const std::byte* end);
// Whether all blocks must be kept: all are locked, or the kernel counts more pinned pages than the table explains.
bool keeps_all();
// In a forked child: its memory is locked and pinned by nobody, and marks are in effect.
void inherit_kept();

}  // namespace nearfield::heap
