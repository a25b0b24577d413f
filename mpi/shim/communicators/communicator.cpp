// The process's life cycle: its context, its messenger, and the state of each communicator.
//
//   before ----> starting ----> before ----> running ----> finished      phase
//      MPI_Init is     host.Init     start_node    end_of_program
//      entered         has returned       \-> unavailable: the host serves every call
//
// While MPI_Init runs in the host (starting), it serves the calls that it makes itself. A rank that cannot take part
// still joins the calls that create teams, so that all members fall back to the host (law 7 of
// docs/dev/architecture.md).
//
// Threads: start_mutex for the beginning, first_use for a communicator's first state; the state of a communicator
// changes afterwards only in calls that MPI lets one thread make at a time.
#include "mpi/shim/communicators/communicator.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/base/outcome.hpp"
#include "engine/choosing/choose.hpp"
#include "engine/choosing/tuned.hpp"
#include "engine/creation/create.hpp"
#include "engine/processor/processor.h"
#include "engine/windows/control_block.hpp"
#include "mpi/shim/communicators/async_creation.hpp"
#include "mpi/shim/communicators/bootstrap.hpp"
#include "mpi/shim/communicators/host_transport.hpp"
#include "mpi/shim/communicators/presence.hpp"
#include "mpi/shim/handles/types.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/host_scope.hpp"
#include "mpi/shim/process/launchers.hpp"
#include "mpi/shim/process/outcome.hpp"
#include "mpi/shim/statistics/counts.hpp"
#include "mpi/shim/statistics/report.hpp"

