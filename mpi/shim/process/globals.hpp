// All that this library remembers of the process, beside what its threads keep (threads/per_thread.hpp): one object.
// The files named are those that write; their names for its parts are references. Objects behind pointers are made at
// their first use and never destroyed, since threads and handlers of exit() outlive main.
#pragma once
#include <link.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "engine/base/globals.hpp"
#include "engine/base/made.hpp"
#include "engine/collectives/operations.hpp"
#include "engine/waiting/wake_word.hpp"
#include "mpi/shim/handles/status_fields.hpp"
#include "mpi/shim/process/host_table.hpp"
#include "mpi/shim/statistics/counters.hpp"

namespace nearfield::fibers {
class Runner;
}
namespace nearfield::messages {
class Buffered;
class Messenger;
class ProgressThread;
struct Counts;
}  // namespace nearfield::messages
namespace nearfield::team {
class Process;
class Team;
}  // namespace nearfield::team
namespace nearfield::waiting {
class Progress;
}

namespace nearfield::mpi {

struct AnySourceRequests;
struct ContextsOfNames;
struct Datatype;
struct DeviceRuntimes;
struct FlattenedType;
struct FreedCommunicators;
class InHost;
struct JobPresence;
struct KnownLayouts;
struct MatchedTable;
struct Near;
struct NotedGroups;
struct Operator;
struct OtherTypes;
struct PersistentOfHost;
struct PredefinedHandles;
struct RequestTable;
struct UserRequest;
struct WindowRegistry;
template <class Kind>
struct UsesOfHandles;

namespace recording {
struct KnownCommunicator;
struct RecordingRun;
struct Thread;
}  // namespace recording
namespace threads {
class Variable;
}
namespace tools {
struct AppendedIndices;
struct ControlHandles;
struct PerformanceHandles;
class Sessions;
}  // namespace tools

enum class HostKind : std::uint8_t;
enum class Phase : std::uint8_t { before, starting, running, unavailable, finished };

struct Shim {
  nearfield::Globals engine;

  // process/host.cpp: filled before the program's first call, read-only afterwards
  Host host = {};
  void* host_library = nullptr;
  bool host_rejects_aliases = false;
  HostKind host_kind{};
  StatusFields status_fields;  // handles/statuses.cpp, likewise

  // communicators/communicator.cpp: while MPI starts and when it ends
  std::atomic<Phase> phase{Phase::before};
  std::mutex start_mutex;
  std::recursive_mutex first_use;  // of a communicator
  team::Process* process = nullptr;
  messages::Messenger* messenger = nullptr;
  messages::ProgressThread* progress_thread = nullptr;
  fibers::Runner* runner = nullptr;
  team::Team* base_team = nullptr;                 // of the world, or of its processes on this node
  std::atomic<Near*> near_ranks{nullptr};          // of the world on this node, as of MPI_Init
  std::atomic<std::string*> why_no_team{nullptr};  // in MPI_Init: reason of the last communicator without a team
  bool several_nodes = false;                      // the world has no team of all its ranks
  int keyval = 0, last_keyval = 0;                 // the second: whose callback calls end_of_program() in MPI_Finalize
  int largest_tag = 32767;
  std::atomic<std::uint64_t> communicator_epoch{1};

  // communicators: presence.cpp, constructors.cpp, origins.cpp, sessions.cpp, members.cpp, revoking.cpp
  std::atomic<JobPresence*> presence{nullptr};
  std::atomic<FreedCommunicators*> freed_communicators{nullptr};
  std::mutex counting_children;
  std::atomic<std::uint64_t> agreed_contexts{0};
  std::atomic<ContextsOfNames*> contexts_of_names{nullptr};
  std::atomic<NotedGroups*> noted_groups{nullptr};
  MPI_Group members_group{};  // of the messenger's members
  std::atomic<bool> may_be_revoked{false}, one_is_revoked{false};
  std::atomic<int> teams_being_created{0};  // async_creation.cpp
  std::atomic<int> transfers_under_way{0};  // host_transport.cpp
  // host_progress.cpp
  std::atomic<std::uint32_t> host_requests_known{0};
  std::atomic<std::uint64_t> host_needs_us_until{0};  // nanoseconds
  std::atomic<waiting::Progress*> nothing_of_ours{nullptr};

