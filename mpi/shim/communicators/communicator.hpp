// State of a communicator: its team for collectives, its context for messages.
//
// The state is attached to the communicator as an attribute, so it lives exactly as long as the communicator, however
// that is freed. A small cache per thread saves the look-up of the attribute.
//
// A context is a number that is equal on all ranks of a communicator and different for every other communicator of a
// process. It needs no communication: it is computed from the parent's context and the number of the parent's children,
// which all its ranks count alike. Communicators made by one call (split) share no rank, so they may have one number.
// Without a parent that all ranks know, origins.cpp computes it from the groups, or lets the ranks agree on it.
// Communicators with processes of another MPI_COMM_WORLD (spawned, connected) have none: the host serves their
// messages, and those of their children.
//
// In an intercommunicator `size` and `members` are of the remote group, `rank` is our own in the local group. We serve
// it if both groups are on this node.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "engine/choosing/leaving.hpp"
#include "engine/context/pool.hpp"
#include "engine/hang_report/reporter.hpp"
#include "engine/hierarchy/chooser.hpp"
#include "engine/messages/messenger.hpp"
#include "mpi/shim/collectives/engine/route.hpp"
#include "mpi/shim/process/host.hpp"
#include "mpi/shim/process/host_scope.hpp"
#include "mpi/shim/process/threads/per_thread.hpp"

namespace nearfield::mpi {

// Neighbours in a communicator's topology, in the order of their blocks; -1 is MPI_PROC_NULL. Tags distinguish several
// edges between two ranks if their order would not (neighbors.cpp).
struct Neighborhood {
  struct Edge {
    int rank, tag;
  };
  std::vector<Edge> sources, targets;
};

// Which ranks of a communicator are members of the messenger: all (near), some (both), or none but this rank (far).
enum class Side : std::uint8_t { unknown, near, both, far };

class AsyncCreation;

struct Communicator final : team::TeamUser {
  // References: the program's, and one of each operation that is under way or planned. The last to go closes the team
  // and frees the state.
  void keep() { users_.fetch_add(1, std::memory_order_relaxed); }
  void let_go();
  bool abandoned() const override;
  void left() override { let_go(); }

  std::unique_ptr<team::Team> team;                                // of all ranks, if they share a node
  std::unique_ptr<choosing::Chooser> chooser;                      // for its calls; made with the team
  choosing::Leaving leaving;                                       // calls of its team that we have left
  std::unique_ptr<hierarchy::Hierarchy> hierarchy;                 // if the ranks live on several nodes
  std::unique_ptr<hierarchy::HierarchyChooser> hierarchy_chooser;  // made with the hierarchy
  // Returns the team of the ranks that we share memory with; may be null. Without team and hierarchy the host serves
  // this communicator's collectives.
  team::Team* near_team() const { return team ? team.get() : hierarchy ? hierarchy->team() : nullptr; }
  // Returns the facts that route() gets (collectives/engine/route.hpp). `asks_reach`: also which ranks messages reach.
  CommunicatorFacts facts(bool asks_reach);
  bool enabled = true;  // false: the hint `nearfield` is off, or a member lacked memory in a call (carry.hpp)
  bool team_tried = false;
  std::uint32_t deferred = 0;  // number of next collective calls that the host serves; equal on all ranks
  std::shared_ptr<AsyncCreation> async_creation;  // set if its first collective call must not wait (async_creation.hpp)
  bool reproducible = false;                      // hint `nearfield_reproducible`, kept for a later hierarchy
  MPI_Comm comm{};
  int rank = 0, size = 1;
  bool inter = false;  // an intercommunicator
  std::unique_ptr<choosing::Chooser>
      further[context::further];  // for its operations that may overlap others, by context

  bool messages_on = true;          // hint `nearfield`
  std::uint64_t context = 0;        // 0: the host serves its messages
  std::uint64_t children_made = 0;  // children made by collective constructors
  std::uint64_t plans = 0;          // persistent operations made of messages; each has a context
  // Number of children made by constructors that only some ranks call, by a hash of those ranks and the tag.
  std::map<std::uint64_t, std::uint64_t> partial_children_made;
  std::vector<int> members;  // rank to member of the messenger, -1: on another node; filled in by the first message
  std::atomic<Side> side{Side::unknown};
  // Number of partitioned messages that have been initialised, by partner, tag and side; under a lock
  // (partitioned.cpp).
  std::map<std::tuple<int, int, bool>, std::uint32_t> partitioned;
  std::unique_ptr<const Neighborhood> neighborhood;  // made by the first call that needs it

