// Calls on requests that complete none: querying the status, starting, cancelling, freeing, and converting handles to
// integers. Calls on the host's requests go to the host (law 2 of docs/dev/architecture.md). If the host lacks
// MPI_Request_get_status_any, its persistent requests are noted under a lock.
#include <mutex>
#include <set>

#include "engine/base/made.hpp"
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  poll_ours();
  if (!is_own(request)) return host.Request_get_status(request, flag, status);
  UserRequest& user = *own(request);
  int code = MPI_SUCCESS;
  *flag = ended(request, code);
  if (!*flag) return code;
  if (user.died) code = died_class();
  else if (user.active && user.activity) code = user.activity->outcome();
  else if (user.active && (abi::queries_raise || user.request.error == messages::ErrorKind::died))
    code = outcome(user.request);
  set_status(status, user);
  return report(user.comm(), code);
}

int Request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  *flag = 1;
  for (int i = 0; i < count && *flag; ++i) {
    const int code = Request_get_status(requests[i], flag, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
  }
  if (!*flag || statuses == MPI_STATUSES_IGNORE) return MPI_SUCCESS;
  for (int i = 0, done = 0; i < count; ++i) Request_get_status(requests[i], &done, &statuses[i]);
  return MPI_SUCCESS;
}

// An extension of MPICH, which returns whether the request is complete.
int X_Request_is_complete(MPI_Request request) {
  poll_ours();
  if (!is_own(request)) return host.X_Request_is_complete ? host.X_Request_is_complete(request) : 0;
  int code = MPI_SUCCESS;
  return ended(request, code);
}

// The host's persistent requests: without MPI_Request_get_status_any we cannot ask whether one of them is inactive.
struct PersistentOfHost {
  std::mutex mutex;
  std::set<MPI_Request> all;
};

namespace {

PersistentOfHost& persistent() { return made<PersistentOfHost>(); }

bool is_persistent(MPI_Request request) {
  const std::lock_guard lock(persistent().mutex);
  return persistent().all.count(request);
}

// Like MPI_Request_get_status; sets `active` to false for null and inactive requests.
int look(MPI_Request request, bool& active, int& flag, MPI_Status* status) {
  flag = 0;
  active = request != host.request_null;
  if (!active) return MPI_SUCCESS;
  if (is_own(request)) {
    active = own(request)->active;
    return active ? Request_get_status(request, &flag, status) : MPI_SUCCESS;
  }
  if (host.Request_get_status_any) {
    poll_ours();
    int index = MPI_UNDEFINED;
    const int code = host.Request_get_status_any(1, &request, &index, &flag, status);
    active = !(flag && index == MPI_UNDEFINED);
    return code;
  }
  MPI_Status own;
  const int code = Request_get_status(request, &flag, &own);
  if (code != MPI_SUCCESS || !flag) return code;
  active = own.MPI_SOURCE != MPI_ANY_SOURCE || own.MPI_TAG != MPI_ANY_TAG || !is_persistent(request);
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

}  // namespace

void note_persistent(MPI_Request request) {
  if (host.Request_get_status_any) return;
  const std::lock_guard lock(persistent().mutex);
  persistent().all.insert(request);
}

int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  *index = MPI_UNDEFINED;
  *flag = 0;
  bool active = false;
  for (int i = 0; i < count; ++i) {
    bool counts = false;
    int complete = 0;
    const int code = look(requests[i], counts, complete, status);
    if (code != MPI_SUCCESS) return code;
    active |= counts;
    if (!counts || !complete) continue;
    *index = i;
    *flag = 1;
    return MPI_SUCCESS;
  }
  if (!active) {
    *flag = 1;
    set_empty_status(status);
  }
  return MPI_SUCCESS;
}

int Request_get_status_some(int count, const MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  bool active = false;
  *out = 0;
  for (int i = 0; i < count; ++i) {
    bool counts = false;
    int flag = 0;
    const int code = look(requests[i], counts, flag, nth(statuses, *out));
    if (code != MPI_SUCCESS) return code;
    active |= counts;
    if (counts && flag) indices[(*out)++] = i;
  }
  if (!active) *out = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- starting, cancelling, freeing

int Start(MPI_Request* request) {
  if (!request || !is_own(*request)) {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      post_any_source();  // the request may be a receive
    return host.Start(request);
  }
  UserRequest& user = *own(*request);
  if (!user.persistent || user.active) return raise_code(user.comm(), MPI_ERR_REQUEST);
  return guarded(user.comm(), "MPI_Start", [&]() -> int { return report(user.comm(), begin(user)); });
}

int Startall(int count, MPI_Request* requests) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      post_any_source();
    return host.Startall(count, requests);
  }
  for (int i = 0; i < count; ++i)
    if (const int code = Start(&requests[i]); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}

int Cancel(MPI_Request* request) {
  if (!request || !is_own(*request)) return host.Cancel(request);
  UserRequest& user = *own(*request);
  if (!user.active) return MPI_SUCCESS;
  return guarded(user.comm(), "MPI_Cancel", [&]() -> int {
    if (user.activity) user.activity->cancel();
    else the_messenger->cancel(user.request);
    return MPI_SUCCESS;
  });
}

int Request_free(MPI_Request* request) {
  if (!request || !is_own(*request)) {
    if (request && !host.Request_get_status_any) {
      const std::lock_guard lock(persistent().mutex);
      persistent().all.erase(*request);
    }
    return host.Request_free(request);
  }
  UserRequest* const user = own(*request);
  *request = host.request_null;
  free_later(user);
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- handles as integers

// If handles are no integers, ours are the negative numbers from -2 on.
int Request_toint(MPI_Request request) {
  return abi::integer_of(
      request, [](MPI_Request one) { return is_own(one) ? -2 - int(own(one)->index) : host.request_to_int(one); });
}
MPI_Request Request_fromint(int number) {
  return abi::of_integer<MPI_Request>(number, [](int one) {
    if (one >= -1) return host.request_from_int(one);
    UserRequest* const user = request_at(std::uint32_t(-2 - one));
    return user && user->in_use ? handle_of(user) : host.request_from_int(one);
  });
}
int Request_c2f(MPI_Request request) { return Request_toint(request); }
MPI_Request Request_f2c(int number) { return Request_fromint(number); }

}  // namespace nearfield::mpi
