// Looks up the host's functions; called once, under the lock of libnearfield.so's table. Functions of a newer standard
// or of one family of hosts may be missing, and are null then. If any other is missing, the host serves every call.
#include "mpi/shim/process/host.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/base/outcome.hpp"
#include "engine/settings/settings.hpp"
#include "mpi/shim/collectives/engine/route.hpp"

namespace nearfield::mpi {

namespace {

constinit FindInHost* find_in_host = nullptr;

// Looks up PMPI_X; PMPIX_ for names of extensions, X_...; MPII_ for internal functions of the MPICH family, I_...
void* symbol(const char* name) {
  const char* const prefix = !std::strncmp(name, "I_", 2) ? "MPI" : !std::strncmp(name, "X_", 2) ? "PMPI" : "PMPI_";
  char whole[128];
  std::snprintf(whole, sizeof whole, "%s%s", prefix, name);
  return find_in_host(whole);
}

}  // namespace

// Open MPI only (abi/open_mpi.hpp).
void* host_data(const char* symbol) {
  // A program that is not position-independent has its own copy of such objects, which the default scope finds.
  if (void* at = dlsym(RTLD_DEFAULT, symbol)) return at;
  return find_in_host(symbol);
}

bool bind_host(FindInHost* find) {
  find_in_host = find;
  const char* lacking = nullptr;
#define OPTIONAL(name, ...) host.name = reinterpret_cast<decltype(host.name)>(symbol(#name));
#define OURS(name, ...) \
  OPTIONAL(name)        \
  if (!host.name) lacking = #name;
#define HANDLE(...)
#define BLOCKING(name, ...) OPTIONAL(name)
#include "mpi/functions.def"
#define F(name)                                                     \
  host.name = reinterpret_cast<decltype(host.name)>(symbol(#name)); \
  if (!host.name) lacking = #name;
  NEARFIELD_HOST_FUNCTIONS(F)
#undef F
#define F(name, arguments) host.name = reinterpret_cast<decltype(host.name)>(symbol(#name));
  NEARFIELD_OPTIONAL_FUNCTIONS(F)
#undef F
  constexpr const auto& names = abi::handle_functions;
  host.request_to_int = reinterpret_cast<decltype(host.request_to_int)>(find(names[0]));
  host.request_from_int = reinterpret_cast<decltype(host.request_from_int)>(find(names[1]));
  host.window_from_int = reinterpret_cast<decltype(host.window_from_int)>(find("PMPI_Win_f2c"));
  host.message_to_int = reinterpret_cast<decltype(host.message_to_int)>(find(names[2]));
  host.message_from_int = reinterpret_cast<decltype(host.message_from_int)>(find(names[3]));
#if MPI_VERSION >= 4
  host.Session_get_info = reinterpret_cast<decltype(host.Session_get_info)>(symbol("Session_get_info"));
#endif
  host.Comm_is_revoked = reinterpret_cast<decltype(host.Comm_is_revoked)>(find("PMPIX_Comm_is_revoked"));
  host.Comm_revoke = reinterpret_cast<decltype(host.Comm_revoke)>(find("PMPIX_Comm_revoke"));
  host.Comm_failure_ack = reinterpret_cast<decltype(host.Comm_failure_ack)>(find("PMPIX_Comm_failure_ack"));
  host.Comm_failure_get_acked =
      reinterpret_cast<decltype(host.Comm_failure_get_acked)>(find("PMPIX_Comm_failure_get_acked"));
  if (lacking) {
    log_line(LogLevel::info, "the host MPI lacks MPI_%s; it serves every call itself", lacking);
    early::leave_word((std::string("the host MPI lacks MPI_") + lacking).c_str());
    return false;
  }
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  host.Get_library_version(version, &length);
  host_kind = std::strstr(version, "Intel(R) MPI") ? HostKind::intel_mpi
              : std::strstr(version, "Open MPI")   ? HostKind::open_mpi
                                                   : HostKind::other;
  const char* const check = std::getenv("MPIR_CVAR_COLL_ALIAS_CHECK");
  host_rejects_aliases = abi::checks_aliases && host_kind != HostKind::open_mpi &&
                         (!check || !std::strchr("0nNfF", *check));  // 0, no, false
  host.world = MPI_COMM_WORLD;
  host.self = MPI_COMM_SELF;
  host.comm_null = MPI_COMM_NULL;
  host.type_null = MPI_DATATYPE_NULL;
  host.byte = MPI_BYTE;
  host.request_null = MPI_REQUEST_NULL;
  host.message_null = MPI_MESSAGE_NULL;
  host.message_no_proc = MPI_MESSAGE_NO_PROC;
  host.unweighted = abi::unweighted(find);
  return true;
}

}  // namespace nearfield::mpi
