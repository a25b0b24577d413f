// What `nearfield run` says when its launcher has ended.
#pragma once
#include <string>

namespace nearfield::tools {

// Reads the lines that processes have left in `file` (engine/base/outcome.hpp) and removes it. If Nearfield served no
// process, writes one message with the reasons to standard error. If no process has left a reason, Python examines the
// programs of `command`, which ends with null. `status`: the exit status as a shell has it; "-1": unknown.
[[noreturn]] void say_afterwards(const std::string& file, const std::string& status, char** command);

}  // namespace nearfield::tools
