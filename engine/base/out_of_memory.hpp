// Thrown within Nearfield for want of memory. The program's callbacks run within our calls and may throw
// std::bad_alloc, which only the program may catch: our handlers name this type.
#pragma once
#include <new>

namespace nearfield {

struct OutOfMemory : std::bad_alloc {};

}  // namespace nearfield
