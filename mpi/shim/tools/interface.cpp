// MPI's tools interface (MPI_T_) with Nearfield's performance variables in addition to the host's: the counts of the
// statistics, always running and never written. All functions may be called without MPI_Init, from any thread. Errors
// are returned, since there is no communicator to raise them on. Control variables, categories, sessions, enumerations
// and events are the host's. Calls with MPI_T_PVAR_ALL_HANDLES go to the host: they concern only variables that can be
// started, stopped or reset, and ours cannot.
//
// The host may get more variables while the program runs (components that are opened, MPI_Init); an index must never
// change. Ours begin where the host's ended at the first query; later ones of the host lie behind ours:
//
//     0 ... base - 1 | base ... base + ours - 1 | base + ours ...
//     the host's     | ours                     | the host's from base on
#include <algorithm>
#include <cstring>
#include <string_view>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/reach/shared_heap.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/statistics/counts.hpp"
#include "mpi/shim/tools/handles.hpp"

namespace nearfield::mpi {
namespace tools {

namespace {

constinit std::mutex counting_users;
constinit std::atomic<int> users{0};  // written under the lock
constinit std::atomic<int> base{-1};  // -1: nobody has asked

Handles& handles() { return made<Handles>(); }

int ours() { return int(performance_variables().size()); }
// Returns our variable with that index; nullptr: it is the host's. pre of this and the next two: base >= 0.
const PerformanceVariable* variable_at(int index) {
  return index >= base && index - base < ours() ? &performance_variables()[std::size_t(index - base)] : nullptr;
}
int to_host(int index) { return index < base ? index : index - ours(); }
int from_host(int index) { return index < base ? index : index + ours(); }

// Calls a function that the host may lack.
template <class... Types, class... Arguments>
int at_host(int (*function)(Types...), Arguments... arguments) {
  return function ? function(arguments...) : MPI_ERR_UNSUPPORTED_OPERATION;
}

// Runs the body of a function and returns its code.
template <class Body>
int answer(Body body) {
  try {
    return body();
  } catch (const OutOfMemory&) {
    return MPI_T_ERR_MEMORY;
  }
}

// The same for a function that uses indices. It checks that the interface is initialised, as some hosts do not.
template <class Body>
int answer_by_index(Body body) {
  return answer([&]() -> int {
    if (users == 0) return MPI_T_ERR_NOT_INITIALIZED;
    int hosts = 0, unknown = -1;
    if (base < 0) {
      if (const int code = at_host(host.T_pvar_get_num, &hosts); code != MPI_SUCCESS) return code;
      base.compare_exchange_strong(unknown, hosts);
    }
    return body();
  });
}

// The same for a function that uses a handle: `use(variable)` serves it if the handle is that of a variable of ours.
template <class HostCall, class Use>
int answer_by_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, HostCall host_call, Use use) {
  return answer([&]() -> int {
    const auto [is_ours, code, variable] = handles().find(session, handle);
    if (!is_ours) return host_call();
    if (users == 0) return MPI_T_ERR_NOT_INITIALIZED;
    return code == MPI_SUCCESS ? use(*variable) : code;
  });
}
template <class HostCall>
int refuse(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int why, HostCall host_call) {
  return answer_by_handle(session, handle, host_call, [&](const PerformanceVariable&) { return why; });
}

// Returns a string as MPI does: at most *length - 1 characters and a zero; *length becomes the length of the whole
// string with the zero. Without `length` it does nothing; without a buffer, or if *length is 0, it returns the length
// alone.
void give_text(std::string_view text, char* buffer, int* length) {
  if (!length) return;
  if (buffer && *length > 0) {
    const std::size_t fits = std::min(text.size(), std::size_t(*length) - 1);
    std::memcpy(buffer, text.data(), fits);
    buffer[fits] = '\0';
  }
  *length = int(text.size()) + 1;
}

// Returns a value that callers may omit.
template <class T, class Value>
void give(T* to, Value value) {
  if (to) *to = value;
}

}  // namespace
}  // namespace tools

using namespace tools;

int T_init_thread(int required, int* provided) {
  const reach::SharedHeap::Pause pause;
  const std::lock_guard lock(counting_users);
  const int code = at_host(host.T_init_thread, required, provided);
  if (code == MPI_SUCCESS) ++users;
  return code;
}

// The last call ends the validity of indices: a host that is initialised again may have fewer variables.
int T_finalize() {
  const std::lock_guard lock(counting_users);
  const int code = at_host(host.T_finalize);
  if (code != MPI_SUCCESS || --users > 0) return code;
  return answer([&] {
    handles().close_all();
    base = -1;
    return code;
  });
}

