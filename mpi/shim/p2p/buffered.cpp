// MPI's interface of buffered sends: memory attached to the process, a session or a communicator, detaching, flushing,
// errors. engine/messages/buffered.hpp has the copies, counters, waits and locks.
//
// Each call is passed to the host as well, since it needs the attached memory for the messages that it serves.
#include "engine/messages/buffered.hpp"
#include "engine/base/made.hpp"

#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {
namespace {

messages::Buffered& buffered() { return made<messages::Buffered>(); }

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
  if (the_messenger) buffered().flush(*the_messenger, key);
}

void attached(std::uint64_t key, void* buffer, MPI_Count size) {
  bool automatic = false;
#ifdef MPI_BUFFER_AUTOMATIC
  automatic = buffer == MPI_BUFFER_AUTOMATIC;
#endif
  buffered().attach(key, {buffer, std::uint64_t(size), automatic});
}

}  // namespace

int send_buffered(MPI_Comm comm, const messages::Envelope& envelope, int member, const layout::Data& data) {
  switch (buffered().send(*the_messenger, key_of(comm), member, envelope, data, overhead, abi::unbuffered_bytes)) {
    case messages::Buffered::Sent::yes: return MPI_SUCCESS;
    case messages::Buffered::Sent::no_room: return MPI_ERR_BUFFER;
    default: return MPI_ERR_NO_MEM;
  }
}

bool buffered_are_outstanding() { return buffered().any_outgoing(); }

void forget_buffer(MPI_Comm comm) { buffered().forget(key_of(comm)); }

Origin origin_of(MPI_Comm comm) { return buffered().behind(key_of(comm)); }
Origin origin_of_session(MPI_Session session) { return key_of(session); }
void set_origin(MPI_Comm comm, Origin origin) {
  if (origin != process_wide && comm != host.comm_null) buffered().put_behind(key_of(comm), origin);
}
void end_origin(Origin origin) { buffered().forget(origin); }

namespace {

// The forms of a call: of the process, of a communicator, of a session, which is the first argument of the last two.
// Hosts of an older standard know no buffers of these: then the record here is all there is.
std::uint64_t key_of() { return process_wide; }

template <Function number, class Size, class... Handle>
int attach(void* buffer, Size size, Handle... handle) {
  int code = MPI_SUCCESS;
  if (sizeof...(handle) == 0 || host.*HostMember<number>::at) code = at_host<number>(handle..., buffer, size);
  if (code == MPI_SUCCESS) attached(key_of(handle...), buffer, size);
  return code;
}

template <Function number, class Size, class... Handle>
int detach(void* address, Size* size, Handle... handle) {
  constexpr auto form = HostMember<number>::at;
  const std::uint64_t key = key_of(handle...);
  flush(key);
  int code = MPI_SUCCESS;
  if (host.*form) {
    code = (host.*form)(handle..., address, size);
  } else if constexpr (sizeof...(handle) == 0) {
    int small = 0;
    code = host.Buffer_detach(address, &small);
    if (size) *size = small;
  } else {
    const auto there = buffered().attached(key);
    *static_cast<void**>(address) = there ? there->address : nullptr;
    *size = there ? Size(there->bytes) : 0;
  }
  if (code == MPI_SUCCESS) buffered().detach(key);
  return code;
}

template <Function number, class... Handle>
int flush_now(Handle... handle) {
  flush(key_of(handle...));
  return host.*HostMember<number>::at ? at_host<number>(handle...) : MPI_SUCCESS;
}

class Flush final : public Activity {
 public:
  Flush(std::uint64_t key, MPI_Request of_host) : key_(key), of_host_(of_host) {}
  int begin() override {
    last_ = buffered().last();
    return MPI_SUCCESS;
  }
  bool completed() override {
    if (buffered().outstanding(key_, last_)) return false;
    int done = 1;
    if (of_host_ != host.request_null) host.Test(&of_host_, &done, MPI_STATUS_IGNORE);
    return done;
  }
  int outcome() override { return MPI_SUCCESS; }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}
  bool involves(int member) const override { return buffered().on_its_way(key_, member); }

 private:
  const std::uint64_t key_;
  std::uint64_t last_ = 0;
  MPI_Request of_host_;
};

// A request that is complete when all that is outstanding now has left, and the host's own flush is complete.
template <Function number, class... Handle>
int flush_later(MPI_Request* request, Handle... handle) {
  const bool host_has_it = host.*HostMember<number>::at;
  const std::uint64_t key = key_of(handle...);
  if (!the_messenger || (host_has_it && !buffered().outstanding(key))) return at_host<number>(handle..., request);
  return guarded(host.world, name_of(number), [&]() -> int {
    MPI_Request of_host = host.request_null;
    if (host_has_it)
      if (const int code = at_host<number>(handle..., &of_host); code != MPI_SUCCESS) return code;
    return make_request(host.world, std::make_unique<Flush>(key, of_host), false, request);
  });
}

// Its state takes the record with it when it goes.
MPI_Comm with_state(MPI_Comm comm) {
  communicator_of(comm);
  return comm;
}

}  // namespace

int Buffer_attach(void* buffer, int size) { return attach<Function::Buffer_attach>(buffer, size); }
int Buffer_attach_c(void* buffer, MPI_Count size) { return attach<Function::Buffer_attach_c>(buffer, size); }
int Buffer_detach(void* address, int* size) { return detach<Function::Buffer_detach>(address, size); }
int Buffer_detach_c(void* address, MPI_Count* size) { return detach<Function::Buffer_detach_c>(address, size); }
int Buffer_flush() { return flush_now<Function::Buffer_flush>(); }
int Buffer_iflush(MPI_Request* request) { return flush_later<Function::Buffer_iflush>(request); }
int Comm_attach_buffer(MPI_Comm comm, void* buffer, int size) {
  return attach<Function::Comm_attach_buffer>(buffer, size, with_state(comm));
}
int Comm_attach_buffer_c(MPI_Comm comm, void* buffer, MPI_Count size) {
  return attach<Function::Comm_attach_buffer_c>(buffer, size, with_state(comm));
}
int Comm_detach_buffer(MPI_Comm comm, void* address, int* size) {
  return detach<Function::Comm_detach_buffer>(address, size, comm);
}
int Comm_detach_buffer_c(MPI_Comm comm, void* address, MPI_Count* size) {
  return detach<Function::Comm_detach_buffer_c>(address, size, comm);
}
int Comm_flush_buffer(MPI_Comm comm) { return flush_now<Function::Comm_flush_buffer>(comm); }
int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
  return flush_later<Function::Comm_iflush_buffer>(request, comm);
}
int Session_attach_buffer(MPI_Session session, void* buffer, int size) {
  return attach<Function::Session_attach_buffer>(buffer, size, session);
}
int Session_attach_buffer_c(MPI_Session session, void* buffer, MPI_Count size) {
  return attach<Function::Session_attach_buffer_c>(buffer, size, session);
}
int Session_detach_buffer(MPI_Session session, void* address, int* size) {
  return detach<Function::Session_detach_buffer>(address, size, session);
}
int Session_detach_buffer_c(MPI_Session session, void* address, MPI_Count* size) {
  return detach<Function::Session_detach_buffer_c>(address, size, session);
}
int Session_flush_buffer(MPI_Session session) { return flush_now<Function::Session_flush_buffer>(session); }
int Session_iflush_buffer(MPI_Session session, MPI_Request* request) {
  return flush_later<Function::Session_iflush_buffer>(request, session);
}

}  // namespace nearfield::mpi
