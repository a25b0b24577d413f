// What the system lets this process have: limits that decide whether there is a heap, and how much of it is made huge.
#pragma once
#include <cstddef>

namespace nearfield::heap {

// Bytes that a file may have (ulimit -f): one more raises SIGXFSZ.
std::size_t file_limit();
// Whether address space costs something: it is limited (ulimit -v), or the system counts all that is mapped against
// its memory (vm.overcommit_memory=2). What is sparse then takes from what the program can have.
bool address_space_is_scarce(const char* root = "");
// Bytes of memory: the machine's, or the least limit of the control groups that this process is in. `root`: tests.
std::size_t memory_limit(const char* root = "");
// Bytes that huge pages may take before the program touches them.
std::size_t eager_limit();
// Whether `bytes` are an eighth of what is free, at most.
bool plenty(std::size_t bytes);

}  // namespace nearfield::heap
