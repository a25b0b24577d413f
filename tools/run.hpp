// `nearfield run` and `nearfield exec`.
#pragma once

namespace nearfield::tools {

// Carries out `nearfield ASKED ARGUMENTS...`: executes another program, or exits with an error. `asked`: run, exec, or
// last, by which Python calls back to start the launcher when its own part of `run` is done. `arguments` end with null.
[[noreturn]] void run(const char* asked, char** arguments);

}  // namespace nearfield::tools
