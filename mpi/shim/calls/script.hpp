// Finds the line of a Python program that a call comes from.
#pragma once
#include <string>

namespace nearfield::mpi::calls {

// Returns 'File "program.py", line 12 in work' for this thread; "" if it runs no Python.
std::string script_line();

}  // namespace nearfield::mpi::calls
