// Our requests, as handles of each host's form, and their statuses.
//
// MPICH's family has integer handles: ours have a kind that it never makes. Elsewhere handles are pointers: ours have
// the lowest bit set. The host never sees one of ours (law 2 of docs/dev/architecture.md).
//
//   new_request -> active -> complete -> finish (completing.hpp) -> free_request, or at rest if it is persistent
//                     \-> MPI_Request_free: free_later -> complete -> swept by a later new_request
//
// Requests lie in chunks that are never freed, so a handle can be dereferenced at any time. One thread uses a request
// at a time, as MPI requires of the program; any thread may make and free requests, under a lock if there are several.
#pragma once
#include <memory>

#include "engine/messages/messenger.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/handles/activity.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/handles/statuses.hpp"

namespace nearfield::mpi {

enum class SendMode : std::uint8_t { standard, buffered, synchronous, ready };

// One request of the user. Nearly all are one plain message, without activity and virtual calls (a test of such a
// request takes 10 ns).
struct alignas(64) UserRequest {
  [[no_unique_address]] abi::FortranPart fortran;  // first
  std::uint32_t index = 0;                         // in the table of requests; -2 - index is its number in Fortran
  bool persistent = false;
  bool active = false;
  bool in_use = false;
  bool common = false;        // handle of all sends that were complete at once; never freed
  bool died = false;          // its activity has ended because a process that it needs has died
  std::uint32_t made_at = 0;  // how many communicators had been freed when it was made
  MPI_Comm made_on{};
  UserRequest* next_free = nullptr;
  messages::Request request;           // a plain message
  std::unique_ptr<Activity> activity;  // or another operation

  MPI_Comm comm() const;  // its errors go to this communicator's handler: MPI_COMM_WORLD once its own is freed
  [[gnu::always_inline]] bool complete() const {
    if (!activity) [[likely]]
      return request.complete();
    return !active || died || activity->completed();
  }
  // Returns whether the operation may need that member of the messenger.
  bool involves(int who) const;
  bool from_anybody() const { return activity ? activity->from_anybody() : !request.is_send && request.member < 0; }
};

UserRequest* new_request(MPI_Comm comm);
MPI_Request common_send();  // complete, shared by all such sends
// Makes an active request for an operation that the caller starts itself.
MPI_Request under_way(MPI_Comm comm, std::unique_ptr<Activity> activity);
// Makes a request for `activity`, and begins it unless it is persistent. Returns an error class.
int make_request(MPI_Comm comm, std::unique_ptr<Activity> activity, bool persistent, MPI_Request* request);
// Starts a request's activity. Returns an error class; if not MPI_SUCCESS, it has not begun.
int begin(UserRequest& user);
void free_request(UserRequest* request);  // at once
// The user has freed it while it may be under way: frees it once it is complete.
void free_later(UserRequest* request);
void sweep_freed();  // frees those of the next few that are complete; calls take turns among all
bool freed_are_outstanding();
// The communicator is freed: errors of its requests go to the world from now on, since the handle may be reused.
void outlive(MPI_Comm comm);
inline constinit std::atomic<std::uint32_t> communicators_gone{0};
MPI_Comm of_gone(const UserRequest& request);
inline MPI_Comm UserRequest::comm() const {
  return made_at == communicators_gone.load(std::memory_order_relaxed) ? made_on : of_gone(*this);
}
// Called in MPI_Finalize for hosts that report persistent requests that have not been freed: makes a request of the
// host for each of ours, except on freed communicators, so that the host reports it.
void show_persistent();
inline constinit std::atomic<MPI_Request> sent_at_once{};  // common_send() once it has been called
void find_fortran_number();  // Open MPI: finds where its Fortran interface reads a request's number

inline constexpr std::uint32_t requests_in_chunk = 256, most_request_chunks = 1 << 14;
inline constinit std::atomic<UserRequest*> request_chunks[most_request_chunks] = {};
inline UserRequest* request_at(std::uint32_t index) {
  auto& chunk = request_chunks[index / requests_in_chunk % most_request_chunks];
  UserRequest* const first = chunk.load(std::memory_order_acquire);  // SYNC: request-chunk
  return first ? &first[index % requests_in_chunk] : nullptr;
}

inline bool is_own(MPI_Request request) { return abi::is_ours(request); }
inline UserRequest* own(MPI_Request request) {
  return abi::object_of<UserRequest>(request, [](std::uint32_t index) { return request_at(index - 1); });
}
inline MPI_Request handle_of(const UserRequest* request) {
  return abi::handle_of<MPI_Request>(request, request->index + 1);
}

// Returns whether there has been any request of ours.
inline bool any_ever() { return request_chunks[0].load(std::memory_order_relaxed) != nullptr; }

inline bool none_of_ours(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (is_own(requests[i])) return false;
  return true;
}

// Returns the bytes that a receive's status reports.
inline std::uint64_t counted(const messages::Request& r) {
  return abi::counts_what_is_cut && r.error == messages::ErrorKind::truncated ? r.total : r.received;
}
inline void set_status(MPI_Status* status, const messages::Request& r) {
  if (r.is_send || r.cancelled) return set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, r.cancelled);
  set_status(status, r.envelope.source, r.envelope.tag, counted(r), false);
}
void set_status(MPI_Status* status, const UserRequest& request);

// Returns the error class of a complete request.
int code_of_error(messages::ErrorKind error);
// Logs whose message in a collective call was truncated; the error that is raised does not name the sender.
void say_what_is_cut(int partner, std::uint64_t bytes, std::uint64_t room);
int code_of_error(const messages::Request& request);  // keeps details for the log, if this thread raises it next
inline int outcome(const messages::Request& request) {
  return request.error == messages::ErrorKind::none ? MPI_SUCCESS : code_of_error(request);
}

// Classes of errors that fault-tolerant hosts have, MPI_ERR_OTHER elsewhere (revoking.cpp).
int revoked_class();
int died_class();
int pending_class();  // of an any-source receive that a death leaves under way

// Marks a code that the host has reported already: the next raise_code only returns it.
int raised_by_host(int code);

// Reports `code` through the error handler of `comm`, or of the world if that has been freed. If this ends the job, the
// host names a function that the program has not called, so the error is logged before, unless `said`.
int raise_code(MPI_Comm comm, int code, bool said = false);
// Returns the communicator whose handler gets errors of `comm`: MPI_COMM_WORLD if that has been freed.
MPI_Comm raised_on(MPI_Comm comm);
inline int report(MPI_Comm comm, int code) { return code == MPI_SUCCESS ? code : raise_code(comm, code); }

}  // namespace nearfield::mpi
