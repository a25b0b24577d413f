// The table of requests: chunks, the list of free requests, and the requests that the program has freed while they were
// under way. Also how requests begin and end, and their statuses and errors.
#include "mpi/shim/handles/requests.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/calls/called.hpp"
#include "mpi/shim/process/launchers.hpp"

namespace nearfield::mpi {

struct RequestTable {
  std::mutex mutex;
  std::uint32_t chunks = 0;
  std::size_t in_use = 0;
  UserRequest* free = nullptr;
  std::vector<UserRequest*> freed;
  std::size_t freed_at = 0, owed_at = 0;  // positions of the next sweep, and of the next search for owed requests
  std::atomic<std::uint32_t> freed_count{0};
  int fortran_offset = -1;
  std::map<MPI_Comm, std::uint32_t> gone;  // number of the last freed communicator with that handle
};

namespace {

constexpr unsigned swept_at_once = 8;  // freed requests that one sweep checks

RequestTable& table() { return made<RequestTable>(); }

// Only programs with several threads take the lock; without a messenger their number is unknown.
struct TableLock {
  TableLock() {
    if (!the_messenger || the_messenger->threaded()) table().mutex.lock(), held = true;
  }
  ~TableLock() {
    if (held) table().mutex.unlock();
  }
  bool held = false;
};

// pre: the lock is held.
[[gnu::noinline]] void make_requests() {
  if (table().chunks == most_request_chunks) throw OutOfMemory();
  auto* const made = new UserRequest[requests_in_chunk];
  for (std::uint32_t i = requests_in_chunk; i-- > 0;) {
    made[i].index = table().chunks * requests_in_chunk + i;
    if (table().fortran_offset >= 0) made[i].fortran.store(table().fortran_offset, -2 - int(made[i].index));
    made[i].next_free = std::exchange(table().free, &made[i]);
  }
  request_chunks[table().chunks++].store(made, std::memory_order_release);  // SYNC: request-chunk
}

}  // namespace

UserRequest* new_request(MPI_Comm comm) {
  if (table().freed_count.load(std::memory_order_relaxed)) [[unlikely]]
    sweep_freed();
  const TableLock lock;
  if (!table().free) [[unlikely]]
    make_requests();
  UserRequest* const request = table().free;
  table().free = request->next_free;
  ++table().in_use;
  request->made_on = comm;
  request->made_at = communicators_gone.load(std::memory_order_relaxed);
  request->persistent = request->active = request->died = false;
  request->in_use = true;
  return request;
}

MPI_Request common_send() {
  static const MPI_Request handle = [] {
    UserRequest* const made = new_request(host.world);
    const TableLock lock;
    --table().in_use;  // it is never freed
    made->active = true;
    made->common = true;
    made->request.is_send = true;
    made->request.complete_at_once();
    sent_at_once.store(handle_of(made), std::memory_order_relaxed);
    return handle_of(made);
  }();
  return handle;
}

void free_request(UserRequest* request) {
  if (request->common) return;
  if (request->activity) {
    if (request->active) request->activity->outcome();  // freed by the program: received data still go to its buffers
    if (request->activity->stays()) static_cast<void>(request->activity.release());
    request->activity.reset();
  }
  const TableLock lock;
  request->in_use = false;
  --table().in_use;
  request->next_free = std::exchange(table().free, request);
}

MPI_Request under_way(MPI_Comm comm, std::unique_ptr<Activity> activity) {
  UserRequest* const user = new_request(comm);
  user->activity = std::move(activity);
  user->activity->item = calls::item_of_call();
  user->active = true;
  return handle_of(user);
}

int begin(UserRequest& user) {
  user.died = false;
  const int code = user.activity->begin();
  user.active = code == MPI_SUCCESS;
  return code;
}

int make_request(MPI_Comm comm, std::unique_ptr<Activity> activity, bool persistent, MPI_Request* request) {
  UserRequest* const user = new_request(comm);
  user->activity = std::move(activity);
  user->activity->item = calls::item_of_call();
  user->persistent = persistent;
  if (!persistent) {
    int code = MPI_ERR_NO_MEM;
    try {
      code = begin(*user);
    } catch (...) {
      free_request(user);
      throw;
    }
    if (code != MPI_SUCCESS) {
      free_request(user);
      return code;
    }
  }
  *request = handle_of(user);
  return MPI_SUCCESS;
}

bool UserRequest::involves(int who) const {
  if (activity ? !activity->involves(who) : request.member != who && request.member >= 0) return false;
  if (!from_anybody()) return true;
  const Communicator* const state = communicator_of(comm());
  return !state || may_come_from(*state, who);
}

void free_later(UserRequest* request) {
  if (request->complete()) return free_request(request);
  const TableLock lock;
  table().freed.push_back(request);
  table().freed_count.fetch_add(1, std::memory_order_relaxed);
}

// They are asked without the lock, since requests that consist of others complete them, which takes it.
void sweep_freed() {
  UserRequest* taken[swept_at_once];
  unsigned n = 0, left = 0;
  {
    const TableLock lock;
    auto& freed = table().freed;
    for (; n < swept_at_once && !freed.empty(); ++n) {
      UserRequest*& next = freed[table().freed_at++ % freed.size()];
      taken[n] = std::exchange(next, freed.back());
      freed.pop_back();
    }
  }
  for (unsigned i = 0; i < n; ++i)
    if (taken[i]->complete()) free_request(taken[i]);
    else taken[left++] = taken[i];
  const TableLock lock;
  table().freed.insert(table().freed.end(), taken, taken + left);
  table().freed_count.fetch_sub(n - left, std::memory_order_relaxed);
}

bool freed_are_outstanding() {
  sweep_freed();
  auto owed = [](UserRequest& r) {
    return !r.complete() && (r.activity ? r.activity->owed() : r.request.is_send || !r.request.posted);
  };
  // A request that is not owed now never will be again, so the next search begins at the one found.
  const auto next = [](std::size_t looks) -> UserRequest* {
    const TableLock lock;
    const auto& freed = table().freed;
    return looks < freed.size() ? freed[table().owed_at % freed.size()] : nullptr;
  };
  for (std::size_t looks = 0; UserRequest* const freed = next(looks); ++looks, ++table().owed_at)
    if (owed(*freed)) return true;
  return false;
}

// Need not search for the requests: each holds the number of communicators that had been freed when it was made.
void outlive(MPI_Comm comm) {
  const TableLock lock;
  if (table().in_use == 0) return;
  const std::uint32_t number = communicators_gone.load(std::memory_order_relaxed) + 1;
  try {
    table().gone[comm] = number;
  } catch (const OutOfMemory&) {
    return;  // its requests keep naming the handle
  }
  communicators_gone.store(number, std::memory_order_relaxed);
}

MPI_Comm of_gone(const UserRequest& request) {
  const TableLock lock;
  const auto found = table().gone.find(request.made_on);
  return found != table().gone.end() && found->second > request.made_at ? host.world : request.made_on;
}

void show_persistent() {
  std::vector<MPI_Comm> on;
  {
    const TableLock lock;
    if (table().in_use == 0) return;
    for (std::uint32_t i = 0; i < table().chunks; ++i) {
      UserRequest* const chunk = request_chunks[i].load(std::memory_order_relaxed);
      for (UserRequest* each = chunk; each != chunk + requests_in_chunk; ++each)
        if (each->in_use && each->persistent && !each->active) {
          const auto gone = table().gone.find(each->made_on);
          if (gone == table().gone.end() || gone->second <= each->made_at) on.push_back(each->made_on);
        }
    }
  }
  MPI_Request request;  // never freed, so that the host reports it
  for (MPI_Comm each : on) host.Send_init(nullptr, 0, host.byte, 0, 0, each, &request);
}

// Open MPI's Fortran functions read a request's number from the object behind its handle. We find the offset of the
// number in two requests of the host, whose numbers MPI_Request_c2f returns.
void find_fortran_number() {
  if constexpr (abi::FortranPart::bytes == 0) return;
  MPI_Request two[2];
  char byte = 0;
  int numbers[2];
  for (int k = 0; k < 2; ++k) {
    if (host.Recv_init(&byte, 1, host.byte, 0, 0, host.self, &two[k]) != MPI_SUCCESS || !host.request_to_int) return;
    numbers[k] = host.request_to_int(two[k]);
  }
  for (int offset = 0; offset + 8 < abi::FortranPart::bytes; offset += 4) {
    int seen[2];
    for (int k = 0; k < 2; ++k) std::memcpy(&seen[k], reinterpret_cast<const char*>(two[k]) + offset, sizeof(int));
    if (seen[0] == numbers[0] && seen[1] == numbers[1]) {
      table().fortran_offset = offset;
      break;
    }
  }
  for (MPI_Request& request : two) host.Request_free(&request);
  if (table().fortran_offset < 0)
    log_line(LogLevel::info, "the numbers that the host gives to requests in Fortran were not found");
}

void set_status(MPI_Status* status, const UserRequest& request) {
  if (!request.active) set_empty_status(status);
  else if (request.activity) request.activity->status(status);
  else set_status(status, request.request);
}

int code_of_error(messages::ErrorKind error) {
  switch (error) {
    case messages::ErrorKind::none: return MPI_SUCCESS;
    case messages::ErrorKind::truncated: return MPI_ERR_TRUNCATE;
    case messages::ErrorKind::no_memory: return MPI_ERR_NO_MEM;
    case messages::ErrorKind::closed: return revoked_class();
    case messages::ErrorKind::died: return died_class();
    default: return MPI_ERR_OTHER;
  }
}

namespace {

const PerThread<bool, threads::at::reported> reported;
// This thread's last receive that was too short, until an error is raised.
struct Truncation {
  int source, tag;
  std::uint64_t bytes, room;
  bool said;
};
const PerThread<Truncation> cut;

const char* function_of_program() {
  const calls::CallFrame* const call = calls::calls_of_thread->innermost();
  return call ? calls::name(unsigned(call->function)) : "MPI";
}

void say_what_aborts(int code) {
  const char* const function = function_of_program();
  const bool of_length = cut->bytes && (code == MPI_ERR_TRUNCATE || code == MPI_ERR_IN_STATUS);
  if (of_length && !cut->said) {
    log_line(LogLevel::error, "%s: the message from rank %d with tag %d has %llu bytes, the receive has room for %llu",
             function, cut->source, cut->tag, static_cast<unsigned long long>(cut->bytes),
             static_cast<unsigned long long>(cut->room));
  } else if (!of_length) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    host.Error_string(code, text, &length);
    log_line(LogLevel::error, "%s: %s", function, text);
  }
  let_launchers_forward();
}

}  // namespace

int code_of_error(const messages::Request& request) {
  if (request.error == messages::ErrorKind::truncated)
    *cut = {request.envelope.source, request.envelope.tag, request.total, request.data.bytes, false};
  return code_of_error(request.error);
}

void say_what_is_cut(int partner, std::uint64_t bytes, std::uint64_t room) {
  log_line(LogLevel::error, "%s: rank %d has %llu bytes, but this rank expects %llu", function_of_program(), partner,
           static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(room));
  *cut = {partner, 0, bytes, room, true};
}

int raised_by_host(int code) {
  if (code == MPI_SUCCESS) return code;
  *reported = true;
  return note_error_of_host(code);
}

MPI_Comm raised_on(MPI_Comm comm) { return comm != host.comm_null && communicator_of(comm) ? comm : host.world; }

int raise_code(MPI_Comm comm, int code, bool said) {
  if (std::exchange(*reported, false)) [[unlikely]]
    return code;
  const MPI_Comm on = raised_on(comm);
  if (!said && aborts(on, host.Comm_get_errhandler)) say_what_aborts(code);
  *cut = {};
  host.Comm_call_errhandler(on, code);
  return code;
}

}  // namespace nearfield::mpi
