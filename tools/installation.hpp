// Finds the libraries and the Python package that the command needs, by the path of its own program.
#pragma once
#include <string>
#include <vector>

namespace nearfield::tools {

std::string library_directory();  // NEARFIELD_LIBDIR, or that of the installation; "" where it is unknown

// Executes `nearfield WORDS...` in Python. Without a Python, prints `otherwise` and exits. `words` end with null.
[[noreturn]] void become_python(const std::vector<const char*>& words, const std::string& otherwise);

}  // namespace nearfield::tools
