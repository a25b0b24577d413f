#include "mpi/shim/host.hpp"

#include <dlfcn.h>

#include "engine/settings.hpp"

namespace nearfield::mpi {

Host host;

namespace {
void* host_library;
}

#ifdef NEARFIELD_HOST_OMPI
void* host_data(const char* symbol) {
  // A program that is not position-independent holds its own copy of such objects; the default scope finds that one.
  if (void* at = dlsym(RTLD_DEFAULT, symbol)) return at;
  return dlsym(host_library, symbol);
}
#endif

bool bind_host(void* library) {
  host_library = library;
  const char* lacking = nullptr;
#define F(name)                                                                     \
  host.name = reinterpret_cast<decltype(host.name)>(dlsym(library, "PMPI_" #name)); \
  if (!host.name) lacking = #name;
  NEARFIELD_HOST_FUNCTIONS(F)
#undef F
#define F(name, arguments) host.name = reinterpret_cast<decltype(host.name)>(dlsym(library, "PMPI_" #name));
  NEARFIELD_LARGE_FUNCTIONS(F)
#undef F
  host.Comm_is_revoked = reinterpret_cast<decltype(host.Comm_is_revoked)>(dlsym(library, "PMPIX_Comm_is_revoked"));
  if (lacking) {
    log_line(LogLevel::info, "the host MPI lacks MPI_%s; it serves every call itself", lacking);
    return false;
  }
  host.world = MPI_COMM_WORLD;
  host.self = MPI_COMM_SELF;
  host.comm_null = MPI_COMM_NULL;
  host.type_null = MPI_DATATYPE_NULL;
  return true;
}

}  // namespace nearfield::mpi
