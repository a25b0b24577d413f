// Constructors of communicators from a parent, and MPI_Comm_free: the host makes them, we compute the child's context
// (communicator.hpp) from what all its ranks know (law 1 of docs/dev/architecture.md). Failed calls are not counted.
// MPI lets one thread at a time make a child of a communicator, except by MPI_Comm_create_group, which counts under a
// lock.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "engine/base/made.hpp"
#include "mpi/shim/communicators/async_creation.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/blocking.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

// Communicators that the program has freed while their team was being created. MPI_Comm_free must not wait for that,
// which could deadlock, and progress threads must not call the host. So the communicators are freed when the program
// completes a collective, or in a later call.
struct FreedCommunicators {
  std::mutex mutex;
  std::vector<MPI_Comm> all;
  std::atomic<bool> any{false};
};

namespace {

FreedCommunicators& freed() { return made<FreedCommunicators>(); }

bool free_when_created(MPI_Comm* comm) {
  const Communicator* const state = *comm == host.comm_null ? nullptr : communicator_of(*comm);
  if (!state || !is_being_created(*state)) return false;
  const std::lock_guard lock(freed().mutex);
  freed().all.push_back(*comm);
  freed().any.store(true, std::memory_order_relaxed);
  *comm = host.comm_null;
  return true;
}

}  // namespace

void free_created() {
  if (!freed().any.load(std::memory_order_relaxed)) [[likely]]
    return;
  std::vector<MPI_Comm> created;
  {
    const std::lock_guard lock(freed().mutex);
    std::erase_if(freed().all, [&](MPI_Comm comm) {
      const Communicator* const state = communicator_of(comm);
      if (state && is_being_created(*state)) return false;
      created.push_back(comm);
      return true;
    });
    freed().any.store(!freed().all.empty(), std::memory_order_relaxed);
  }
  for (MPI_Comm& comm : created) host.Comm_free(&comm);
}

namespace {

// Called by all ranks of the parent. Only children that are made count: a rank may find its arguments wrong before the
// others know of the call, and try again.
template <Function number, class... Arguments>
int make_child(MPI_Comm parent, MPI_Comm* child, Arguments... arguments) {
  free_created();
  Communicator* const state = the_messenger ? communicator_of(parent) : nullptr;
  const std::uint64_t context = state && state->context ? mix_context(state->context, state->children_made + 1) : 0;
  const int code = blocking_at_host<number>(arguments...);
  if (code != MPI_SUCCESS || !child || !context) return code;
  ++state->children_made;
  adopt(*child, context);
  set_origin(*child, origin_of(parent));
  return code;
}

}  // namespace

int Comm_dup(MPI_Comm comm, MPI_Comm* child) { return make_child<Function::Comm_dup>(comm, child, comm, child); }
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child) {
  return make_child<Function::Comm_dup_with_info>(comm, child, comm, info, child);
}
// The child's handle is returned at once; it may be used when the request is complete.
int Comm_idup(MPI_Comm comm, MPI_Comm* child, MPI_Request* request) {
  return make_child<Function::Comm_idup>(comm, child, comm, child, request);
}
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child, MPI_Request* request) {
  return make_child<Function::Comm_idup_with_info>(comm, child, comm, info, child, request);
}
int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* child) {
  return make_child<Function::Comm_create>(comm, child, comm, group, child);
}
int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* child) {
  return make_child<Function::Comm_split>(comm, child, comm, color, key, child);
}
int Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* child) {
  return make_child<Function::Comm_split_type>(comm, child, comm, type, key, info, child);
}
int Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* child) {
  return make_child<Function::Intercomm_merge>(comm, child, comm, high, child);
}
int Cart_create(MPI_Comm comm, int dims, const int* sizes, const int* periods, int reorder, MPI_Comm* child) {
  return make_child<Function::Cart_create>(comm, child, comm, dims, sizes, periods, reorder, child);
}
int Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* child) {
  return make_child<Function::Cart_sub>(comm, child, comm, remain, child);
}
int Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder, MPI_Comm* child) {
  return make_child<Function::Graph_create>(comm, child, comm, nodes, index, edges, reorder, child);
}
int Dist_graph_create(MPI_Comm comm, int n, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, MPI_Info info, int reorder, MPI_Comm* child) {
  return make_child<Function::Dist_graph_create>(comm, child, comm, n, sources, degrees, destinations, weights, info,
                                                 reorder, child);
}
int Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources, const int* source_weights, int out,
                               const int* destinations, const int* weights, MPI_Info info, int reorder,
                               MPI_Comm* child) {
  return make_child<Function::Dist_graph_create_adjacent>(comm, child, comm, in, sources, source_weights, out,
                                                          destinations, weights, info, reorder, child);
}

// Called by the group's ranks alone, which count the calls with this group and tag.
int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* child) {
  static constinit std::mutex counting;  // threads may make communicators of the same parent, with other tags
  Communicator* const state = the_messenger ? communicator_of(comm) : nullptr;
  std::uint64_t name = 0, context = 0;
  int size = 0;
  if (state && state->context && group != MPI_GROUP_NULL && host.Group_size(group, &size) == MPI_SUCCESS && size > 0) {
    std::vector<int> ranks(size), members(size);
    for (int r = 0; r < size; ++r) ranks[r] = r;
    if (host.Group_translate_ranks(group, size, ranks.data(), world_group(), members.data()) == MPI_SUCCESS) {
      name = mix_context(state->context ^ 0x67726f7570, std::uint64_t(tag));
      for (const int member : members) name = mix_context(name, std::uint64_t(member) + 1);
      const std::lock_guard lock(counting);
      context = mix_context(name, state->partial_children_made[name] + 1);
    }
  }
  const HostCall blocks(Function::Comm_create_group);
  const int code = host.Comm_create_group(comm, group, tag, child);
  if (code != MPI_SUCCESS || !child || !context) return code;
  {
    const std::lock_guard lock(counting);
    ++state->partial_children_made[name];
  }
  adopt(*child, context);
  set_origin(*child, origin_of(comm));
  return code;
}

int Comm_free(MPI_Comm* comm) {
  free_created();
  if (comm && AsyncCreation::any() && free_when_created(comm)) [[unlikely]]
    return MPI_SUCCESS;
  if (comm && any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
    forget_any_source(*comm);
  const HostCall blocks(Function::Comm_free);
  return host.Comm_free(comm);
}

}  // namespace nearfield::mpi
