// The shim's interface: functions by which libnearfield.so attaches it and finds its functions, start and end of MPI,
// and hints of communicators.
//
//   MPI_Init       binds a socket as a sign of our presence, host.Init, start_node(): process context, team of the
//                  world, messenger
//   any call       Entry (entry.hpp): exceptions become errors, since the caller's frames are C's
//   MPI_Finalize   host.Finalize deletes the attributes of MPI_COMM_SELF: the program's callbacks, which may still
//                  communicate, run before ours, end_of_program(). That reports statistics, waits for sent messages to
//                  arrive and leaves the node. Until host.Finalize returns, the progress thread serves other ranks,
//                  for which the host may wait; then the thread ends. The segment stays until the process exits
#include <sys/stat.h>

#include <algorithm>

#include "engine/base/outcome.hpp"
#include "engine/reach/shared_heap.hpp"
#include "engine/windows/window.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/communicators/async_creation.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/blocking.hpp"
#include "mpi/shim/process/entry.hpp"
#include "mpi/shim/process/hints.hpp"
#include "mpi/shim/process/host_scope.hpp"
#include "mpi/shim/process/launchers.hpp"
#include "mpi/shim/recording/recording.hpp"
#include "mpi/shim/statistics/report.hpp"

namespace nearfield::mpi {

const PerThread<const char*, threads::at::last_algorithm> last_algorithm{by_host};
const PerThread<bool, threads::at::went_to_host> went_to_host;

int raise(MPI_Comm comm, const char* function, const char* text, int code) {
  log_line(LogLevel::error, "%s: %s", function, text);
  let_launchers_forward(comm, host.Comm_get_errhandler);
  host.Comm_call_errhandler(comm, code);
  return code;
}

int class_and_text(const char* function, const team::Broken& broken) {
  if (dynamic_cast<const team::Revoked*>(&broken)) {
    note_revoked();
    return revoked_class();
  }
  log_line(LogLevel::error, "%s: %s", function, broken.what());
  if (dynamic_cast<const team::UnequalLengths*>(&broken)) return MPI_ERR_TRUNCATE;
  return dynamic_cast<const team::Died*>(&broken) ? died_class() : MPI_ERR_OTHER;
}

int raise(MPI_Comm comm, const char* function, const team::Broken& broken) {
  const int code = class_and_text(function, broken);
  let_launchers_forward(raised_on(comm), host.Comm_get_errhandler);
  return raise_code(comm, code, true);
}

namespace {

constinit bool entered_at_the_end = false;
constinit InHost* in_host_at_the_end = nullptr;

void started(int thread_level) {
  leave_host_init();
  start_node(threads_in_sessions.load(std::memory_order_relaxed) ? MPI_THREAD_MULTIPLE : thread_level, true);
  recording::begin();
}

// Returns whether a session may be used by several threads at once.
bool has_threads([[maybe_unused]] const MPI_Session* session, MPI_Info asked) {
  constexpr const char *key = "thread_level", *several = "MPI_THREAD_MULTIPLE";
#if MPI_VERSION >= 4
  MPI_Info given;
  if (host.Session_get_info && host.Info_free && host.Session_get_info(*session, &given) == MPI_SUCCESS) {
    const std::string level = hint(given, key);
    host.Info_free(&given);
    if (!level.empty()) return level == several;
  }
#endif
  return asked != MPI_INFO_NULL && hint(asked, key) == several;  // a single thread is the default
}

// Messages must arrive, even if the program no longer waits for them. This waits for a second at most; the progress
// thread serves later ones, and those that are never received, while the host waits for the other ranks.
void finish_messages() {
  if (!the_messenger) return;
  auto outstanding = [] {
    return the_messenger->sends_pending() || freed_are_outstanding() || buffered_are_outstanding();
  };
  if (!outstanding()) return;
  const std::uint64_t limit = waiting::nanoseconds() + 1'000'000'000;
  try {
    the_messenger->wait_until([&] { return !outstanding() || waiting::nanoseconds() > limit; },
                              [](int) { return true; }, nullptr, "finishing its messages");
  } catch (const team::Broken& broken) {
    log_line(LogLevel::warn, "MPI_Finalize: %s", broken.what());
  }
}

}  // namespace

void end_of_program() {
  recording::end();
  team::Process* const n = process();
  if (!n) return;
  statistics::report(n->settings());
  finish_messages();
  finalize_node();
  // The host waits for the others, which may still need what we have sent.
  entered_at_the_end = HostScope::enter();
  if (!in_host_at_the_end) in_host_at_the_end = new InHost(false);
}

// The kernel registers a process with one thread at once. With several it waits for all processors: 9 ms (Xeon).
void register_for_barriers_at_once() {
  struct stat threads;  // of the directory: it has two links, and one for each thread
  if (!early::is_off("NEARFIELD") && stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3)
    windows::register_for_barriers();
}

template <class Call>
int start_host(Call call) {
  enter_host_init();
  host_starts();
  register_for_barriers_at_once();
  const InHost in_host(false);
  const int code = call();
  host_has_started();
  return code;
}

int Init(int* argc, char*** argv) {
  const reach::SharedHeap::Pause pause;
  const int code = start_host([&] { return host.Init(argc, argv); });
  if (code == MPI_SUCCESS) started(MPI_THREAD_SINGLE);
  return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  const reach::SharedHeap::Pause pause;
  const int code = start_host([&] { return host.Init_thread(argc, argv, required, provided); });
  if (code == MPI_SUCCESS) started(provided ? *provided : MPI_THREAD_MULTIPLE);
  return code;
}

int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  if (!host.Session_init) return MPI_ERR_UNSUPPORTED_OPERATION;
  enter_session();
  int code;
  {
    const HostCall blocks(Function::Session_init);
    const reach::SharedHeap::Pause pause;
    code = host.Session_init(info, errhandler, session);
  }
  if (code != MPI_SUCCESS || !has_threads(session, info)) return code;
  threads_in_sessions.store(true, std::memory_order_relaxed);
  if (the_messenger) the_messenger->set_threaded();
  return code;
}

