// Ranges of memory that must stay the parent's own at a fork: the kernel or a device uses their very pages (registered
// or locked memory), or the program has marked them for its children (madvise).
//
// A fork maps the parent's blocks again, private (fork.cpp). If a page is pinned, the parent's next store would then go
// to a copy of it, which the device never sees. So kept ranges stay mapped from the file, as ranges that peers use do,
// and the child gets a copy of them. (The kernel does the same for pinned pages of private memory.)
//
//   noted by      interpose_registrations.cpp, after the function that ties the range has succeeded
//   forgotten by  the function that undoes it; free(), since munmap would end locks and marks, too
//   read by       fork.cpp
//
// A library may pin memory without calling any of these functions. The kernel counts all pinned pages (VmPin): if it
// counts more than the table has, a fork keeps all blocks. The heap's lock protects the table, which is private.
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
  const void* key;         // the argument by which the range is released: an address, or a library's object
  Kept kind;
};

// Each of these takes the lock. In a signal handler that has interrupted the lock's holder it does nothing.
void keep(const void* begin, std::size_t bytes, Kept kind, const void* key = nullptr);
void keep_no_more(const void* begin, std::size_t bytes, Kept kind);  // may be a part of a range that was noted
void keep_no_more(const void* key);
void keep_all(bool all);  // mlockall
// Carries out a madvise that concerns children, so that blocks act as private memory does. Returns 0, or -1 with errno
// set, or 1 if the kernel has to carry it out: it is other advice, or the memory is not a block.
int mark(void* begin, std::size_t bytes, int advice);

// For all functions below: pre: the lock is held.
// Forgets all ranges of a block that is freed, and ends its locks and marks.
void release_kept(std::byte* begin, std::size_t bytes);
// Forgets marks and locks of memory that the program has replaced by another mapping.
void forget_marks(const std::byte* begin, const std::byte* end);
// Whether all blocks must be kept: all are locked, or the kernel counts more pinned pages than the table explains.
bool keeps_all();
// Called in a forked child: does what the marks say and forgets all else, since locks and pins are not inherited.
void inherit_kept();

}  // namespace nearfield::heap