namespace nearfield::mpi {

const PerThread<std::array<CachedCommunicator, cached_communicators>, threads::at::communicators> communicator_cache;

namespace {

enum class Phase : std::uint8_t { before, starting, running, unavailable, finished };
constinit std::atomic<Phase> phase{Phase::before};
constinit std::mutex start_mutex;
constinit team::Process* the_process = nullptr;
Near& near_ranks() { return made<Near>(); }                 // ranks of the world on this node, set in MPI_Init
std::string& why_no_team() { return made<std::string>(); }  // why MPI_Init could not create the last team it tried
constinit int keyval = 0, last_keyval = 0;  // the second: whose callback calls end_of_program() in MPI_Finalize

// A duplicate of a communicator starts without state.
int do_not_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// Called by the host when the communicator is freed, by whatever call.
int forget(MPI_Comm, int, void* value, void*) {
  std::unique_ptr<Communicator> state(static_cast<Communicator*>(value));
  communicator_epoch.fetch_add(1, std::memory_order_acq_rel);  // SYNC: communicator-epoch
  forget_buffer(state->comm);
  if (is_being_created(*state) && !state->async_creation->wait()) {  // its lane refers to the state
    static_cast<void>(state.release());
    return MPI_SUCCESS;
  }
  outlive(state->comm);
  state->hierarchy.reset();
  if (!state->team) return MPI_SUCCESS;
  team::Team& team = *state->team;
  Communicator* const kept = state.release();  // operations that are under way or planned need it
  if (&team == base_team) return MPI_SUCCESS;  // the messenger uses it for ever
  team.orphan();
  kept->keep();
  if (!team.contexts().first.outlive(*kept)) kept->let_go();  // otherwise calls that are left let go later
  kept->let_go();
  return MPI_SUCCESS;
}

int last_of_self(MPI_Comm, int, void*, void*) {
  end_of_program();
  return MPI_SUCCESS;
}

// Returns whether all of its processes belong to our MPI_COMM_WORLD; the same on all of them.
bool within_world(MPI_Comm comm) {
  MPI_Group group;
  if (host.Comm_group(comm, &group) != MPI_SUCCESS) return false;
  const bool within = !ranks_in_world(group).empty();
  host.Group_free(&group);
  return within;
}

// Local. Makes the state of a communicator: rank, size, and whether it is an intercommunicator.
std::unique_ptr<Communicator> describe(MPI_Comm comm) {
  auto state = std::make_unique<Communicator>();
  state->comm = comm;
  int inter = 0;
  if (host.Comm_test_inter(comm, &inter) || inter) {
    state->inter = state->team_tried = true;
    host.Comm_rank(comm, &state->rank);
    host.Comm_remote_size(comm, &state->size);
    return state;
  }
  host.Comm_rank(comm, &state->rank);
  host.Comm_size(comm, &state->size);
  return state;
}

void watch(Communicator& state) {
  team::Team* const team = state.near_team();
  if (!host.Comm_is_revoked || !team) return;
  team->user = &state;
}

}  // namespace

namespace {
std::unique_ptr<choosing::Chooser> new_chooser() try {
  return std::make_unique<choosing::Chooser>();
} catch (const OutOfMemory&) {
  return nullptr;
}
}  // namespace

void Communicator::let_go() {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // SYNC: team-users
  team::Team::close(std::move(team));
  delete this;
}

// The program's threads ask the host; a progress thread must not.
bool Communicator::abandoned() const { return !waiting::own_thread && revoked_slowly(comm); }

void install_team(Communicator& state, std::unique_ptr<team::Team> team, std::unique_ptr<choosing::Chooser> chooser) {
  state.team = std::move(team);
  chooser->serve(*state.team);
  state.chooser = std::move(chooser);
  state.team->takes_less = takes_less;
  state.leaving.may_leave = the_messenger && !state.team->plan().check;
  watch(state);
}

void make_team(Communicator& state) {
  state.team_tried = true;
  // Spawned and connected processes may run without Nearfield and would not answer.
  if (state.comm != host.world && !within_world(state.comm)) {
    log_line(LogLevel::info, "the host serves a communicator with processes of another MPI_COMM_WORLD");
    return;
  }
  HostBootstrap bootstrap(state.comm);
  const bool nested = std::exchange(inside->creating, true);
  try {
    auto chooser = the_process ? new_chooser() : nullptr;
    if (several_nodes && make_hierarchy(state, bootstrap)) {
      if (state.hierarchy) watch(state);
    } else if (!chooser) {
      creation::decline_team(state.size, bootstrap);
    } else if (auto team = creation::create_team(*the_process, state.rank, state.size, bootstrap)) {
      install_team(state, std::move(*team), std::move(chooser));
    } else {
      log_line(LogLevel::info, "the host serves a communicator of %d ranks: %s", state.size, team.error().text.c_str());
      if (!running()) why_no_team() = team.error().text;
    }
  } catch (const OutOfMemory&) {  // while making the text of an error that all members have
  }
  inside->creating = nested;
}

std::unique_ptr<team::Team> separate_team(const Communicator& state) {
  HostBootstrap bootstrap(state.comm);
  const bool nested = std::exchange(inside->creating, true);
  struct Leave {
    bool nested;
    ~Leave() { inside->creating = nested; }
  } leave{nested};
  if (!the_process) {
    creation::decline_team(state.size, bootstrap);
    return nullptr;
  }
  auto team = creation::create_team(*the_process, state.rank, state.size, bootstrap);
  return team ? std::move(*team) : nullptr;
}

namespace {

// Collective over the members of `state`: the messenger on top of their team.
void make_messenger(Communicator& state, bool threaded) {
  TeamBootstrap bootstrap(*state.team);
  auto messenger = messages::Messenger::create(*state.team, bootstrap, threaded);
  if (!messenger) return log_line(LogLevel::info, "the host serves all messages: %s", messenger.error().text.c_str());
  the_messenger = messenger->release();
  base_team = state.team.get();
  set_members(state.comm);
}

// Collective over the world. Returns a communicator of the processes on our node, by both the host and node_id(); null:
// these are all processes, or only we, or a rank cannot take part.
MPI_Comm split_by_node(int world_size) {
  MPI_Comm shared = host.comm_null, process = host.comm_null;
  if (!HostBootstrap(host.world).all_and(the_process != nullptr)) return process;
  if (host.Comm_split_type(host.world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared) != MPI_SUCCESS) return process;
  const int split = host.Comm_split(shared, int(the_process->node_id() & 0x7fffffff), 0, &process);
  host.Comm_free(&shared);
  if (split != MPI_SUCCESS) return host.comm_null;
  int size = 1;
  host.Comm_size(process, &size);
  if (size == 1 || size == world_size) host.Comm_free(&process);
  return process;
}

// Collective over the processes of a node, if the world has several nodes.
void start_messages_of_node(MPI_Comm comm, bool threaded) {
  std::unique_ptr<Communicator> state;
  try {
    state = describe(comm);
  } catch (const OutOfMemory&) {  // the others are in the call
    int size = 1;
    host.Comm_size(comm, &size);
    HostBootstrap bootstrap(comm);
    return creation::decline_team(size, bootstrap);
  }
  make_team(*state);
  near_ranks().note(state->team.get());
  if (state->team) make_messenger(*state, threaded);
  if (the_messenger) state.release();  // the messenger keeps its team for ever
}

// Collective over the world: makes the team of all processes, or of those on this node, and the messenger on top of it.
void start_messages(bool threaded) {
  auto state = describe(host.world);
  make_team(*state);
  near_ranks().note(state->team.get());
  if (state->team) {
    make_messenger(*state, threaded);
    if (the_messenger) state->context = 1;
    state->leaving.may_leave = the_messenger && !state->team->plan().check;
  } else if (state->size > 1) {
    state->team_tried = false;  // made by its first collective call
    MPI_Comm comm = split_by_node(state->size);
    if (comm != host.comm_null) {
      start_messages_of_node(comm, threaded);
      host.Comm_free(&comm);
    }
    several_nodes = true;
    if (the_messenger) state->context = 1;
  }
  if (state->size == 1 && !the_messenger) state->team.reset();
  if (host.Comm_set_attr(host.world, keyval, state.get()) == MPI_SUCCESS) state.release();
  if (!the_messenger) return;
  auto self = describe(host.self);
  self->context = 2;
  if (host.Comm_set_attr(host.self, keyval, self.get()) == MPI_SUCCESS) self.release();
}

void start_hang_reports() try {
  calls::begin_hang_reports(base_team);
  const std::string& signal = the_process->settings().stall_signal;
  if (signal.empty()) return;
  if (auto listening = the_process->hang_reporter()->listen(signal); !listening)
    log_line(LogLevel::warn, "NEARFIELD_STALL_SIGNAL=%s cannot ask for a hang report: %s", signal.c_str(),
             listening.error().text.c_str());
} catch (const OutOfMemory&) {
  log_line(LogLevel::info, "out of memory, so there are no hang reports");
}

// For NEARFIELD_PROGRESS=thread. If the thread cannot be started, operations progress only in the program's calls.
void start_progress_thread() try {
  std::vector<pid_t> ranks{getpid()};
  if (base_team)
    for (const team::Peer* const peer : base_team->peers())
      if (peer && peer->pid) ranks.push_back(peer->pid);
  auto thread =
      std::make_unique<messages::ProgressThread>(*the_process, the_messenger, messages::Serves::always, ranks);
  if (thread->start()) the_progress_thread = thread.release();
  else log_line(LogLevel::info, "NEARFIELD_PROGRESS=thread: the thread could not be started");
} catch (const OutOfMemory&) {
  log_line(LogLevel::info, "NEARFIELD_PROGRESS=thread: out of memory, the thread was not started");
}

}  // namespace

// SYNC: phase
team::Process* process() { return phase.load(std::memory_order_acquire) == Phase::running ? the_process : nullptr; }
team::Process* process_ever() { return the_process; }

void enter_host_init() {
  auto expected = Phase::before;
  if (phase.compare_exchange_strong(expected, Phase::starting)) announce_presence();
}

void enter_session() {
  if (phase.load(std::memory_order_acquire) == Phase::before) announce_before_session();  // SYNC: phase
}

void leave_host_init() {
  auto expected = Phase::starting;
  phase.compare_exchange_strong(expected, Phase::before);
}

namespace {
void cannot_honour(const std::string& complaints) {
  std::fprintf(stderr, "nearfield: a setting is not valid; correct it or unset it.\n%s", complaints.c_str());
  let_launchers_forward();
  host.Abort(host.world, 1);
}

// Never destroyed, as the process.
struct ShimServices final : choosing::TeamServices {
  using choosing::TeamServices::TeamServices;
  std::string describe(std::uint64_t doing) const override {
    return windows::is_of_window(doing) ? windows::describe(doing) : choosing::TeamServices::describe(doing);
  }
};
}  // namespace

void start_node(int thread_level, bool collectively) {
  const std::lock_guard lock(start_mutex);
  if (phase.load(std::memory_order_acquire) != Phase::before) return;  // SYNC: phase
  // The host serves programs that use sessions alone, which have no world to progress the host by.
  int initialized = 0;
  if (host.Initialized(&initialized) != MPI_SUCCESS || !initialized) return;
  std::string complaints;
  Settings settings;
  try {
    settings = read_settings(complaints);
  } catch (const OutOfMemory&) {
    settings.enabled = false;
  }
  if (const std::string wrong = hierarchy::complain_about(settings.algorithm); !wrong.empty())
    complaints += "NEARFIELD_ALGORITHM=" + settings.algorithm + ": " + wrong + "\n";
  std::unique_ptr<const choosing::Tuned> tuned;
  if (settings.choosing == Choosing::file) {
    auto read = choosing::Tuned::read(settings.tuned);
    if (read) tuned = std::make_unique<const choosing::Tuned>(std::move(*read));
    else complaints += "NEARFIELD_CHOOSE=file: " + read.error().text + "; `nearfield tune` writes such files\n";
  }
  if (const std::string wrong = memory::Placer(settings.memory).complaints(); !wrong.empty())
    complaints += "NEARFIELD_MEMORY: " + wrong;
  if (!complaints.empty()) cannot_honour(complaints);
  int rank = 0, size = 1;
  host.Comm_rank(host.world, &rank);
  host.Comm_size(host.world, &size);
  set_log_rank(rank);
  if (collectively && ranks_are_absent(rank, size)) {
    early::leave_word("some ranks run without Nearfield");
    return phase.store(Phase::unavailable, std::memory_order_release);  // SYNC: phase
  }
  // Even without a process context this rank takes part when others create a team, so that all fall back to the host.
  if (settings.enabled) try {
      auto created = team::Process::create(settings, *new ShimServices(std::move(tuned)), [](const std::string& why) {
        cannot_honour("NEARFIELD_MEMORY: " + why + "\n");
      });
      if (created) {
        the_process = created->release();
        the_runner = &the_process->runner();
        the_runner->keep(2 * (context::further + 1));  // for two communicators, including the creation of their teams
        the_process->progress().set_host(&progress_of_host());
      } else {
        log_line(LogLevel::info, "no shared memory, the host serves every call: %s", created.error().text.c_str());
        why_no_team() = "no shared memory: " + created.error().text;
      }
    } catch (const OutOfMemory&) {
      log_line(LogLevel::info, "out of memory, the host serves every call");
    }
  int* upper_bound = nullptr;
  int known = 0;
  const bool tags = host.Comm_get_attr(host.world, MPI_TAG_UB, &upper_bound, &known) == MPI_SUCCESS && known;
  bind_types();
  bind_layouts();
  find_status_fields();
  find_fortran_number();
  largest_tag = tags ? *upper_bound : 32767;
  if (the_process) statistics::begin(settings);
  // Attributes of MPI_COMM_SELF are deleted in reverse order when MPI_Finalize begins, so ours comes after all
  // callbacks of the program, which may still communicate.
  const bool ready = host.Comm_create_keyval(do_not_copy, forget, &keyval, nullptr) == MPI_SUCCESS &&
                     host.Comm_create_keyval(do_not_copy, last_of_self, &last_keyval, nullptr) == MPI_SUCCESS &&
                     host.Comm_set_attr(host.self, last_keyval, &last_keyval) == MPI_SUCCESS;
  if (ready && collectively) {
    inside->creating = true;
    const bool always = the_process && settings.progress == Progressing::thread;
    start_messages(always || thread_level == MPI_THREAD_MULTIPLE);
    inside->creating = false;
    if (the_process) start_hang_reports();
    if (always && size > 1) start_progress_thread();
    if (!the_progress_thread && the_messenger)
      the_progress_thread = new messages::ProgressThread(*the_process, the_messenger, messages::Serves::in_host);
  }
  phase.store(ready ? Phase::running : Phase::unavailable, std::memory_order_release);  // SYNC: phase
  report_outcome({rank, size, ready, settings.enabled, collectively, near_ranks(), why_no_team()});
}

std::uint64_t mix_context(std::uint64_t a, std::uint64_t b) {  // the finaliser of splitmix64, twice
  auto mix = [](std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
  };
  const std::uint64_t mixed = mix(mix(a + 0x9e3779b97f4a7c15u) ^ (b + 0xd1b54a32d192ed03u));
  return mixed > 2 ? mixed : mixed + 3;  // 0: none, 1: the world, 2: self
}

bool running() { return phase.load(std::memory_order_acquire) == Phase::running; }  // SYNC: phase

void adopt(MPI_Comm comm, std::uint64_t context) {
  // SYNC: phase
  if (comm == host.comm_null || phase.load(std::memory_order_acquire) != Phase::running) return;
  auto state = describe(comm);
  state->context = context;
  // The same on all its ranks: they are members of the world's team, whose first rank has decided it.
  if (context && !several_nodes && base_team && !base_team->plan().check) state->deferred = base_team->plan().deferred;
  if (host.Comm_set_attr(comm, keyval, state.get()) == MPI_SUCCESS) state.release();
}

void finalize_node() {
  if (team::Process* const n = process()) {
    n->leave();
  }
  phase.store(Phase::finished, std::memory_order_release);  // SYNC: phase
  // SYNC: communicator-epoch; empties the caches, so that the host serves every call from here on
  communicator_epoch.fetch_add(1, std::memory_order_acq_rel);
}

Communicator* communicator_slowly(MPI_Comm comm) {
  if (comm == host.comm_null || inside->creating) return nullptr;
  if (phase.load(std::memory_order_acquire) == Phase::before) {  // SYNC: phase
    int level = MPI_THREAD_SINGLE;                               // a wrapper of MPI_Init may bypass ours
    host.Query_thread(&level);
    start_node(level, false);
  }
  if (phase.load(std::memory_order_acquire) != Phase::running) return nullptr;  // SYNC: phase
  void* value = nullptr;
  int found = 0;
  const std::uint64_t epoch = communicator_epoch.load(std::memory_order_acquire);  // SYNC: communicator-epoch
  if (host.Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  if (!found) {
    const std::lock_guard lock(first_use);
    if (host.Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS) return nullptr;
    if (!found) {
      auto created = describe(comm);
      if (host.Comm_set_attr(comm, keyval, created.get()) != MPI_SUCCESS) return nullptr;
      value = created.release();
    }
  }
  auto* const state = static_cast<Communicator*>(value);
  const auto bits = (std::uint64_t)comm;
  (*communicator_cache)[(bits ^ bits >> 8) % cached_communicators] = {comm, epoch, state};
  return state;
}

}  // namespace nearfield::mpi
