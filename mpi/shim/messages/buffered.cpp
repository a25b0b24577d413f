// Buffered sends. A message that cannot leave at once is copied and sent from the copy. The buffer that the user has
// attached is never written to: it says how much may be outstanding, and detaching it waits until nothing is.
//
// The host keeps the attached buffers, too, for the messages that it carries.
#include <list>
#include <map>
#include <mutex>

#include "engine/memory/temporaries.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi {
namespace {

struct Outgoing {
  explicit Outgoing(std::size_t bytes) : copy(bytes ? bytes : 1) {}
  memory::Temporary copy;
  messages::Request request;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  // whose buffer: a communicator, or `process`
  std::uint64_t serial = 0;
};

constexpr std::uint64_t process = 0;
constexpr std::uint64_t nobody = 1;  // of a communicator that has gone
constexpr std::uint64_t unlimited = ~std::uint64_t{0};

struct Buffers {
  std::mutex mutex;
  struct Attached {
    void* address;
    std::uint64_t bytes;
    bool automatic;  // as much as is needed
  };
  std::map<std::uint64_t, Attached> attached;  // by key
  std::map<std::uint64_t, std::uint64_t> used;
  std::list<Outgoing> outgoing;
  std::uint64_t serial = 0;  // of the last one

  // Of communicators that have gone, which hosts tell while they hold locks of their own.
  std::mutex gone_mutex;
  std::vector<std::uint64_t> gone;
  std::atomic<bool> of_communicators{false};  // there has been one
};
Buffers& buffers = *new Buffers;  // never destroyed

std::uint64_t key_of(MPI_Comm comm) { return (std::uint64_t)comm | std::uint64_t{1} << 63; }

// Under the mutex. What is still on its way must not count against the next communicator with that handle.
void drop_gone() {
  const std::lock_guard lock(buffers.gone_mutex);
  for (const std::uint64_t key : buffers.gone) {
    buffers.attached.erase(key);
    for (Outgoing& out : buffers.outgoing) {
      if (out.key != key) continue;
      out.key = nobody;
      buffers.used[nobody] += out.bytes;
    }
    buffers.used.erase(key);
  }
  buffers.gone.clear();
}

// Under the mutex.
void collect_sent() {
  drop_gone();
  for (auto it = buffers.outgoing.begin(); it != buffers.outgoing.end();) {
    if (!it->request.complete()) {
      ++it;
      continue;
    }
    buffers.used[it->key] -= it->bytes;
    it = buffers.outgoing.erase(it);
  }
}

bool outstanding(std::uint64_t key) {
  const std::lock_guard lock(buffers.mutex);
  collect_sent();
  return buffers.used[key] != 0;
}

// Until nothing that counts against the buffer is outstanding.
void flush(std::uint64_t key) {
  if (!the_messenger || !outstanding(key)) return;
  the_messenger->wait_until([&] { return !outstanding(key); }, [](int) { return false; }, nullptr,
                            "waiting for buffered messages to leave");
}

template <class Count>
void attached(std::uint64_t key, void* buffer, Count size) {
  const std::lock_guard lock(buffers.mutex);
  drop_gone();
  if (key != process) buffers.of_communicators.store(true, std::memory_order_relaxed);
  bool automatic = false;
#ifdef MPI_BUFFER_AUTOMATIC
  automatic = buffer == MPI_BUFFER_AUTOMATIC;
#endif
  buffers.attached[key] = {buffer, std::uint64_t(size), automatic};
}

void detached(std::uint64_t key) {
  const std::lock_guard lock(buffers.mutex);
  buffers.attached.erase(key);
}

}  // namespace

int send_buffered(Communicator& c, const messages::Envelope& envelope, int member, const layout::Data& data) {
  std::unique_lock lock(buffers.mutex);
  collect_sent();
  std::uint64_t key = key_of(c.comm);
  auto attached = buffers.attached.find(key);
  if (attached == buffers.attached.end()) attached = buffers.attached.find(key = process);
  const bool none = attached == buffers.attached.end();
  const std::uint64_t limit = none ? 0 : attached->second.automatic ? unlimited : attached->second.bytes;
  const std::uint64_t needed = data.bytes + MPI_BSEND_OVERHEAD;
  if (limit != unlimited && buffers.used[key] + needed > limit) {
    lock.unlock();
    the_messenger->poll();
    lock.lock();
    collect_sent();
    if (buffers.used[key] + needed > limit) return MPI_ERR_BUFFER;
  }
  if (the_messenger->send_at_once(member, envelope, data)) return MPI_SUCCESS;
  Outgoing& out = buffers.outgoing.emplace_back(data.bytes);
  if (!out.copy.data()) {
    buffers.outgoing.pop_back();
    return MPI_ERR_NO_MEM;
  }
  layout::gather(out.copy.data(), data, 0, data.bytes);
  out.bytes = needed;
  out.key = key;
  out.serial = ++buffers.serial;
  buffers.used[key] += needed;
  out.request.is_send = true;
  out.request.member = member;
  out.request.envelope = envelope;
  out.request.data = {out.copy.data(), data.bytes, {}};
  the_messenger->start(out.request);
  return MPI_SUCCESS;
}

