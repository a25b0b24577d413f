// The line of an interpreter's program that a call comes from, where the interpreter is in the process.
#pragma once
#include <string>

namespace nearfield::mpi::calls {

// Of this thread: 'File "program.py", line 12 in work'; "" where it runs no Python.
std::string script_line();

}  // namespace nearfield::mpi::calls