// The program's callbacks on MPI_COMM_SELF run first, and may communicate; then the host calls end_of_program().
int Finalize() {
  free_created();
  if (the_runner && the_runner->unattended())  // bodies notice dead members themselves
    wait_ours([] { return !the_runner->unattended(); }, [](int) { return false; }, nullptr, "in MPI_Finalize");
  if (abi::remarks_on_kept_requests && running()) show_persistent();
  const int code = host.Finalize();
  if (code != MPI_SUCCESS) return code;
  end_of_program();  // if the host has not called it
  delete std::exchange(in_host_at_the_end, nullptr);
  if (entered_at_the_end) HostScope::leave();
  if (the_progress_thread) the_progress_thread->stop();
  keep_message_counts();
  the_messenger = nullptr;
  return code;
}

// Collective. Hints: nearfield = on | off, nearfield_algorithm = text as in NEARFIELD_ALGORITHM (blank: none),
// nearfield_reproducible = on | off, as NEARFIELD_REPRODUCIBLE.
int Comm_set_info(MPI_Comm comm, MPI_Info info) {
  int keys = 0;
  if (info == MPI_INFO_NULL || host.Info_get_nkeys(info, &keys) != MPI_SUCCESS || keys == 0)
    return host.Comm_set_info(comm, info);
  const std::string on = hint(info, "nearfield"), algorithm = hint(info, "nearfield_algorithm"),
                    reproducible = hint(info, "nearfield_reproducible");
  if (on.empty() && algorithm.empty() && reproducible.empty()) return host.Comm_set_info(comm, info);
  for (const auto& [key, value] : {std::pair("nearfield", &on), std::pair("nearfield_reproducible", &reproducible)})
    if (!value->empty() && *value != "on" && *value != "off")
      return raise(comm, "MPI_Comm_set_info", (std::string("the hint ") + key + " is neither on nor off").c_str());
  if (const std::string wrong = hierarchy::complain_about(algorithm); !wrong.empty())
    return raise(comm, "MPI_Comm_set_info", ("hint nearfield_algorithm: " + wrong).c_str());
  Communicator* const state = communicator_of(comm);
  if (!state) return host.Comm_set_info(comm, info);
  if (is_being_created(*state)) state->async_creation->wait();  // it has a team on all ranks then, or on none
  if (!reproducible.empty()) keep_order(*state, reproducible == "on");
  if (!state->team && !state->hierarchy && !state->team_tried && state->size > 1) make_team(*state);
  // The program must not switch it while messages are under way.
  if (!on.empty()) state->messages_on = state->enabled = on == "on";
  if (state->hierarchy && !algorithm.empty()) state->hierarchy_chooser->override_with(algorithm);
  if (team::Team* const team = state->near_team(); team && !algorithm.empty()) {
    team->contexts().finish();  // so that operations that have been issued keep their algorithms
    state->leaving.settle();
    (state->team ? *state->chooser : *state->hierarchy->node_chooser()).override_with(algorithm);
    for (const auto& chooser : state->further)
      if (chooser) chooser->override_with(algorithm);
  }
  return host.Comm_set_info(comm, info);
}

