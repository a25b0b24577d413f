// Notes which session a communicator comes from: buffered sends need that (p2p/buffered.cpp), and hosts do not tell it.
// MPI_Group_from_session_pset notes it for the group, derived groups inherit it, MPI_Comm_create_from_group notes it
// for the communicator, and communicators pass it to their children (set_origin).
#include <atomic>
#include <map>
#include <mutex>

#include "engine/base/made.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/blocking.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

// Hosts may return the same handle several times; then it must be freed as often.
struct Noted {
  Origin origin = 0;
  int references = 0;
};
struct NotedGroups {
  std::mutex mutex;
  std::map<MPI_Group, Noted> all;
  std::atomic<bool> any{false};  // relaxed: a thread that uses a group got its handle from the one that noted it
};

namespace {

NotedGroups& noted() { return made<NotedGroups>(); }

void note(MPI_Group group, Origin origin) {
  if (!origin || group == MPI_GROUP_NULL || group == MPI_GROUP_EMPTY) return;
  const std::lock_guard lock(noted().mutex);
  Noted& one = noted().all[group];
  one = {origin, one.origin == origin ? one.references + 1 : 1};
  noted().any.store(true, std::memory_order_relaxed);
}

int derived(int code, const MPI_Group* made, MPI_Group from, MPI_Group or_from = MPI_GROUP_NULL) {
  if (!noted().any.load(std::memory_order_relaxed) || code != MPI_SUCCESS) [[likely]]
    return code;
  const Origin first = origin_of_group(from);
  note(*made, first ? first : origin_of_group(or_from));
  return code;
}

}  // namespace

Origin origin_of_group(MPI_Group group) {
  if (!noted().any.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  const std::lock_guard lock(noted().mutex);
  const auto found = noted().all.find(group);
  return found == noted().all.end() ? 0 : found->second.origin;
}

int Session_finalize(MPI_Session* session) {
  if (!host.Session_finalize) return MPI_ERR_UNSUPPORTED_OPERATION;
  const Origin origin = session ? origin_of_session(*session) : 0;
  const HostCall blocks(Function::Session_finalize);
  const int code = host.Session_finalize(session);
  if (code == MPI_SUCCESS) end_origin(origin);
  return code;
}

int Group_from_session_pset(MPI_Session session, const char* set, MPI_Group* group) {
  if (!host.Group_from_session_pset) return MPI_ERR_UNSUPPORTED_OPERATION;
  const int code = host.Group_from_session_pset(session, set, group);
  if (code == MPI_SUCCESS) note(*group, origin_of_session(session));
  return code;
}

int Comm_group(MPI_Comm comm, MPI_Group* group) {
  const int code = host.Comm_group(comm, group);
  if (code == MPI_SUCCESS) note(*group, origin_of(comm));
  return code;
}
int Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  const int code = host.Comm_remote_group(comm, group);
  if (code == MPI_SUCCESS) note(*group, origin_of(comm));
  return code;
}

int Group_incl(MPI_Group group, int n, const int* ranks, MPI_Group* made) {
  return derived(host.Group_incl(group, n, ranks, made), made, group);
}
int Group_excl(MPI_Group group, int n, const int* ranks, MPI_Group* made) {
  return derived(host.Group_excl(group, n, ranks, made), made, group);
}
int Group_range_incl(MPI_Group group, int n, int (*ranges)[3], MPI_Group* made) {
  return derived(host.Group_range_incl(group, n, ranges, made), made, group);
}
int Group_range_excl(MPI_Group group, int n, int (*ranges)[3], MPI_Group* made) {
  return derived(host.Group_range_excl(group, n, ranges, made), made, group);
}
int Group_union(MPI_Group a, MPI_Group b, MPI_Group* made) { return derived(host.Group_union(a, b, made), made, a, b); }
int Group_intersection(MPI_Group a, MPI_Group b, MPI_Group* made) {
  return derived(host.Group_intersection(a, b, made), made, a, b);
}
int Group_difference(MPI_Group a, MPI_Group b, MPI_Group* made) {
  return derived(host.Group_difference(a, b, made), made, a, b);
}

int Group_free(MPI_Group* group) {
  const MPI_Group freed = group ? *group : MPI_GROUP_NULL;
  const int code = host.Group_free(group);
  if (!noted().any.load(std::memory_order_relaxed) || code != MPI_SUCCESS) [[likely]]
    return code;
  const std::lock_guard lock(noted().mutex);
  if (const auto found = noted().all.find(freed); found != noted().all.end() && --found->second.references == 0)
    noted().all.erase(found);
  return code;
}

}  // namespace nearfield::mpi