// Categories are the host's and hold only its variables, whose indices are translated.
int T_category_get_pvars(int category, int length, int* indices) {
  return answer_by_index([&]() -> int {
    int held = 0;
    int code = at_host(host.T_category_get_pvars, category, length, indices);
    if (code != MPI_SUCCESS || !indices) return code;
    code = at_host(host.T_category_get_info, category, static_cast<char*>(nullptr), static_cast<int*>(nullptr),
                   static_cast<char*>(nullptr), static_cast<int*>(nullptr), static_cast<int*>(nullptr), &held,
                   static_cast<int*>(nullptr));
    for (int i = 0; i < std::min(held, length); ++i) indices[i] = from_host(indices[i]);
    return code;
  });
}

int T_pvar_get_num(int* number) {
  return answer_by_index([&]() -> int {
    const int code = at_host(host.T_pvar_get_num, number);
    if (code == MPI_SUCCESS) *number = std::max(*number, base.load()) + ours();
    return code;
  });
}

int T_pvar_get_info(int index, char* name, int* name_length, int* verbosity, int* of_class, MPI_Datatype* type,
                    MPI_T_enum* kinds, char* about, int* about_length, int* bind, int* readonly, int* continuous,
                    int* atomic) {
  return answer_by_index([&]() -> int {
    const PerformanceVariable* const variable = variable_at(index);
    if (!variable)
      return at_host(host.T_pvar_get_info, to_host(index), name, name_length, verbosity, of_class, type, kinds, about,
                     about_length, bind, readonly, continuous, atomic);
    give_text(variable->name, name, name_length);
    give_text(variable->description, about, about_length);
    give(verbosity, variable->verbosity);
    give(of_class, variable->of_class);
    give(type, variable->is_timer() ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG);
    give(kinds, MPI_T_ENUM_NULL);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(readonly, 1);
    give(continuous, 1);
    give(atomic, 0);
    return MPI_SUCCESS;
  });
}

int T_pvar_get_index(const char* name, int of_class, int* index) {
  return answer_by_index([&]() -> int {
    const auto& all = performance_variables();
    const auto found = std::ranges::find_if(all, [&](const PerformanceVariable& one) {
      return name && index && one.of_class == of_class && one.name == name;
    });
    if (found != all.end()) {
      *index = base + int(found - all.begin());
      return MPI_SUCCESS;
    }
    const int code = at_host(host.T_pvar_get_index, name, of_class, index);
    if (code == MPI_SUCCESS) *index = from_host(*index);
    return code;
  });
}

int T_pvar_session_create(MPI_T_pvar_session* session) {
  return answer([&]() -> int {
    const int code = at_host(host.T_pvar_session_create, session);
    if (code != MPI_SUCCESS) return code;
    try {
      handles().open(*session);
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
    const bool known = handles().close(ends);  // before another thread can get the same handle
    const int code = at_host(host.T_pvar_session_free, session);
    if (code != MPI_SUCCESS && known) handles().open(ends);
    return code;
  });
}

int T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void* object, MPI_T_pvar_handle* handle, int* count) {
  return answer_by_index([&]() -> int {
    const PerformanceVariable* const variable = variable_at(index);
    if (!variable) return at_host(host.T_pvar_handle_alloc, session, to_host(index), object, handle, count);
    if (!handles().has(session)) return MPI_T_ERR_INVALID_SESSION;
    if (!handle || !count) return MPI_T_ERR_INVALID;
    *handle = handles().make(session, *variable);
    *count = 1;
    if (variable->needs_counts) begin_counting();
    return MPI_SUCCESS;
  });
}

int T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  return answer_by_handle(
      session, handle ? *handle : MPI_T_PVAR_HANDLE_NULL,
      [&] { return at_host(host.T_pvar_handle_free, session, handle); },
      [&](const PerformanceVariable&) {
        handles().release(std::exchange(*handle, MPI_T_PVAR_HANDLE_NULL));
        return MPI_SUCCESS;
      });
}

int T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
  return answer_by_handle(
      session, handle, [&] { return at_host(host.T_pvar_read, session, handle, buffer); },
      [&](const PerformanceVariable& variable) -> int {
        if (!buffer) return MPI_T_ERR_INVALID;
        const std::uint64_t value = variable.read();
        if (variable.is_timer()) *static_cast<double*>(buffer) = double(value) * 1e-9;
        else *static_cast<unsigned long long*>(buffer) = value;
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