 private:
  std::atomic<int> users_{1};
};

struct CachedCommunicator {
  MPI_Comm comm;
  std::uint64_t epoch;
  Communicator* state;
};
inline constexpr unsigned cached_communicators = 8;
extern const PerThread<std::array<CachedCommunicator, cached_communicators>, threads::at::communicators>
    communicator_cache;
// Incremented whenever a communicator's state is freed, which invalidates the caches.
inline constinit std::atomic<std::uint64_t> communicator_epoch{1};

// The host serves revoked communicators: its calls return the error that the program expects (revoking.cpp).
inline constinit std::atomic<bool> may_be_revoked{false};  // some communicator has been revoked
bool revoked_slowly(MPI_Comm comm);
inline bool revoked(MPI_Comm comm) { return may_be_revoked.load(std::memory_order_relaxed) && revoked_slowly(comm); }
// Called before a call on a revoked communicator goes to the host. We may learn of the revocation earlier than the
// host, which would start the call; so this waits until the host knows, for a second at most.
void let_host_learn(MPI_Comm comm);
inline bool left_to_host(MPI_Comm comm) {
  if (!revoked(comm)) [[likely]]
    return false;
  let_host_learn(comm);
  return true;
}
void look_for_revoked();  // notices revocation by other ranks
void note_revoked();
int note_error_of_host(int code);  // the error may be a revocation, so later calls ask the host; returns the code

Communicator* communicator_slowly(MPI_Comm comm);
// Collective. Makes the team, or the hierarchy (over_nodes.cpp), if possible.
void make_team(Communicator& state);
void install_team(Communicator& state, std::unique_ptr<team::Team> team, std::unique_ptr<choosing::Chooser> chooser);
// Collective. Creates another team of the same ranks. pre: they share a node. nullptr on all: it cannot be created.
std::unique_ptr<team::Team> separate_team(const Communicator& state);
// Collective over all ranks. False: they share a node, so nothing has been made. True: otherwise, even if it failed.
bool make_hierarchy(Communicator& state, team::Bootstrap& bootstrap);
// Collective. Sets whether reductions over nodes combine in rank order from now on.
void keep_order(Communicator& state, bool keep);
int lowest_near(const Communicator& state);  // the lowest rank that the messenger reaches, or our own

// Local. nullptr: the host serves the call (handle invalid, MPI not running, ...).
inline Communicator* communicator_of(MPI_Comm comm) {
  const auto bits = (std::uint64_t)comm;
  const CachedCommunicator& cached = (*communicator_cache)[(bits ^ bits >> 8) % cached_communicators];
  // SYNC: communicator-epoch
  if (cached.comm == comm && cached.state && cached.epoch == communicator_epoch.load(std::memory_order_acquire))
      [[likely]]
    return cached.state;
  return communicator_slowly(comm);
}

// Attaches the state of a new communicator. `context` 0: the host serves its messages.
void adopt(MPI_Comm comm, std::uint64_t context);
std::uint64_t mix_context(std::uint64_t a, std::uint64_t b);
// A communicator's second context, for messages of collectives, which receives of the program must not match.
inline std::uint64_t context_of_collectives(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{0}); }
// The third, for collectives that overlap other calls, which blocking calls must not match.
inline std::uint64_t context_of_overlapping(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{1}); }
// The fourth, from which those of partitioned messages are computed.
inline std::uint64_t context_of_partitioned(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{2}); }

// The fifth, for the creation of its team.
inline std::uint64_t context_of_creation(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{3}); }
// One for each persistent operation, since they may start in any order.
inline std::uint64_t context_of_plan(const Communicator& c, std::uint64_t plan) {
  return mix_context(c.context, ~(plan + 4));
}

