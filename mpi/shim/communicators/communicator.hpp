// What Nearfield keeps for a communicator: its team for collectives, its context for messages.
//
// The state is attached to the communicator as an attribute, so it lives exactly as long as the communicator, however
// that is freed. A small cache per thread saves the look-up of the attribute.
//
// A context is a number that is equal on all ranks of a communicator and different for every other communicator of a
// process. It needs no communication: it is computed from the parent's context and the number of communicators that
// the parent has given birth to, which all its ranks count alike. Where one call makes several communicators (split),
// they share no rank, so one number serves them all. Where there is no parent that all ranks know, origins.cpp
// computes it from the groups, or has it agreed on. Communicators with processes of another MPI_COMM_WORLD (spawned,
// connected) have none: their messages are the host's, as are those of their children.
//
// Of an intercommunicator, whom it connects us with are the ranks of the remote group: `size` and `members` are theirs,
// `rank` is our own in the local group. It is ours where both groups are on this node.
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
#include "mpi/shim/process/host.hpp"
#include "mpi/shim/process/stand_in.hpp"
#include "mpi/shim/process/threads/per_thread.hpp"

namespace nearfield::mpi {

// Whom a communicator's topology makes neighbours, in the order of their blocks; -1 is MPI_PROC_NULL. Edges between two
// ranks are told apart by tags where order alone would not do (neighbors.cpp).
struct Neighborhood {
  struct Edge {
    int rank, tag;
  };
  std::vector<Edge> sources, targets;
};

// Where the ranks of a communicator are: all of them members of the messenger, some of them, or none but ourselves.
enum class Side : std::uint8_t { unknown, near, both, far };

class AsyncCreation;

struct Communicator {
  std::unique_ptr<team::Team> team;                                // of all ranks, where they share a node
  std::unique_ptr<choosing::Chooser> chooser;                      // of its calls; there with the team
  choosing::Leaving leaving;                                       // those of its calls that we have left
  std::unique_ptr<hierarchy::Hierarchy> hierarchy;                 // where they live on several nodes
  std::unique_ptr<hierarchy::HierarchyChooser> hierarchy_chooser;  // there with the hierarchy
  // Neither: the host serves this communicator's collectives. Whom we share memory with; nullptr: nobody.
  team::Team* near_team() const { return team ? team.get() : hierarchy ? hierarchy->team() : nullptr; }
  bool enabled = true;  // hint `nearfield`: collectives
  bool team_tried = false;
  std::uint32_t young = 0;  // further collective calls that the host serves (collectives/young.hpp); equal on all ranks
  std::shared_ptr<AsyncCreation> async_creation;  // where its first collective call did not wait (async_creation.hpp)
  bool reproducible = false;                      // hint `nearfield_reproducible`, where a hierarchy is yet to be made
  MPI_Comm comm{};
  int rank = 0, size = 1;
  bool inter = false;  // an intercommunicator
  bool alone = false;  // one rank, of a process that takes part: its collectives are copies (collectives/alone.hpp)
  std::unique_ptr<choosing::Chooser>
      further[context::further];  // of its operations that may overlap others, by context

  bool messages_on = true;                                // hint `nearfield`
  std::uint64_t context = 0;                              // 0: messages are the host's
  std::uint64_t births = 0;                               // communicators that collective constructors have made of it
  std::uint64_t plans = 0;                                // exchanges that have been planned; each has a context
  std::map<std::uint64_t, std::uint64_t> partial_births;  // the same for constructors that only some ranks call
  std::vector<int> members;  // rank to member of the messenger, -1: on another node; from the first message on
  std::atomic<Side> side{Side::unknown};
  // How many partitioned messages have been initialised, by partner, tag and side; under a lock (partitioned.cpp).
  std::map<std::tuple<int, int, bool>, std::uint32_t> partitioned;
  std::unique_ptr<const Neighborhood> neighborhood;  // from the first call that asks for it on
};

struct CachedCommunicator {
  MPI_Comm comm;
  std::uint64_t epoch;
  Communicator* state;
};
inline constexpr unsigned cached_communicators = 8;
extern const PerThread<std::array<CachedCommunicator, cached_communicators>, threads::at::communicators>
    communicator_cache;
// Raised whenever a communicator's state goes; pairs with the load in communicator_of.
extern std::atomic<std::uint64_t> communicator_epoch;

// A revoked communicator belongs to the host, whose calls give the error that the program waits for (revoking.cpp).
extern std::atomic<bool> may_be_revoked;  // any: one has been, as its members have told
bool revoked_slowly(MPI_Comm comm);
inline bool revoked(MPI_Comm comm) { return may_be_revoked.load(std::memory_order_relaxed) && revoked_slowly(comm); }
void look_for_revoked();  // by other ranks
void note_revoked();

Communicator* communicator_slowly(MPI_Comm comm);
inline bool is_young(const Communicator& c) { return c.young && !c.team && !c.hierarchy && !c.team_tried; }
// Collective. Makes the team, or what serves several nodes (over_nodes.cpp), where that is possible.
void make_team(Communicator& state);
void install_team(Communicator& state, std::unique_ptr<team::Team> team, std::unique_ptr<choosing::Chooser> chooser);
// Before its team is used for anything but a collective call that carry() carries: calls that we have left come first.
inline void settle_left(Communicator& state) {
  if (state.leaving.left()) state.leaving.settle(state.team->context());
}
// The communicator of `team` has gone, or one of its operations (Team::users): the last one takes the team with it, and
// the communicator's state, which operations need.
void let_go(team::Team& team);
// Another team of the same ranks, which share a node. Collective; nullptr on all alike where they cannot have it.
std::unique_ptr<team::Team> separate_team(const Communicator& state);
// False: its ranks share a node, nothing has been made. By all ranks of it.
bool make_hierarchy(Communicator& state, team::Bootstrap& bootstrap);
// Whether reductions over nodes combine in rank order from now on; collective.
void keep_order(Communicator& state, bool keep);
int lowest_near(const Communicator& state);  // the lowest rank that the messenger reaches, or our own

// Local. nullptr: the host serves the call (handle invalid, MPI not running, ...).
inline Communicator* communicator_of(MPI_Comm comm) {
  const auto bits = (std::uint64_t)comm;
  const CachedCommunicator& cached = (*communicator_cache)[(bits ^ bits >> 8) % cached_communicators];
  if (cached.comm == comm && cached.state && cached.epoch == communicator_epoch.load(std::memory_order_acquire))
      [[likely]]
    return cached.state;
  return communicator_slowly(comm);
}

// The state of a new communicator, with a context; 0 leaves its messages to the host.
void adopt(MPI_Comm comm, std::uint64_t context);
std::uint64_t mix_context(std::uint64_t a, std::uint64_t b);
// A communicator's second context: of the messages that collectives are made of. No receive of the program's sees them.
inline std::uint64_t context_of_collectives(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{0}); }
// And a third one: of those that overlap other calls, which no blocking call may match.
inline std::uint64_t context_of_overlapping(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{1}); }
// And a fourth one, of which those of partitioned messages are made.
inline std::uint64_t context_of_partitioned(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{2}); }

