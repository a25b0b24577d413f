// The global state of libnearfield.so, except the slots of trampolines.S. It is constant-initialised, since
// constructors of other objects may run earlier and call MPI.
#pragma once
#include <limits.h>
#include <pthread.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <cstddef>
#include <cstdint>

#include "heap/system.hpp"
#include "mpi/numbers.hpp"
#include "mpi/preload/objects.hpp"

namespace nearfield::preload {

// The address of a function of the host that we serve, and that of the function which callers get instead.
struct Redirection {
  void *from, *to;
};

struct Redirections {
  static constexpr std::size_t most = 2 * (std::size_t(mpi::Function::count) - 1);
  Redirection all[most];
  std::size_t count;

  void* of(void* address) const;
};

// A memfd behind a name in /dev/shm (small_shm.cpp).
struct NamedMemory {
  char name[sizeof "/dev/shm/" + NAME_MAX];
  heap::File file;
};

struct Loader {
  // One thread binds the slots. If it comes here again meanwhile (by calls of the shim that it attaches), it goes on.
  pthread_mutex_t binding = PTHREAD_MUTEX_INITIALIZER;
  void* binder = nullptr;  // the thread that holds the lock
  bool bound = false;
  bool deep_objects = false;  // objects have been opened with RTLD_DEEPBIND since the last dlsym
  bool log_has_complained = false;
  Scope scope_of_caller = {};
  Object self = {};
  Object mpi = {};  // the host's library that is bound
  void* mpi_handle = nullptr;
  void* (*loaders_dlsym)(void*, const char*) = nullptr;
  char library_version[8192 + 1] = {};  // MPI_MAX_LIBRARY_VERSION_STRING is 8192 at most
  Redirections redirections = {};

  // Functions of the shim.
  const char* (*last_algorithm)() = nullptr;
  const char* variant = nullptr;  // the ABI whose shim is attached
  // Corrects an attribute of a window that Fortran has read from the host; may be null.
  void (*mend_attribute)(int win, int key, std::intptr_t* value) = nullptr;
  bool (*yield_in_host)() = nullptr;  // yielding.cpp

  // The functions of Open MPI's Fortran bindings that read attributes of windows, one for each name.
  static constexpr std::size_t getters = 9;
  void (*get_attribute[getters])(int* win, int* key, std::intptr_t* value, int* is_there, int* error) = {};

  // locking.cpp
  pthread_mutex_t locking = PTHREAD_MUTEX_INITIALIZER;
  heap::Table<heap::Piece> pieces;

  // small_shm.cpp
  pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
  NamedMemory named[16] = {};
  bool told_of_small_shm = false;
  struct {
    int (*mkstemp)(char*);
    int (*ftruncate)(int, off_t);
    int (*statfs)(const char*, struct statfs*);
    int (*statvfs)(const char*, struct statvfs*);
  } next = {};
};
extern constinit Loader loader;

// Levels are numbered as in LogLevel. say() writes a line of the log if NEARFIELD_LOG asks for that level.
enum class Level { error = 1, warn, info };
__attribute__((format(printf, 2, 3))) void say(Level level, const char* format, ...);

}  // namespace nearfield::preload
