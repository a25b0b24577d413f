// What Nearfield throws when it lacks memory. The program's callbacks run within our calls and may throw
// std::bad_alloc, which only the program may catch. So our handlers catch this type.
#pragma once
#include <new>

namespace nearfield {

struct OutOfMemory : std::bad_alloc {};

}  // namespace nearfield
