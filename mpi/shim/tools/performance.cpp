// MPI_T_pvar_: the counts of the statistics, always running and never written. Sessions are the host's; our handles
// belong to them and are freed with them. MPI_T_PVAR_ALL_HANDLES is passed on: it ignores variables that cannot be
// started, stopped or reset.
#include <algorithm>
#include <cstring>
#include <set>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/statistics/counts.hpp"
#include "mpi/shim/tools/handles.hpp"
#include "mpi/shim/tools/interface.hpp"
#include "mpi/shim/tools/variables.hpp"

namespace nearfield::mpi {
namespace tools {

struct Performance {
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  const PerformanceVariable* variable = nullptr;
};

struct PerformanceHandles : Handles<MPI_T_pvar_handle, Performance> {};

class Sessions {
 public:
  void enter(MPI_T_pvar_session session) {
    const std::lock_guard lock(mutex_);
    open_.insert(session);
  }
  void leave(MPI_T_pvar_session session) {
    const std::lock_guard lock(mutex_);
    open_.erase(session);
  }
  bool has(MPI_T_pvar_session session) const {
    const std::lock_guard lock(mutex_);
    return open_.contains(session);
  }
  void leave_all() {
    const std::lock_guard lock(mutex_);
    open_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::set<MPI_T_pvar_session> open_;
};

namespace {

PerformanceHandles& handles() { return made<PerformanceHandles>(); }
Sessions& sessions() { return made<Sessions>(); }

// Returns the error for a handle of ours in that session.
int judge(MPI_T_pvar_session session, const Handles<MPI_T_pvar_handle, Performance>::Found& found) {
  if (!initialized()) return MPI_T_ERR_NOT_INITIALIZED;
  if (!sessions().has(session)) return MPI_T_ERR_INVALID_SESSION;
  return found.whose == Whose::freed || found.object.session != session ? MPI_T_ERR_INVALID_HANDLE : MPI_SUCCESS;
}

// Serves functions that our variables refuse, with error `why`.
template <class HostCall>
int refuse(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int why, HostCall host_call) {
  return answer([&]() -> int {
    const auto found = handles().find(handle);
    if (found.whose == Whose::hosts) return host_call();
    const int wrong = judge(session, found);
    return wrong == MPI_SUCCESS ? why : wrong;
  });
}

}  // namespace

void forget_handles_of_performances() {
  handles().release_of([](const Performance&) { return true; });
  sessions().leave_all();
}

}  // namespace tools

using namespace tools;

int T_pvar_get_num(int* number) {
  return answer([&] { return tools::number(performances(), host.T_pvar_get_num, number); });
}

int T_pvar_get_info(int index, char* name, int* name_length, int* verbosity, int* of_class, MPI_Datatype* type,
                    MPI_T_enum* kinds, char* about, int* about_length, int* bind, int* readonly, int* continuous,
                    int* atomic) {
  return answer([&]() -> int {
    if (const int code = know_performances(); code != MPI_SUCCESS) return code;
    if (!performances().is_ours(index))
      return at_host(host.T_pvar_get_info, performances().to_host(index), name, name_length, verbosity, of_class, type,
                     kinds, about, about_length, bind, readonly, continuous, atomic);
    const PerformanceVariable& variable = performance_variables()[std::size_t(performances().own(index))];
    give_text(variable.name, name, name_length);
    give_text(variable.description, about, about_length);
    give(verbosity, variable.verbosity);
    give(of_class, variable.of_class);
    give(type, variable.is_timer() ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG);
    give(kinds, MPI_T_ENUM_NULL);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(readonly, 1);
    give(continuous, 1);
    give(atomic, 0);
    return MPI_SUCCESS;
  });
}

int T_pvar_get_index(const char* name, int of_class, int* index) {
  return answer([&]() -> int {
    if (const int code = know_performances(); code != MPI_SUCCESS) return code;
    if (!name || !index) return at_host(host.T_pvar_get_index, name, of_class, index);
    const auto& all = performance_variables();
    const auto found = std::ranges::find_if(
        all, [&](const PerformanceVariable& one) { return one.of_class == of_class && one.name == name; });
    if (found != all.end()) {
      *index = performances().of_own(int(found - all.begin()));
      return MPI_SUCCESS;
    }
    const int code = at_host(host.T_pvar_get_index, name, of_class, index);
    if (code == MPI_SUCCESS) *index = performances().from_host(*index);
    return code;
  });
}

int T_pvar_session_create(MPI_T_pvar_session* session) {
  return answer([&]() -> int {
    const int code = at_host(host.T_pvar_session_create, session);
    if (code != MPI_SUCCESS) return code;
    try {
      sessions().enter(*session);
    } catch (const OutOfMemory&) {
      at_host(host.T_pvar_session_free, session);
      throw;
    }
    return code;
  });
}

int T_pvar_session_free(MPI_T_pvar_session* session) {
  return answer([&]() -> int {
    const MPI_T_pvar_session ends = session ? *session : MPI_T_PVAR_SESSION_NULL;
    const bool known = sessions().has(ends);
    sessions().leave(ends);  // before another thread can get the same handle
    handles().release_of([&](const Performance& one) { return one.session == ends; });
    const int code = at_host(host.T_pvar_session_free, session);
    if (code != MPI_SUCCESS && known) sessions().enter(ends);
    return code;
  });
}

int T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void* object, MPI_T_pvar_handle* handle, int* count) {
  return answer([&]() -> int {
    if (const int code = know_performances(); code != MPI_SUCCESS) return code;
    if (!performances().is_ours(index))
      return at_host(host.T_pvar_handle_alloc, session, performances().to_host(index), object, handle, count);
    if (!sessions().has(session)) return MPI_T_ERR_INVALID_SESSION;
    if (!handle || !count) return MPI_T_ERR_INVALID;
    const PerformanceVariable& variable = performance_variables()[std::size_t(performances().own(index))];
    *handle = handles().make({session, &variable});
    *count = 1;
    if (variable.needs_counts) begin_counting();
    return MPI_SUCCESS;
  });
}

int T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  return answer([&]() -> int {
    if (!handle) return at_host(host.T_pvar_handle_free, session, handle);
    const auto found = handles().find(*handle);
    if (found.whose == Whose::hosts) return at_host(host.T_pvar_handle_free, session, handle);
    if (const int wrong = judge(session, found); wrong != MPI_SUCCESS) return wrong;
    handles().release(*handle);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
  });
}