  // handles
  std::atomic<RequestTable*> requests{nullptr};
  static constexpr std::uint32_t most_request_chunks = 1 << 14;
  std::atomic<UserRequest*> request_chunks[most_request_chunks] = {};
  std::atomic<MPI_Request> sent_at_once{};
  std::atomic<std::uint32_t> communicators_gone{0};
  std::atomic<PredefinedHandles*> predefined{nullptr};
  std::atomic<OtherTypes*> other_types{nullptr};
  std::atomic<std::uint64_t> layout_epoch{1};
  int layout_keyval = MPI_KEYVAL_INVALID;
  std::atomic<FlattenedType*> flattened{nullptr};
  std::atomic<KnownLayouts*> layouts{nullptr};
  std::atomic<std::uint8_t> sightings[256] = {};
  std::atomic<UsesOfHandles<Operator>*> uses_of_operators{nullptr};
  std::atomic<UsesOfHandles<Datatype>*> uses_of_types{nullptr};
  std::atomic<const link_map*> newest_library{nullptr};  // devices.cpp
  std::atomic<bool> device_is_loaded{false};
  std::atomic<DeviceRuntimes*> devices{nullptr};

  // p2p
  std::atomic<int> open_windows{0};  // of the host's
  std::atomic<std::uint32_t> host_requests_seen{0};
  std::atomic<bool> host_partitioned{false};
  std::atomic<int> any_source_count{0};
  std::atomic<AnySourceRequests*> any_source{nullptr};
  std::atomic<messages::Buffered*> buffered{nullptr};
  std::atomic<MatchedTable*> matched{nullptr};
  std::atomic<PersistentOfHost*> persistent_of_host{nullptr};
  std::mutex counting_partitioned;

  // rma; flavours of windows are given to the program by their addresses
  std::atomic<std::uint64_t> window_epoch{1};
  std::atomic<WindowRegistry*> windows{nullptr};
  int flavor_allocated = MPI_WIN_FLAVOR_ALLOCATE, flavor_shared = MPI_WIN_FLAVOR_SHARED;

  char nothing_said = 0, nothing_heard = 0;  // collectives/intercomm/across.hpp: buffers of a barrier

  // process/shim.cpp, giving_way.cpp, errors_returned.hpp
  std::atomic<bool> threads_in_sessions{false};
  bool entered_at_the_end = false;
  InHost* in_host_at_the_end = nullptr;
  bool* (*mark_in_host)() = nullptr;
  waiting::WakeWord unrung;
  std::mutex error_handlers;

  // process/threads/per_thread.cpp
  static constexpr std::size_t thread_block = 4096;
  threads::Variable* thread_variables = nullptr;
  std::size_t thread_bytes = 0;  // beyond threads::at::others
  std::atomic<bool> first_block_is_taken{false};
  alignas(64) std::byte first_block[thread_block] = {};

  // calls/called.cpp
  std::atomic<bool> reporting{false};
  bool world_is_here = false;  // its ranks are the hang reporter's members; set before `reporting`
  std::atomic<unsigned> posts_taken{0};

  // recording
  std::atomic<bool> recording_is_active{false};
  std::atomic<recording::Thread*> recorded_threads{nullptr};                   // the newest
  std::atomic<recording::KnownCommunicator*> recorded_communicators{nullptr};  // the newest
  std::atomic<std::uint64_t> calls_unkept{0};                                  // of threads without a table
  std::atomic<std::uint64_t> next_save{0};                                     // ticks
  bool tracing = false, all_timed = false;
  std::mutex adding_tables, saving;
  recording::Thread* free_tables = nullptr;  // of threads that have ended; under `adding_tables`
  recording::RecordingRun* run = nullptr;
  void* recorded_functions[std::size_t(Function::count)] = {};  // what serves each

  // statistics/counts.cpp
  std::atomic<bool> counts_are_kept{false};
  std::atomic<std::uint64_t> host_messages{0};
  std::atomic<messages::Counts*> last_message_counts{nullptr};
  OneSidedCounts one_sided_counts = {};
  Tally tallies[collectives::operation_count] = {};
  HostCalls host_calls[std::size_t(Function::count)] = {};

  // tools
  std::mutex counting_users;
  std::atomic<int> tool_users{0};  // written under the lock
  std::atomic<tools::AppendedIndices*> indices{nullptr};
  std::atomic<tools::ControlHandles*> control_handles{nullptr};
  std::atomic<tools::PerformanceHandles*> performance_handles{nullptr};
  std::atomic<tools::Sessions*> sessions{nullptr};
};
extern constinit Shim shim;

}  // namespace nearfield::mpi
