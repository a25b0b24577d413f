// `nearfield run` and `nearfield exec`.
#pragma once

namespace nearfield::tools {

// Does what `nearfield ASKED ARGUMENTS...` asks for and ends, or becomes another program. `asked`: run, exec, or last,
// which is run where Python has done its part. `arguments` end with null.
[[noreturn]] void run(const char* asked, char** arguments);

}  // namespace nearfield::tools
