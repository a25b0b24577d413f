// What memory that is not there throws within Nearfield. Callbacks of the program run within calls of ours, and may
// throw std::bad_alloc themselves, which is the program's to catch: handlers of ours hence name this one.
#pragma once
#include <new>

namespace nearfield {

struct OutOfMemory : std::bad_alloc {};

}  // namespace nearfield
