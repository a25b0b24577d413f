// Calls on requests that complete nothing: their status, starting, cancelling, freeing, and handles as integers.
#include "mpi/shim/point.hpp"

namespace nearfield::mpi {

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (the_messenger) the_messenger->poll();
  if (!the_messenger || !is_own(request)) return host.Request_get_status(request, flag, status);
  UserRequest& user = *own(request);
  *flag = user.complete();
  if (*flag && user.receive_stage) store(user);
  if (*flag) set_status(status, user);
  else look_elsewhere();
  return MPI_SUCCESS;
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

namespace {
bool inactive(MPI_Request request) {
  if (the_messenger && is_own(request)) return !own(request)->active;
  return request == host.request_null;
}
}  // namespace

int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  *index = MPI_UNDEFINED;
  *flag = 0;
  bool active = false;
  for (int i = 0; i < count; ++i) {
    if (inactive(requests[i])) continue;
    active = true;
    const int code = Request_get_status(requests[i], flag, status);
    if (code != MPI_SUCCESS) return code;
    if (!*flag) continue;
    *index = i;
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
    if (inactive(requests[i])) continue;
    active = true;
    int flag = 0;
    const int code = Request_get_status(requests[i], &flag, nth(statuses, *out));
    if (code != MPI_SUCCESS) return code;
    if (flag) indices[(*out)++] = i;
  }
  if (!active) *out = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- starting, cancelling, freeing

int Start(MPI_Request* request) {
  if (!the_messenger || !request || !is_own(*request)) return host.Start(request);
  UserRequest& user = *own(*request);
  if (!user.persistent || user.active) return raise_code(user.comm, MPI_ERR_REQUEST);
  return guarded(user.comm, "MPI_Start", [&]() -> int { return report(user.comm, begin(user)); });
}

int Startall(int count, MPI_Request* requests) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) return host.Startall(count, requests);
  for (int i = 0; i < count; ++i)
    if (const int code = Start(&requests[i]); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}

int Cancel(MPI_Request* request) {
  if (!the_messenger || !request || !is_own(*request)) return host.Cancel(request);
  UserRequest& user = *own(*request);
  if (!user.active || user.nowhere || user.other) return MPI_SUCCESS;
  return guarded(user.comm, "MPI_Cancel", [&]() -> int {
    the_messenger->cancel(user.request);
    return MPI_SUCCESS;
  });
}

int Request_free(MPI_Request* request) {
  if (!the_messenger || !request || !is_own(*request)) return host.Request_free(request);
  UserRequest* const user = own(*request);
  *request = host.request_null;
  free_later(user);
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- handles as integers

#ifdef NEARFIELD_HOST_MPICH
int Request_toint(MPI_Request request) { return int(request); }
MPI_Request Request_fromint(int number) { return MPI_Request(number); }
#else
// Ours are the negative numbers from -2 on.
int Request_toint(MPI_Request request) {
  return is_own(request) ? -2 - int(own(request)->index) : host.request_to_int(request);
}
MPI_Request Request_fromint(int number) {
  if (number >= -1) return host.request_from_int(number);
  UserRequest* const user = request_at(std::uint32_t(-2 - number));
  return user && user->in_use ? handle_of(user) : host.request_from_int(number);
}
#endif
int Request_c2f(MPI_Request request) { return Request_toint(request); }
MPI_Request Request_f2c(int number) { return Request_fromint(number); }

}  // namespace nearfield::mpi
