// Buffered sends: a message that cannot leave at once is copied and sent from the copy.
//
//   send       usually leaves at once, and nothing is copied. Otherwise a copy is sent, and its bytes count against the
//              memory attached to its communicator, else to the communicator's session, else to the process
//   complete   (Follower) the copy is freed, and its bytes no longer count
//   detach     waits until no bytes count
//
// The attached memory's size limits what may be outstanding; Nearfield never writes to it. The host uses it for the
// messages that it serves, so attach and detach calls are passed to the host. Our copies lie in memory of our own.
#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/made.hpp"
#include "engine/memory/temporaries.hpp"

#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {
namespace {

// To what memory is attached: a communicator, a session, or the process. Handles of communicators and sessions are used
// as keys of one map, since on no host does a communicator have the handle of a session.
using Key = Origin;
constexpr Key process_wide = 0;
template <class Handle>
Key key_of(Handle handle) {
  return (std::uint64_t)handle | std::uint64_t{1} << 63;
}

// Bytes of attached memory that a message takes besides its data. Programs use their own header's MPI_BSEND_OVERHEAD,
// which differs among hosts of one ABI (MPICH 96, Intel MPI 88 to 95), so ours must not be more than any of these.
constexpr std::uint64_t overhead = 64;
static_assert(overhead <= MPI_BSEND_OVERHEAD);

struct AttachedBuffer {
  void* address;
  std::uint64_t bytes;
  bool automatic;  // MPI_BUFFER_AUTOMATIC: any number of bytes may be outstanding
};

struct Account {
  std::optional<AttachedBuffer> attached;
  std::uint64_t used = 0;     // bytes that count against it
  Key behind = process_wide;  // whose memory is used if none is attached here: the session's, or the process's
  bool has_room(std::uint64_t bytes) const {
    return attached && (attached->automatic || used + bytes <= attached->bytes);
  }
};

// Bytes of a message that count against an account as long as this object exists.
struct Reservation {
  Reservation() = default;
  Reservation(Reservation&& other) noexcept : account(std::move(other.account)), bytes(std::exchange(other.bytes, 0)) {}
  ~Reservation();
  std::shared_ptr<Account> account;  // nullptr: they count nowhere
  std::uint64_t bytes = 0;
};

struct Outgoing final : messages::Follower {
  Outgoing(std::size_t bytes, Reservation taken) : copy(bytes ? bytes : 1), room(std::move(taken)) {}
  void follow(FunctionRef<void(messages::Request&)>) override;
  memory::Temporary copy;
  messages::Request request;
  Reservation room;
  std::uint64_t number = 0;  // in the order in which messages were copied
  std::list<Outgoing>::iterator self;
};

// All members are guarded by the mutex. While it is held no lock is taken but the allocators', since messages end, and
// take it, while the messenger's lock is held.
struct Buffers {
  std::mutex mutex;
  std::map<Key, std::shared_ptr<Account>> accounts;
  std::list<Outgoing> outgoing;
  std::uint64_t last = 0;  // number of a message

  std::shared_ptr<Account> find(Key key) const {
    const auto found = accounts.find(key);
    return found == accounts.end() ? nullptr : found->second;
  }
  Account& of(Key key) {
    auto& account = accounts[key];
    if (!account) account = std::make_shared<Account>();
    return *account;
  }
  // Returns the account with attached memory: the key's, else the one behind it, else the process's; nullptr: none.
  std::shared_ptr<Account> serving(Key key) const {
    auto found = find(key);
    if (found && !found->attached) found = find(found->behind);
    return found && found->attached ? found : find(process_wide);
  }
};

Buffers& buffers() { return made<Buffers>(); }

// Runs `body` while the mutex is held.
template <class Body>
auto locked(Body body) {
  Buffers& all = buffers();
  const std::lock_guard lock(all.mutex);
  return body(all);
}

Reservation::~Reservation() {
  if (bytes) locked([&](Buffers&) { account->used -= bytes; });
}

// Called when the message is complete. Destroys this object.
void Outgoing::follow(FunctionRef<void(messages::Request&)>) {
  std::list<Outgoing> gone;
  locked([&](Buffers& all) { gone.splice(gone.end(), all.outgoing, self); });
}

std::uint64_t outstanding(Key key) {
  return locked([&](Buffers& all) {
    const auto account = all.find(key);
    return account ? account->used : 0;
  });
}

// Returns whether a message for which `test` holds counts against `key` and has not completed.
template <class Test>
bool any_on_its_way(Key key, Test test) {
  return locked([&](Buffers& all) {
    return std::ranges::any_of(all.outgoing, [&, account = all.find(key)](const Outgoing& out) {
      return out.room.account == account && test(out);
    });
  });
}

bool on_its_way(Key key, int member) {
  return any_on_its_way(key, [&](const Outgoing& out) {
    return out.request.member == member && !out.request.complete();  // it may have left, and not been followed yet
  });
}

// Waits until no message counts against `key`. Throws team::Broken if a receiver has died.
void flush(Key key) {
  if (!the_messenger || !outstanding(key)) return;
  the_messenger->wait_until([&] { return !outstanding(key); }, [&](int member) { return on_its_way(key, member); },
                            nullptr, "waiting for buffered messages to leave");
}

void attached(Key key, void* buffer, MPI_Count size) {
  bool automatic = false;
#ifdef MPI_BUFFER_AUTOMATIC
  automatic = buffer == MPI_BUFFER_AUTOMATIC;
#endif
  locked([&](Buffers& all) { all.of(key).attached = {buffer, std::uint64_t(size), automatic}; });
}

// Messages that have not completed do not count against a later account with the same key.
void forget(Key key) {
  locked([&](Buffers& all) { all.accounts.erase(key); });
}

}  // namespace

