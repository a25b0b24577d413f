// Entries for the host's functions that may block. libnearfield.so exports all functions of MPI, so programs believe
// that they exist; a call of one that the host lacks raises an error.
#include "mpi/shim/process/blocking.hpp"

#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/process/at_host.hpp"
#include "mpi/shim/rma/window.hpp"

namespace nearfield::mpi {
namespace {

// `there`: the host has the function.
template <Function number, bool there, class Type>
struct BlockingEntry;
template <Function number, bool there, class... Arguments>
struct BlockingEntry<number, there, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    const calls::ArgumentWords words(arguments...);
    const calls::CallScope scope(number, __builtin_return_address(0), NEARFIELD_RETURN_SLOT, words.all);
    const HostCall blocks(number);
    if constexpr (there) return (host.*HostMember<number>::at)(arguments...);
    else return without<number>(arguments...);
  }
};

template <Function number>
void* bound() {
  using Type = std::remove_reference_t<decltype(host.*HostMember<number>::at)>;
  return reinterpret_cast<void*>(host.*HostMember<number>::at ? &BlockingEntry<number, true, Type>::call
                                                              : &BlockingEntry<number, false, Type>::call);
}

}  // namespace

int lacks(Function function) {
  if (!process()) return MPI_ERR_UNSUPPORTED_OPERATION;
  return raise(host.world, name_of(function), "this MPI library does not have this function",
               MPI_ERR_UNSUPPORTED_OPERATION);
}

int raise_too_large(Function function, MPI_Comm comm) { return raise(comm, name_of(function), too_large); }
int raise_too_large_on_window(Function function, MPI_Win win) {
  return raise_on(win, name_of(function), too_large, MPI_ERR_COUNT);
}
int raise_too_large_on_file(Function function, MPI_File file) {
  log_line(LogLevel::error, "%s: %s", name_of(function), too_large);
  host.File_call_errhandler(file, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

void* blocking_function(Function number) {
  switch (number) {
#define BLOCKING(name, ...) \
  case Function::name: return bound<Function::name>();
#include "mpi/functions.def"
    default: return nullptr;
  }
}

}  // namespace nearfield::mpi