// And a fifth one, by which its team is created.
inline std::uint64_t context_of_creation(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{3}); }
// And one for each planned operation, which may be started in any order.
inline std::uint64_t context_of_plan(const Communicator& c, std::uint64_t plan) {
  return mix_context(c.context, ~(plan + 4));
}

// Point to point of this process; nullptr: the host carries all messages.
extern messages::Messenger* the_messenger;
// The bodies of operations that may overlap others; nullptr where there is no node.
extern fibers::Runner* the_runner;
inline bool run_bodies() { return the_runner && the_runner->busy() && the_runner->poll(); }
// Whatever of ours can be done now; whether anything moved.
inline bool poll_ours() {
  const bool moved = the_messenger && the_messenger->poll();
  return run_bodies() || moved;
}
// Until `done()`. `awaited(member)`: whether the death of that member of the messenger ends the wait.
void wait_ours(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also, const char* doing);
// What waits do for the host.
waiting::Foreign& progress_of_host();
// Of a communicator, by several threads; an error handler may call us again.
extern std::recursive_mutex first_use;
void set_members(MPI_Comm comm);  // of the messenger: the processes of that communicator
MPI_Group world_group();
// Whether MPI's world is up, and we with it: then every process of it makes the collective calls that are ours.
bool running();
// Local. The ranks of a group's processes in our MPI_COMM_WORLD; none where one belongs to another world.
std::vector<int> ranks_in_world(MPI_Group group);
bool resolve_members(Communicator& state);
// Its ranks as members of the messenger, -1 where they are none.
std::vector<int> members_near(MPI_Comm comm);

// The communicator whose messages we carry, those between ranks of this node where it spans several; nullptr: the host
// does.
inline Communicator* channel(MPI_Comm comm) {
  if (!the_messenger) [[unlikely]]
    return nullptr;
  Communicator* const state = communicator_of(comm);
  if (!state || state->context == 0 || !state->messages_on || revoked(comm)) [[unlikely]]
    return nullptr;
  const Side side = state->side.load(std::memory_order_acquire);  // pairs with resolve_members
  if (side != Side::near && side != Side::both && (side == Side::far || !resolve_members(*state))) [[unlikely]]
    return nullptr;
  return state;
}
// pre: channel() has returned it.
inline bool spans_nodes(const Communicator& state) { return state.side.load(std::memory_order_relaxed) == Side::both; }

// A wait for a request of the host's: it is progressed by testing it, our messages move meanwhile.
struct HostWaiter : waiting::Waiter {
  HostWaiter() : Waiter{progress()} {}
  bool turn() {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_any_source();
    return others.poll();
  }
  bool eager() const { return true; }
  void inspect(std::uint64_t elapsed) { tell_hang_reporter(elapsed, {}); }
  static void tell_hang_reporter(std::uint64_t elapsed, const hang_report::Awaited& awaited);
  static waiting::Progress& progress();
};
const waiting::Policy& wait_policy();
template <class Done, class Waiter = HostWaiter>
void wait_in_host(Done done, Waiter&& waiter = {}) {
  for (int i = 0; i < 100; ++i)
    if (done()) return;
  waiting::wait_slowly(wait_policy(), done, waiter);
}

// What the host may have under way that needs this rank while it waits for something of ours. Who makes requests of the
// host is not known, only who completes them: a program that has completed some lately has others under way.
extern std::atomic<int> open_windows;  // of the host's
extern std::atomic<bool> threads_in_sessions;
extern std::atomic<std::uint32_t> host_requests_seen;
inline void note_host_request() {
  host_requests_seen.store(host_requests_seen.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The process's node; nullptr while MPI is not running or where Nearfield cannot work.
team::Process* process();
team::Process* process_ever();  // also after MPI_Finalize
void enter_host_init();
void enter_session();  // before the host's MPI_Session_init
void leave_host_init();
// After MPI is up; complains and aborts on settings that cannot be honoured. Only where all ranks are known to call it
// together can messages be carried.
void start_node(int thread_level, bool collectively);
void finalize_node();
// Called in MPI_Finalize when the program's own callbacks are through (shim.cpp).
void end_of_program();

}  // namespace nearfield::mpi
