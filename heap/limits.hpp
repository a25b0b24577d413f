// Limits of the system that decide whether there is a heap, and how much of it gets huge pages.
#pragma once
#include <cstddef>

namespace nearfield::heap {

// Returns the limit of a file's length (ulimit -f), beyond which SIGXFSZ is raised.
std::size_t file_limit();
// Returns whether a sparse mapping leaves less memory to the program: its address space is limited (ulimit -v), or the
// system counts mappings as memory (vm.overcommit_memory=2).
bool address_space_is_scarce(const char* root = "");
// Returns the machine's memory in bytes, or the least limit of this process's control groups. `root`: for tests.
std::size_t memory_limit(const char* root = "");
// Returns the bytes of huge pages that may be made before the program has touched the memory.
std::size_t eager_limit();
// Returns whether `bytes` are an eighth of the available memory at most.
bool plenty(std::size_t bytes);

}  // namespace nearfield::heap