int send_buffered(MPI_Comm comm, const messages::Envelope& envelope, int member, const layout::Data& data) {
  Reservation room;
  const auto take_room = [&] {
    const std::uint64_t bytes = data.bytes + overhead;
    return locked([&](Buffers& all) {
      room.account = all.serving(key_of(comm));
      if (!room.account || !room.account->has_room(bytes)) return false;
      room.account->used += room.bytes = bytes;
      return true;
    });
  };
  if (!take_room()) {
    the_messenger->poll_surely();
    if (!take_room() && std::int64_t(data.bytes) > abi::unbuffered_bytes) return MPI_ERR_BUFFER;
  }
  if (the_messenger->send_at_once(member, envelope, data)) return MPI_SUCCESS;
  std::list<Outgoing> one;
  Outgoing& out = one.emplace_back(data.bytes, std::move(room));
  if (!out.copy.data()) return MPI_ERR_NO_MEM;
  layout::gather(out.copy.data(), data, 0, data.bytes);
  out.self = one.begin();
  out.request.is_send = true;
  out.request.member = member;
  out.request.envelope = envelope;
  out.request.data = {out.copy.data(), data.bytes, {}};
  out.request.follower = &out;
  locked([&](Buffers& all) {
    out.number = ++all.last;
    all.outgoing.splice(all.outgoing.end(), one);
  });
  the_messenger->start(out.request);
  return MPI_SUCCESS;
}

bool buffered_are_outstanding() {
  return locked([](Buffers& all) { return !all.outgoing.empty(); });
}

void forget_buffer(MPI_Comm comm) { forget(key_of(comm)); }

Origin origin_of(MPI_Comm comm) {
  return locked([&](Buffers& all) {
    const auto account = all.find(key_of(comm));
    return account ? account->behind : process_wide;
  });
}
Origin origin_of_session(MPI_Session session) { return key_of(session); }
void set_origin(MPI_Comm comm, Origin origin) {
  if (origin == process_wide || comm == host.comm_null) return;
  locked([&](Buffers& all) { all.of(key_of(comm)).behind = origin; });
}
void end_origin(Origin origin) { forget(origin); }

namespace {

// Each call has three forms: for the process, for a communicator and for a session. The latter two have the handle as
// first argument. Hosts of an older standard lack them; then attached memory is only noted in the accounts above.
Key key_of() { return process_wide; }

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
  const Key key = key_of(handle...);
  flush(key);
  int code = MPI_SUCCESS;
  if (host.*form) {
    code = (host.*form)(handle..., address, size);
  } else if constexpr (sizeof...(handle) == 0) {
    int small = 0;
    code = host.Buffer_detach(address, &small);
    if (size) *size = small;
  } else {
    const auto there = locked([&](Buffers& all) {
      const auto account = all.find(key);
      return account ? account->attached : std::nullopt;
    });
    *static_cast<void**>(address) = there ? there->address : nullptr;
    *size = there ? Size(there->bytes) : 0;
  }
  if (code == MPI_SUCCESS)
    locked([&](Buffers& all) {
      if (const auto account = all.find(key)) account->attached.reset();
    });
  return code;
}

template <Function number, class... Handle>
int flush_now(Handle... handle) {
  flush(key_of(handle...));
  return host.*HostMember<number>::at ? at_host<number>(handle...) : MPI_SUCCESS;
}

class Flush final : public Activity {
 public:
  Flush(Key key, MPI_Request of_host) : key_(key), of_host_(of_host) {}
  int begin() override {
    last_ = locked([](Buffers& all) { return all.last; });
    return MPI_SUCCESS;
  }
  bool completed() override {
    if (any_on_its_way(key_, [&](const Outgoing& out) { return out.number <= last_; })) return false;
    int done = 1;
    if (of_host_ != host.request_null) host.Test(&of_host_, &done, MPI_STATUS_IGNORE);
    return done;
  }
  int outcome() override { return MPI_SUCCESS; }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}
  bool involves(int member) const override { return on_its_way(key_, member); }

 private:
  const Key key_;
  std::uint64_t last_ = 0;
  MPI_Request of_host_;
};

// Makes a request that is complete when all messages outstanding now have left and the host's flush is complete.
template <Function number, class... Handle>
int flush_later(MPI_Request* request, Handle... handle) {
  const bool host_has_it = host.*HostMember<number>::at;
  const Key key = key_of(handle...);
  if (!the_messenger || (host_has_it && !outstanding(key))) return at_host<number>(handle..., request);
  return guarded(host.world, name_of(number), [&]() -> int {
    MPI_Request of_host = host.request_null;
    if (host_has_it)
      if (const int code = at_host<number>(handle..., &of_host); code != MPI_SUCCESS) return code;
    return make_request(host.world, std::make_unique<Flush>(key, of_host), false, request);
  });
}

// Makes the communicator's state, so that the account is forgotten when the communicator is freed.
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