int T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP,
                [&] { return at_host(host.T_pvar_start, session, handle); });
}

int T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP,
                [&] { return at_host(host.T_pvar_stop, session, handle); });
}

int T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
  return answer([&]() -> int {
    const auto found = handles().find(handle);
    if (found.whose == Whose::hosts) return at_host(host.T_pvar_read, session, handle, buffer);
    if (const int wrong = judge(session, found); wrong != MPI_SUCCESS) return wrong;
    if (!buffer) return MPI_T_ERR_INVALID;
    const std::uint64_t value = found.object.variable->read();
    if (found.object.variable->is_timer()) *static_cast<double*>(buffer) = double(value) * 1e-9;
    else *static_cast<unsigned long long*>(buffer) = value;
    return MPI_SUCCESS;
  });
}

int T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buffer) {
  return refuse(session, handle, MPI_T_ERR_PVAR_NO_WRITE,
                [&] { return at_host(host.T_pvar_write, session, handle, buffer); });
}

int T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse(session, handle, MPI_T_ERR_PVAR_NO_WRITE, [&] { return at_host(host.T_pvar_reset, session, handle); });
}

int T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
  return refuse(session, handle, MPI_T_ERR_PVAR_NO_ATOMIC,
                [&] { return at_host(host.T_pvar_readreset, session, handle, buffer); });
}

}  // namespace nearfield::mpi
