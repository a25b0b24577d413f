#include "mpi/shim/requests.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace nearfield::mpi {
namespace {

constexpr std::uint32_t in_chunk = 256, most_chunks = 1 << 14;

struct Table {
  std::mutex mutex;
  std::atomic<UserRequest*> chunk[most_chunks] = {};
  std::uint32_t chunks = 0;
  std::vector<UserRequest*> free, freed;
  std::atomic<std::uint32_t> freed_count{0};
  int fortran_offset = -1;
};
Table& table = *new Table;  // never destroyed

// Only programs with several threads pay for the lock.
struct Lock {
  Lock() {
    if (the_messenger && the_messenger->threaded()) table.mutex.lock(), held = true;
  }
  ~Lock() {
    if (held) table.mutex.unlock();
  }
  bool held = false;
};

}  // namespace

UserRequest* new_request(MPI_Comm comm) {
  if (table.freed_count.load(std::memory_order_relaxed)) sweep_freed();
  const Lock lock;
  if (table.free.empty()) {
    if (table.chunks == most_chunks) throw std::bad_alloc();
    auto* const made = new UserRequest[in_chunk];
    table.chunk[table.chunks].store(made, std::memory_order_release);  // pairs with request_at
    for (std::uint32_t i = in_chunk; i-- > 0;) {
      made[i].index = table.chunks * in_chunk + i;
      if (table.fortran_offset >= 0) {
        const int number = -2 - int(made[i].index);
        std::memcpy(made[i].window + 1 + table.fortran_offset, &number, sizeof number);
      }
      table.free.push_back(&made[i]);
    }
    ++table.chunks;
  }
  UserRequest* const request = table.free.back();
  table.free.pop_back();
  request->comm = comm;
  request->persistent = request->active = request->nowhere = request->flush = request->landed = request->stored = false;
  request->mode = SendMode::standard;
  request->in_use = true;
  return request;
}

UserRequest* common_send() {
  static UserRequest* const request = [] {
    UserRequest* const made = new_request(host.world);
    made->common = made->active = true;
    made->request.is_send = true;
    made->request.complete_at_once();
    return made;
  }();
  return request;
}

int land(UserRequest& request) {
  if (!request.packed || !request.active || request.landed || request.request.is_send) return MPI_SUCCESS;
  request.landed = true;
  return request.packed->unpack_bytes(std::min(request.request.received, request.packed->bytes()));
}

void free_request(UserRequest* request) {
  if (request->common) return;
  land(*request);
  request->packed.reset();
  request->other_packed.reset();
  request->other.reset();
  request->layout.reset();
  request->other_layout.reset();
  request->copy.reset();
  request->send_stage.reset();
  request->receive_stage.reset();
  request->in_use = false;
  const Lock lock;
  table.free.push_back(request);
}

void free_later(UserRequest* request) {
  if (request->complete()) return free_request(request);
  const Lock lock;
  table.freed.push_back(request);
  table.freed_count.fetch_add(1, std::memory_order_relaxed);
}

void sweep_freed() {
  std::vector<UserRequest*> done;
  {
    const Lock lock;
    for (std::size_t i = 0; i < table.freed.size();) {
      if (!table.freed[i]->complete()) {
        ++i;
        continue;
      }
      done.push_back(table.freed[i]);
      table.freed[i] = table.freed.back();
      table.freed.pop_back();
    }
    table.freed_count.fetch_sub(std::uint32_t(done.size()), std::memory_order_relaxed);
  }
  for (UserRequest* const request : done) free_request(request);
}

// Receives that nobody has matched are forgotten: whoever frees one does not need it.
bool freed_are_pending() {
  if (table.freed_count.load(std::memory_order_relaxed)) sweep_freed();
  const Lock lock;
  for (const UserRequest* const request : table.freed)
    if (request->request.is_send || !request->request.posted || request->other) return true;
  return false;
}

UserRequest* request_at(std::uint32_t index) {
  UserRequest* const chunk = table.chunk[index / in_chunk % most_chunks].load(std::memory_order_acquire);
  return chunk ? &chunk[index % in_chunk] : nullptr;
}

// Open MPI's Fortran functions take a request's number out of the object behind its handle. Where it lies follows from
// two requests of the host and the numbers that it tells for them.
void find_fortran_window() {
#ifdef NEARFIELD_HOST_OMPI
  MPI_Request two[2];
  char byte = 0;
  int numbers[2];
  for (int k = 0; k < 2; ++k) {
    if (host.Recv_init(&byte, 1, host.byte, 0, 0, host.self, &two[k]) != MPI_SUCCESS || !host.request_to_int) return;
    numbers[k] = host.request_to_int(two[k]);
  }
  for (int offset = 0; offset + 8 < int(sizeof UserRequest::window); offset += 4) {
    int seen[2];
    for (int k = 0; k < 2; ++k) std::memcpy(&seen[k], reinterpret_cast<const char*>(two[k]) + offset, sizeof(int));
    if (seen[0] == numbers[0] && seen[1] == numbers[1]) {
      table.fortran_offset = offset;
      break;
    }
  }
  for (MPI_Request& request : two) host.Request_free(&request);
  if (table.fortran_offset < 0) log_line(LogLevel::info, "requests of Fortran programs: their numbers were not found");
#endif
}

// ---------------------------------------------------------------- statuses

void set_status(MPI_Status* status, int source, int tag, std::uint64_t bytes, bool cancelled) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  host.Status_set_elements_x(status, host.byte, MPI_Count(bytes));
  host.Status_set_cancelled(status, cancelled);
}

void set_empty_status(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
  status->MPI_ERROR = MPI_SUCCESS;
}

void set_nowhere_status(MPI_Status* status) { set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false); }

void set_status(MPI_Status* status, const UserRequest& request) {
  if (status == MPI_STATUS_IGNORE) return;
  if (!request.active) return set_empty_status(status);
  if (request.nowhere) return set_nowhere_status(status);
  const messages::Request& r = request.request;
  if (r.is_send || r.cancelled) return set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, r.cancelled);
  set_status(status, r.envelope.source, r.envelope.tag, r.received, false);
}

void store(devices::Stage& stage, messages::Request& request) {
  if (!request.cancelled && !stage.store(std::min(request.received, request.data.bytes)))
    request.trouble = messages::Trouble::broken;
}

void store(UserRequest& request) {
  if (!request.active || request.nowhere || std::exchange(request.stored, true)) return;
  store(*request.receive_stage, request.request);
}

int outcome(const messages::Request& request) {
  switch (request.trouble) {
    case messages::Trouble::none: return MPI_SUCCESS;
    case messages::Trouble::truncated: return MPI_ERR_TRUNCATE;
    case messages::Trouble::no_memory: return MPI_ERR_NO_MEM;
    case messages::Trouble::closed: return revoked_class();
    default: return MPI_ERR_OTHER;
  }
}

int outcome(const UserRequest& request) {
  if (!request.active || request.nowhere) return MPI_SUCCESS;
  return outcome(request.request);
}

int raise_code(MPI_Comm comm, int code) {
  Communicator* const state = comm == host.comm_null ? nullptr : communicator_of(comm);
  host.Comm_call_errhandler(state ? comm : host.world, code);
  return code;
}

}  // namespace nearfield::mpi
