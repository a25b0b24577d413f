// Constructors of communicators that have no parent known to all of their ranks, and how their contexts are computed
// (communicator.hpp).
//
//   MPI_Comm_create_from_group, MPI_Intercomm_create_from_groups
//       no parent: from the groups, the string tag and the number of calls with these, which all ranks count
//   MPI_Intercomm_create, MPI_Comm_accept, MPI_Comm_connect, MPI_Comm_join
//       two parents: a number that the first rank of the first group makes, broadcast to both groups by the host
//
// All ranks decide alike (law 1 of docs/dev/architecture.md). If all processes are of our MPI_COMM_WORLD, all of them
// run Nearfield and compute a context, even ranks whose messages the host serves. Otherwise all see that some are not,
// and there is no context. Nor is there one for communicators from sessions while MPI's world is not initialised.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string_view>

#include "engine/base/made.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/blocking.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

struct ContextsOfNames {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> count;
};

namespace {

using Ranks = std::vector<int>;  // ranks in MPI_COMM_WORLD

// The two groups of an intercommunicator; both are empty unless all of their processes are of our world.
struct Groups {
  Ranks own, remote;
  explicit Groups(MPI_Comm inter) : own(ranks(inter, host.Comm_group)), remote(ranks(inter, host.Comm_remote_group)) {
    if (own.empty() || remote.empty()) own.clear(), remote.clear();
  }
  bool known() const { return !own.empty(); }
  bool ours_is_first() const { return own[0] < remote[0]; }

 private:
  static Ranks ranks(MPI_Comm comm, decltype(host.Comm_group) group_of) {
    MPI_Group group;
    if (group_of(comm, &group) != MPI_SUCCESS) return {};
    Ranks all = ranks_in_world(group);
    host.Group_free(&group);
    return all;
  }
};

// Returns a context that is equal on both sides and differs from those of all other communicators of their processes;
// 0: none.
std::uint64_t agree(MPI_Comm inter, MPI_Comm local) {
  static constinit std::atomic<std::uint64_t> agreed{0};
  const Groups groups(inter);
  if (!groups.known()) return 0;
  int rank = 0, root = 0, code = MPI_SUCCESS;
  host.Comm_rank(inter, &rank);
  std::uint64_t context = 0;
  const HostScope scope;
  if (groups.ours_is_first()) {
    if (rank == 0) context = mix_context(mix_context(0x61677265, std::uint64_t(groups.own[0])), ++agreed);
    code = host.Bcast(&context, 1, MPI_UINT64_T, 0, local);
    root = rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  }
  if (code == MPI_SUCCESS) code = host.Bcast(&context, 1, MPI_UINT64_T, root, inter);
  return code == MPI_SUCCESS ? context : 0;
}

template <Function number, class... Arguments>
int make_between(MPI_Comm local, MPI_Comm* child, Arguments... arguments) {
  const bool ours = running();
  const int code = blocking_at_host<number>(arguments...);
  if (code != MPI_SUCCESS || !child || *child == host.comm_null || !ours) return code;
  if (const std::uint64_t context = agree(*child, local)) {
    adopt(*child, context);
    set_origin(*child, origin_of(local));
  }
  return code;
}

std::uint64_t add(std::uint64_t name, const Ranks& ranks) {
  for (const int rank : ranks) name = mix_context(name, std::uint64_t(rank) + 1);
  return mix_context(name, ranks.size());
}

std::uint64_t name_of(const char* tag) {
  std::uint64_t name = 0x73657373696f6e;
  for (const char letter : std::string_view(tag ? tag : "")) name = mix_context(name, std::uint64_t(letter));
  return name;
}

// Returns the context of the next communicator of that name. Several threads may call it, for different names.
std::uint64_t next_of(std::uint64_t name) {
  ContextsOfNames& known = made<ContextsOfNames>();
  const std::lock_guard lock(known.mutex);
  return mix_context(name, ++known.count[name]);
}

}  // namespace

int Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info, MPI_Errhandler errors, MPI_Comm* child) {
  const bool ours = running();
  const int code = blocking_at_host<Function::Comm_create_from_group>(group, tag, info, errors, child);
  if (code != MPI_SUCCESS || !child || *child == host.comm_null || !ours) return code;
  if (const Ranks ranks = ranks_in_world(group); !ranks.empty()) {
    adopt(*child, next_of(add(name_of(tag), ranks)));
    set_origin(*child, origin_of_group(group));
  }
  return code;
}

int Intercomm_create_from_groups(MPI_Group group, int leader, MPI_Group remote, int remote_leader, const char* tag,
                                 MPI_Info info, MPI_Errhandler errors, MPI_Comm* child) {
  const bool ours = running();
  const int code = blocking_at_host<Function::Intercomm_create_from_groups>(group, leader, remote, remote_leader, tag,
                                                                            info, errors, child);
  if (code != MPI_SUCCESS || !child || *child == host.comm_null || !ours) return code;
  if (const Groups groups(*child); groups.known()) {
    const bool first = groups.ours_is_first();
    const std::uint64_t half = add(name_of(tag), first ? groups.own : groups.remote);
    adopt(*child, next_of(add(half, first ? groups.remote : groups.own)));
    set_origin(*child, origin_of_group(group));
  }
  return code;
}

int Intercomm_create(MPI_Comm local, int leader, MPI_Comm peer, int remote_leader, int tag, MPI_Comm* child) {
  return make_between<Function::Intercomm_create>(local, child, local, leader, peer, remote_leader, tag, child);
}
int Comm_accept(const char* port, MPI_Info info, int root, MPI_Comm local, MPI_Comm* child) {
  return make_between<Function::Comm_accept>(local, child, port, info, root, local, child);
}
int Comm_connect(const char* port, MPI_Info info, int root, MPI_Comm local, MPI_Comm* child) {
  return make_between<Function::Comm_connect>(local, child, port, info, root, local, child);
}
int Comm_join(int socket, MPI_Comm* child) {
  return make_between<Function::Comm_join>(host.self, child, socket, child);
}

}  // namespace nearfield::mpi