#define HERE_by_hand ,
#define OURS ENTRY
#include "mpi/functions.def"

// Returns our entry for the function; nullptr: the host's own serves it.
void* serving(Function number) {
  switch (number) {
#define OURS(name, ...) \
  case Function::name: return reinterpret_cast<void*>(entry<Function::name>());
#include "mpi/functions.def"
    case Function::X_Request_is_complete: return reinterpret_cast<void*>(&X_Request_is_complete);
    case Function::X_Comm_failure_ack:
      return host.Comm_failure_ack ? reinterpret_cast<void*>(&Comm_failure_ack) : nullptr;
    case Function::X_Comm_revoke: return host.Comm_revoke ? reinterpret_cast<void*>(&Comm_revoke) : nullptr;
    case Function::I_Win_get_attr:
      return abi::knows_fortran_keys && host.I_Win_get_attr ? reinterpret_cast<void*>(&I_Win_get_attr) : nullptr;
    default: return blocking_function(number);
  }
}

}  // namespace nearfield::mpi

extern "C" {

__attribute__((visibility("default"))) int nearfield_shim_bind(nearfield::mpi::FindInHost* find,
                                                               std::uint64_t numbering) {
  if (numbering != nearfield::mpi::numbering) {
    constexpr const char* text = "libnearfield.so and its shim are of different builds; the host MPI serves every call";
    nearfield::log_line(nearfield::LogLevel::warn, "%s", text);
    nearfield::early::leave_word(text);
    return 0;
  }
  try {
    return nearfield::mpi::bind_host(find);
  } catch (const nearfield::OutOfMemory&) {
    nearfield::log_line(nearfield::LogLevel::info, "out of memory, the host serves every call");
    return 0;
  }
}

// Returns the shim's version of the function with that number (mpi/numbers.hpp); nullptr: the host's own serves it.
__attribute__((visibility("default"))) void* nearfield_shim_function(unsigned number) {
  const auto which = static_cast<nearfield::mpi::Function>(number);
  void* const function = nearfield::mpi::serving(which);
  return function && nearfield::mpi::recording::wanted() ? nearfield::mpi::recording::around(which, function)
                                                         : function;
}
// Returns the function that serves sched_yield to threads inside the host, which returns whether that replaces the
// yield. `in_host`: returns the calling thread's flag.
__attribute__((visibility("default"))) bool (*nearfield_shim_serve_yields(bool* (*in_host)()))() {
  nearfield::mpi::mark_of_preload = in_host;
  return nearfield::mpi::yield_in_host;
}
// Corrects an attribute of a window that bindings for Fortran have read without MPI_Win_get_attr.
__attribute__((visibility("default"))) void nearfield_shim_fortran_attribute(int win, int key, std::intptr_t* value) {
  nearfield::mpi::mend_fortran_attribute(win, key, value);
}
__attribute__((visibility("default"))) const char* nearfield_shim_last_algorithm() {
  return *nearfield::mpi::last_algorithm;
}
}
