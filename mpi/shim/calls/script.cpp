// Uses a function of CPython's fault handler, which prints a thread's frames without taking the interpreter's lock and
// without allocating. The calling thread waits in a call of ours and changes none of its frames meanwhile.
#include "mpi/shim/calls/script.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace nearfield::mpi::calls {

std::string script_line() {
  using State = void* (*)();
  using Dump = void (*)(int, void*);
  static const auto state = reinterpret_cast<State>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  static const auto dump = reinterpret_cast<Dump>(dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"));
  void* const thread = state && dump ? state() : nullptr;
  if (!thread) return "";
  const int file = memfd_create("nearfield-frames", MFD_CLOEXEC);
  if (file < 0) return "";
  dump(file, thread);
  char text[1024] = {};
  const ssize_t n = pread(file, text, sizeof text - 1, 0);
  close(file);
  const char* const line = n > 0 ? std::strstr(text, "  File ") : nullptr;
  if (!line) return "";
  return {line + 2, std::strcspn(line + 2, "\n")};
}

}  // namespace nearfield::mpi::calls