bool buffered_are_pending() {
  const std::lock_guard lock(buffers.mutex);
  collect_sent();
  return !buffers.outgoing.empty();
}

void forget_buffer(MPI_Comm comm) {
  if (!buffers.of_communicators.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(buffers.gone_mutex);
  buffers.gone.push_back(key_of(comm));
}

int Buffer_attach(void* buffer, int size) {
  const int code = host.Buffer_attach(buffer, size);
  if (code == MPI_SUCCESS) attached(process, buffer, size);
  return code;
}
int Buffer_attach_c(void* buffer, MPI_Count size) {
  const int code = large(host.Buffer_attach_c, host.Buffer_attach, "MPI_Buffer_attach_c", host.world, buffer, size);
  if (code == MPI_SUCCESS) attached(process, buffer, size);
  return code;
}
int Buffer_detach(void* address, int* size) {
  flush(process);
  const int code = host.Buffer_detach(address, size);
  if (code == MPI_SUCCESS) detached(process);
  return code;
}
int Buffer_detach_c(void* address, MPI_Count* size) {
  flush(process);
  int small = 0;
  int code;
  if (host.Buffer_detach_c) {
    code = host.Buffer_detach_c(address, size);
  } else {
    code = host.Buffer_detach(address, &small);
    if (size) *size = small;
  }
  if (code == MPI_SUCCESS) detached(process);
  return code;
}

namespace {

// Hosts of an older standard know no buffers of communicators: then the record here is all there is.
template <class Attach, class Size>
int attach_to(Attach attach, MPI_Comm comm, void* buffer, Size size) {
  communicator_of(comm);  // its state takes the record with it when it goes
  const int code = attach ? attach(comm, buffer, size) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) attached(key_of(comm), buffer, size);
  return code;
}

template <class Detach, class Size>
int detach_from(Detach detach, MPI_Comm comm, void* address, Size* size) {
  flush(key_of(comm));
  if (!detach) {
    const std::lock_guard lock(buffers.mutex);
    const auto found = buffers.attached.find(key_of(comm));
    const bool there = found != buffers.attached.end();
    *static_cast<void**>(address) = there ? found->second.address : nullptr;
    *size = there ? Size(found->second.bytes) : 0;
  }
  const int code = detach ? detach(comm, address, size) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) detached(key_of(comm));
  return code;
}

class Flush final : public Activity {
 public:
  Flush(std::uint64_t key, MPI_Request of_host) : key_(key), of_host_(of_host) {}
  int begin() override {
    const std::lock_guard lock(buffers.mutex);
    serial_ = buffers.serial;
    return MPI_SUCCESS;
  }
  bool completed() override {
    {
      const std::lock_guard lock(buffers.mutex);
      collect_sent();
      for (const Outgoing& out : buffers.outgoing)
        if (out.key == key_ && out.serial <= serial_) return false;
    }
    int done = 1;
    if (of_host_ != host.request_null) host.Test(&of_host_, &done, MPI_STATUS_IGNORE);
    return done;
  }
  int outcome() override { return MPI_SUCCESS; }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}
  bool involves(int) const override { return true; }

 private:
  const std::uint64_t key_;
  std::uint64_t serial_ = 0;
  MPI_Request of_host_;
};

// A request that is complete when all that is outstanding now has left, and the host's own flush is complete.
template <class Form, class... Comm>
int flush_later(Form host_form, std::uint64_t key, MPI_Request* request, Comm... comm) {
  if (!the_messenger || (host_form && !outstanding(key)))
    return young(host_form, "MPI_Buffer_iflush", host.world, comm..., request);
  return guarded(host.world, "MPI_Buffer_iflush", [&]() -> int {
    MPI_Request of_host = host.request_null;
    if (host_form)
      if (const int code = host_form(comm..., &of_host); code != MPI_SUCCESS) return code;
    return make_request(host.world, std::make_unique<Flush>(key, of_host), false, request);
  });
}

}  // namespace

int Buffer_flush() {
  flush(process);
  return host.Buffer_flush ? host.Buffer_flush() : MPI_SUCCESS;
}
int Buffer_iflush(MPI_Request* request) { return flush_later(host.Buffer_iflush, process, request); }
int Comm_attach_buffer(MPI_Comm comm, void* buffer, int size) {
  return attach_to(host.Comm_attach_buffer, comm, buffer, size);
}
int Comm_attach_buffer_c(MPI_Comm comm, void* buffer, MPI_Count size) {
  return attach_to(host.Comm_attach_buffer_c, comm, buffer, size);
}
int Comm_detach_buffer(MPI_Comm comm, void* address, int* size) {
  return detach_from(host.Comm_detach_buffer, comm, address, size);
}
int Comm_detach_buffer_c(MPI_Comm comm, void* address, MPI_Count* size) {
  return detach_from(host.Comm_detach_buffer_c, comm, address, size);
}
int Comm_flush_buffer(MPI_Comm comm) {
  flush(key_of(comm));
  return host.Comm_flush_buffer ? host.Comm_flush_buffer(comm) : MPI_SUCCESS;
}
int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
  return flush_later(host.Comm_iflush_buffer, key_of(comm), request, comm);
}

}  // namespace nearfield::mpi