// The messenger of this process; nullptr: the host serves all messages.
inline constinit messages::Messenger* the_messenger = nullptr;
// Runs bodies of operations that may overlap others; may be null.
inline constinit fibers::Runner* the_runner = nullptr;
inline bool run_bodies() { return the_runner && the_runner->poll(); }
// Progresses our messages and bodies. Returns whether anything moved.
inline bool poll_ours() {
  const bool moved = the_messenger && the_messenger->poll();
  return run_bodies() || moved;
}
// Waits until `done()`. `awaited(member)`: returns whether the death of that member of the messenger ends the wait.
void wait_ours(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also, const char* doing);
// Progresses the host in our waits.
waiting::Foreign& progress_of_host();
// Guards the first use of a communicator by several threads; recursive, since an error handler may call us again.
inline constinit std::recursive_mutex first_use;
inline constinit team::Team* base_team = nullptr;  // of the world, or of its processes on this node
inline constinit bool several_nodes = false;       // the world has no team of all its ranks
void set_members(MPI_Comm comm);                   // sets the messenger's members: the processes of that communicator
MPI_Group world_group();
// Returns whether MPI's world and we are initialised: then all its processes join our collective calls.
bool running();
// Local. Returns the ranks of a group's processes in our MPI_COMM_WORLD; none: one belongs to another world.
std::vector<int> ranks_in_world(MPI_Group group);
Side resolve_members(Communicator& state);
// Returns its ranks as members of the messenger; -1: no member.
std::vector<int> members_near(MPI_Comm comm);

inline Side side_of(Communicator& state) {
  const Side side = state.side.load(std::memory_order_acquire);  // SYNC: members-resolved
  return side == Side::unknown ? resolve_members(state) : side;
}

// Returns the communicator if we serve its messages, those between ranks of this node if it spans several; nullptr: the
// host does.
inline Communicator* channel(MPI_Comm comm) {
  if (!the_messenger) [[unlikely]]
    return nullptr;
  Communicator* const state = communicator_of(comm);
  if (!state || state->context == 0 || !state->messages_on || left_to_host(comm)) [[unlikely]]
    return nullptr;
  return side_of(*state) == Side::far ? nullptr : state;
}
// pre: channel() has returned it.
inline bool spans_nodes(const Communicator& state) { return state.side.load(std::memory_order_relaxed) == Side::both; }

// Returns whether the death of that member of the messenger is an error of an any-source receive in the communicator.
// False if the member is no rank of it, or if the program has acknowledged the death (revoking.cpp).
bool may_come_from(const Communicator& c, int member);

inline MessageReach reach_of(Communicator& c) {
  if (!the_messenger) return MessageReach::none;
  if (!c.messages_on) return MessageReach::off;
  return c.context && side_of(c) == Side::near ? MessageReach::all : MessageReach::not_all;
}

// Returns a Waiter for a wait whose condition calls the host, which progresses the host; it progresses our messages.
waiting::Waiter host_waiter();
const waiting::Policy& wait_policy();
template <class Done>
void wait_in_host(Done done, waiting::Waiter& waiter) {
  if (!waiting::spin(100, done, [] {})) waiting::wait_slowly(wait_policy(), done, waiter);
}
template <class Done>
void wait_in_host(Done done) {
  waiting::Waiter waiter = host_waiter();
  wait_in_host(done, waiter);
}

// Operations of the host that may need this rank while it waits in a call of ours: windows of the host, and requests.
// We do not know which requests are under way; a program that has used requests of the host lately may have some.
inline constinit std::atomic<int> open_windows{0};
// True once a session is used by several threads: world and sessions share the messenger.
inline constinit std::atomic<bool> threads_in_sessions{false};
inline constinit std::atomic<std::uint32_t> host_requests_seen{0};
inline void note_host_request() {
  host_requests_seen.store(host_requests_seen.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Returns the process context; nullptr: MPI is not running, or Nearfield cannot work.
team::Process* process();
team::Process* process_ever();  // also after MPI_Finalize
void enter_host_init();
void enter_session();  // before the host's MPI_Session_init
void leave_host_init();
// pre: MPI is initialised. Aborts on settings that cannot be met. Messages are served only if all ranks are known to
// call it together.
void start_node(int thread_level, bool collectively);
void finalize_node();
// Called in MPI_Finalize after the program's own callbacks (shim.cpp).
void end_of_program();

}  // namespace nearfield::mpi
