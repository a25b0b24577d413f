// MPI's interface of buffered sends: memory attached to the process, a session or a communicator, detaching, flushing,
// errors. engine/messages/buffered.hpp has the copies, counters, waits and locks.
//
// Each call is passed to the host as well, since it needs the attached memory for the messages that it serves.
#include "engine/messages/buffered.hpp"

#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {
namespace {

messages::Buffered& buffered = *new messages::Buffered;  // never destroyed

constexpr auto process_wide = messages::Buffered::process;
// Bytes of attached memory that a message takes besides its data. Programs use their own header's MPI_BSEND_OVERHEAD,
// which differs among hosts of one ABI (MPICH 96, Intel MPI 88 to 95), so ours must not be more than any of these.
constexpr std::uint64_t overhead = 64;
static_assert(overhead <= MPI_BSEND_OVERHEAD);
// Communicators and sessions share the keys: on no host does a communicator have the handle of a session.
template <class Handle>
std::uint64_t key_of(Handle handle) {
  return (std::uint64_t)handle | std::uint64_t{1} << 63;
}

void flush(std::uint64_t key) {
  if (the_messenger) buffered.flush(*the_messenger, key);
}

void attached(std::uint64_t key, void* buffer, MPI_Count size) {
  bool automatic = false;
#ifdef MPI_BUFFER_AUTOMATIC
  automatic = buffer == MPI_BUFFER_AUTOMATIC;
#endif
  buffered.attach(key, {buffer, std::uint64_t(size), automatic});
}

}  // namespace

int send_buffered(MPI_Comm comm, const messages::Envelope& envelope, int member, const layout::Data& data) {
  switch (buffered.send(*the_messenger, key_of(comm), member, envelope, data, overhead)) {
    case messages::Buffered::Sent::yes: return MPI_SUCCESS;
    case messages::Buffered::Sent::no_room: return MPI_ERR_BUFFER;
    default: return MPI_ERR_NO_MEM;
  }
}

bool buffered_are_outstanding() { return buffered.any_outgoing(); }

void forget_buffer(MPI_Comm comm) { buffered.forget(key_of(comm)); }

Origin origin_of(MPI_Comm comm) { return buffered.behind(key_of(comm)); }
Origin origin_of_session(MPI_Session session) { return key_of(session); }
void set_origin(MPI_Comm comm, Origin origin) {
  if (origin != process_wide && comm != host.comm_null) buffered.put_behind(key_of(comm), origin);
}
void end_origin(Origin origin) { buffered.forget(origin); }

int Buffer_attach(void* buffer, int size) {
  const int code = host.Buffer_attach(buffer, size);
  if (code == MPI_SUCCESS) attached(process_wide, buffer, size);
  return code;
}
int Buffer_attach_c(void* buffer, MPI_Count size) {
  const int code = large(host.Buffer_attach_c, host.Buffer_attach, "MPI_Buffer_attach_c", host.world, buffer, size);
  if (code == MPI_SUCCESS) attached(process_wide, buffer, size);
  return code;
}
int Buffer_detach(void* address, int* size) {
  flush(process_wide);
  const int code = host.Buffer_detach(address, size);
  if (code == MPI_SUCCESS) buffered.detach(process_wide);
  return code;
}
int Buffer_detach_c(void* address, MPI_Count* size) {
  flush(process_wide);
  int small = 0;
  int code;
  if (host.Buffer_detach_c) {
    code = host.Buffer_detach_c(address, size);
  } else {
    code = host.Buffer_detach(address, &small);
    if (size) *size = small;
  }
  if (code == MPI_SUCCESS) buffered.detach(process_wide);
  return code;
}

namespace {

// Hosts of an older standard have no buffers of communicators; only our record exists then.
template <class Attach, class Handle, class Size>
int attach_to(Attach attach, Handle handle, void* buffer, Size size) {
  const int code = attach ? attach(handle, buffer, size) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) attached(key_of(handle), buffer, size);
  return code;
}

template <class Detach, class Handle, class Size>
int detach_from(Detach detach, Handle handle, void* address, Size* size) {
  flush(key_of(handle));
  if (!detach) {
    const auto there = buffered.attached(key_of(handle));
    *static_cast<void**>(address) = there ? there->address : nullptr;
    *size = there ? Size(there->bytes) : 0;
  }
  const int code = detach ? detach(handle, address, size) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) buffered.detach(key_of(handle));
  return code;
}

class Flush final : public Activity {
 public:
  Flush(std::uint64_t key, MPI_Request of_host) : key_(key), of_host_(of_host) {}
  int begin() override {
    last_ = buffered.last();
    return MPI_SUCCESS;
  }
  bool completed() override {
    if (buffered.outstanding(key_, last_)) return false;
    int done = 1;
    if (of_host_ != host.request_null) host.Test(&of_host_, &done, MPI_STATUS_IGNORE);
    return done;
  }
  int outcome() override { return MPI_SUCCESS; }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}
  bool involves(int member) const override { return buffered.on_its_way(key_, member); }

 private:
  const std::uint64_t key_;
  std::uint64_t last_ = 0;
  MPI_Request of_host_;
};

// Makes a request that is complete when all messages outstanding now have left, and the host's own flush is complete.
template <class Form, class... Comm>
int flush_later(Form host_form, std::uint64_t key, MPI_Request* request, Comm... comm) {
  if (!the_messenger || (host_form && !buffered.outstanding(key)))
    return call_if_present(host_form, "MPI_Buffer_iflush", host.world, comm..., request);
  return guarded(host.world, "MPI_Buffer_iflush", [&]() -> int {
    MPI_Request of_host = host.request_null;
    if (host_form)
      if (const int code = host_form(comm..., &of_host); code != MPI_SUCCESS) return code;
    return make_request(host.world, std::make_unique<Flush>(key, of_host), false, request);
  });
}

}  // namespace

int Buffer_flush() {
  flush(process_wide);
  return host.Buffer_flush ? host.Buffer_flush() : MPI_SUCCESS;
}
int Buffer_iflush(MPI_Request* request) { return flush_later(host.Buffer_iflush, process_wide, request); }
int Comm_attach_buffer(MPI_Comm comm, void* buffer, int size) {
  communicator_of(comm);  // makes its state, which removes the record when the communicator is freed
  return attach_to(host.Comm_attach_buffer, comm, buffer, size);
}
int Comm_attach_buffer_c(MPI_Comm comm, void* buffer, MPI_Count size) {
  communicator_of(comm);
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
int Session_attach_buffer(MPI_Session session, void* buffer, int size) {
  return attach_to(host.Session_attach_buffer, session, buffer, size);
}
int Session_attach_buffer_c(MPI_Session session, void* buffer, MPI_Count size) {
  return attach_to(host.Session_attach_buffer_c, session, buffer, size);
}
int Session_detach_buffer(MPI_Session session, void* address, int* size) {
  return detach_from(host.Session_detach_buffer, session, address, size);
}
int Session_detach_buffer_c(MPI_Session session, void* address, MPI_Count* size) {
  return detach_from(host.Session_detach_buffer_c, session, address, size);
}
int Session_flush_buffer(MPI_Session session) {
  flush(key_of(session));
  return host.Session_flush_buffer ? host.Session_flush_buffer(session) : MPI_SUCCESS;
}
int Session_iflush_buffer(MPI_Session session, MPI_Request* request) {
  if (!host.Session_iflush_buffer && !running()) return MPI_ERR_UNSUPPORTED_OPERATION;
  return flush_later(host.Session_iflush_buffer, key_of(session), request, session);
}

}  // namespace nearfield::mpi
