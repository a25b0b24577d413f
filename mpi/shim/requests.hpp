// Requests and message handles of ours, in the shape that each host's handles have, and the statuses they leave.
//
// MPICH's family has integer handles: ours are of a kind that it never makes. Elsewhere handles are pointers: ours
// have the lowest bit set. The host never sees one of ours (law 2 of docs/architecture.md).
#pragma once
#include <memory>

#include "engine/messages/messenger.hpp"
#include "mpi/shim/communicator.hpp"
#include "mpi/shim/packing.hpp"

namespace nearfield::mpi {

enum class SendMode : std::uint8_t { standard, buffered, synchronous, ready };

struct UserRequest;
bool flushed(const UserRequest& user);

// One request of the user. What Open MPI's Fortran glue reads behind a handle lies in `window`.
struct alignas(64) UserRequest {
  unsigned char window[256] = {};
  std::uint32_t index = 0;  // in the table of requests; also its number in Fortran, shifted
  bool persistent = false;
  bool active = false;
  bool nowhere = false;  // to or from MPI_PROC_NULL: complete at once
  bool in_use = false;
  bool common = false;  // stands for all sends that were complete at once; is never freed
  bool flush = false;   // of buffered sends: complete when those up to flush_serial are (buffered.cpp)
  SendMode mode = SendMode::standard;
  MPI_Comm comm{};
  messages::Request request;                 // its status is the status of all
  std::unique_ptr<messages::Request> other;  // the send of a combined send and receive
  std::shared_ptr<const TypeLayout> layout, other_layout;
  std::unique_ptr<devices::Stage> send_stage, receive_stage;
  bool stored = false;                // what came is on the device
  std::unique_ptr<std::byte[]> copy;  // of the data of a replacing send
  // Flushes: which messages, and the host's own flush.
  std::uint64_t flush_key = 0, flush_serial = 0;
  MPI_Request flush_of_host{};
  // Where the type is not described: a packed copy. `landed`: what was received has left it.
  std::unique_ptr<Packed> packed, other_packed;
  bool landed = false;
  // Persistent: what each start begins with.
  messages::Envelope envelope{};
  int member = -1;
  layout::Data data;

  bool complete() const {
    return !active || nowhere || (request.complete() ? !other || other->complete() : flush && flushed(*this));
  }
  // Whether `member` may have to do something for it.
  bool involves(int who) const {
    return request.member == who || request.member < 0 || (other && other->member == who);
  }
};

UserRequest* new_request(MPI_Comm comm);
UserRequest* common_send();               // complete, for everybody
void free_request(UserRequest* request);  // at once
int land(UserRequest& request);           // of a complete receive: its data out of the packed copy
// Freed by the user while it may be under way: goes as soon as it is complete.
void free_later(UserRequest* request);
void sweep_freed();
bool freed_are_pending();
UserRequest* request_at(std::uint32_t index);
void find_fortran_window();  // Open MPI: where its glue reads a request's number

#if defined(NEARFIELD_HOST_MPICH)
inline constexpr std::uint32_t own_kind = 0x2c000000;
inline bool is_own(MPI_Request request) {
  const auto bits = std::uint32_t(request);
  return bits >> 26 == 0x0b && bits != own_kind;
}
inline UserRequest* own(MPI_Request request) { return request_at((std::uint32_t(request) & 0x03ffffff) - 1); }
inline MPI_Request handle_of(const UserRequest* request) { return MPI_Request(own_kind | (request->index + 1)); }
#else
inline bool is_own(MPI_Request request) {
  const auto bits = reinterpret_cast<std::uintptr_t>(request);
  return (bits & 1) && bits > 4095;
}
inline UserRequest* own(MPI_Request request) {
  return reinterpret_cast<UserRequest*>(reinterpret_cast<std::uintptr_t>(request) - 1);
}
inline MPI_Request handle_of(const UserRequest* request) {
  return reinterpret_cast<MPI_Request>(reinterpret_cast<std::uintptr_t>(request) + 1);
}
#endif

inline bool none_of_ours(int count, const MPI_Request* requests) {
  if (!the_messenger) return true;
  for (int i = 0; i < count; ++i)
    if (is_own(requests[i])) return false;
  return true;
}

// ---- statuses
inline MPI_Status* nth(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}
void set_status(MPI_Status* status, int source, int tag, std::uint64_t bytes, bool cancelled);
void set_empty_status(MPI_Status* status);
void set_nowhere_status(MPI_Status* status);
void set_status(MPI_Status* status, const UserRequest& request);
// What a receive has brought, to the device that its buffer lies on.
void store(devices::Stage& stage, messages::Request& request);
void store(UserRequest& request);  // once, when it is complete

// MPI_SUCCESS or the class of what went wrong with a complete request.
int outcome(const UserRequest& request);
int outcome(const messages::Request& request);

// Classes of errors that fault-tolerant hosts have, MPI_ERR_OTHER elsewhere (revoking.cpp).
int revoked_class();
int died_class();

// Reports `code` through the error handler of `comm`, or of the world where that has gone.
int raise_code(MPI_Comm comm, int code);
inline int report(MPI_Comm comm, int code) { return code == MPI_SUCCESS ? code : raise_code(comm, code); }

}  // namespace nearfield::mpi
