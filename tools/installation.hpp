// Where the parts of Nearfield are that the command needs, found from where its own program is.
#pragma once
#include <string>
#include <vector>

namespace nearfield::tools {

std::string library_directory();  // NEARFIELD_LIBDIR, or that of the installation; "" where it is unknown

// Becomes `nearfield WORDS...` in Python; says `otherwise` and ends where there is no Python. `words` end with null.
[[noreturn]] void become_python(const std::vector<const char*>& words, const std::string& otherwise);

}  // namespace nearfield::tools
