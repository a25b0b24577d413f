// Receives, probes, and combined sends and receives. What is received or probed from anybody may be ours or the host's
// where a communicator spans nodes (crossing.hpp), and is one side's elsewhere. Handles of matched messages never reach
// the host if they are ours, as those of requests (law 2 of docs/architecture.md); they are kept in a table under a
// lock, and are gone when they are received.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "engine/base/out_of_memory.hpp"
#include "engine/memory/temporaries.hpp"
#include "mpi/shim/messages/crossing.hpp"

namespace nearfield::mpi {
namespace {

// What a complete receive has brought leaves the packed copy. Its outcome.
int land(Packed& packed, const messages::Request& request) {
  const int code = packed.unpack_bytes(std::min(request.received, packed.bytes()));
  return code == MPI_SUCCESS ? outcome(request) : code;
}

// Hosts that judge it make an error of a message that ends within an element of a type with gaps. Here it is one where
// that is the first element: of those behind, no host tells where they end.
int judge(const messages::Request& request, MPI_Datatype type) {
  const int code = outcome(request);
  const layout::View& view = request.data.view;
  if (!abi::judges_elements || view.dense() || !request.received || request.received % view.size == 0 ||
      code != MPI_SUCCESS) [[likely]]
    return code;
  MPI_Status status{};
  MPI_Count elements = 1;
  host.Status_set_elements_x(&status, host.byte, MPI_Count(request.received));
  host.Get_elements_x(&status, type, &elements);
  return elements == 0 || elements == MPI_UNDEFINED ? MPI_ERR_TYPE : MPI_SUCCESS;
}

// Data that is not received where it belongs: of a type that is not described, or on a device.
template <class N>
[[gnu::noinline]] int receive_apart(TypedData& typed, const Communicator& c, void* buffer, N count, MPI_Datatype type,
                                    int source, int tag, MPI_Status* status) {
  std::unique_ptr<Packed> packed;
  if (typed.packs()) {
    packed = std::make_unique<Packed>(buffer, count, type, c.comm);
    typed.data = packed->data();
  }
  const auto stage = devices::stage(typed.data, false);
  messages::Request request;
  prepare_receive(request, c, source, tag, typed.data);
  request.attended = true;
  the_messenger->start(request);
  wait_for(request);
  if (stage) store(*stage, request);
  set_status(status, request.envelope.source, request.envelope.tag, counted(request), false);
  return report(c.comm, packed ? land(*packed, request) : outcome(request));
}

template <class N, class HostCall>
int make_receive(bool persistent, const char* function, void* buffer, N count, MPI_Datatype type, int source, int tag,
                 MPI_Comm comm, MPI_Request* request, HostCall host_call);

// While receives from anybody wait for either side, by a request: then the host can be asked for those as well.
template <class HostCall, class HostStart>
int receive_by_host(const Communicator* c, int tag, MPI_Status* status, HostCall host_call, HostStart host_start) {
  if (!crossings.load(std::memory_order_relaxed)) [[likely]]
    return blocking_host(host_call);
  before_host_receives(c, tag);
  MPI_Request request;
  const int code = passing_host([&] { return host_start(&request); });
  return code == MPI_SUCCESS ? Wait(&request, status) : code;
}

template <class N, class HostCall, class HostStart>
int receive(const char* function, void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
            MPI_Status* status, HostCall host_call, HostStart host_start) try {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag)) return receive_by_host(c, tag, status, host_call, host_start);
  TypedData typed(buffer, count, type);
  if (!typed.good) return blocking_host(host_call);
  if (source == MPI_PROC_NULL) {
    set_nowhere_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, function, [&]() -> int {
    if (may_cross(*c, source)) [[unlikely]] {
      before_host_receives(c, tag);
      if (!typed.packs() && !devices::possible())
        return receive_from_anybody(typed.data, *c, buffer, count, type, tag, status);
      MPI_Request request;
      const int code = make_receive(false, function, buffer, count, type, source, tag, comm, &request, host_call);
      return code == MPI_SUCCESS ? Wait(&request, status) : code;
    }
    if (typed.packs() || devices::possible()) [[unlikely]]
      return receive_apart(typed, *c, buffer, count, type, source, tag, status);
    messages::Request request;
    prepare_receive(request, *c, source, tag, typed.data);
    request.attended = true;
    the_messenger->start(request);
    wait_for(request);
    set_status(status, request.envelope.source, request.envelope.tag, counted(request), false);
    return report(comm, judge(request, type));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

template <class N, class HostCall>
int make_receive(bool persistent, const char* function, void* buffer, N count, MPI_Datatype type, int source, int tag,
                 MPI_Comm comm, MPI_Request* request, HostCall host_call) try {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag) || !request) {
    before_host_receives(c, tag);
    return making_host(persistent, request, host_call);
  }
  TypedData typed(buffer, count, type);
  if (!typed.good) return making_host(persistent, request, host_call);
  return guarded(comm, function, [&]() -> int {
    const bool crosses = may_cross(*c, source);
    if (!persistent && source != MPI_PROC_NULL && !typed.layout && !crosses && !devices::possible()) [[likely]] {
      UserRequest* const user = new_request(comm);
      user->active = true;
      prepare_receive(user->request, *c, source, tag, typed.data);
      *request = handle_of(user);
      the_messenger->start(user->request);
      return MPI_SUCCESS;
    }
    auto message = std::make_unique<Message>(comm);
    if (typed.packs() && source != MPI_PROC_NULL) {
      message->packed = std::make_unique<Packed>(buffer, count, type, comm);
      message->packed->keep_type();
      typed.data = message->packed->data();
    }
    message->nowhere = source == MPI_PROC_NULL;
    message->receive_stage = devices::stage(typed.data, false);
    message->layout = std::move(typed.layout);
    if (message->nowhere) message->request.is_send = false;
    else prepare_receive(message->request, *c, source, tag, typed.data);
    message->keep();
    std::unique_ptr<Activity> receive = std::move(message);
    if (crosses) {
      std::unique_ptr<Message> near(static_cast<Message*>(receive.release()));
      receive = std::make_unique<Crossing>(std::move(near), buffer, MPI_Count(count), type, tag, *c);
    }
    return report(comm, make_request(comm, std::move(receive), persistent, request));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

// ---------------------------------------------------------------- probes

// A message that a matched probe took out of matching.
struct Matched {
  messages::Early* early = nullptr;  // nullptr: of MPI_PROC_NULL
  MPI_Comm comm{};
  std::uint32_t index = 0;
};

struct MatchedTable {
  std::mutex mutex;
  std::unordered_map<std::uint32_t, Matched*> by_index;
  std::uint32_t last = 0;
};
MatchedTable& matched_table = *new MatchedTable;  // never destroyed

Matched* matched_with(std::uint32_t index) {
  const std::lock_guard lock(matched_table.mutex);
  const auto found = matched_table.by_index.find(index);
  return found == matched_table.by_index.end() ? nullptr : found->second;
}
bool is_own_message(MPI_Message message) { return abi::is_ours(message); }
MPI_Message handle_of(const Matched* matched) { return abi::handle_of<MPI_Message>(matched, matched->index); }
Matched* own_message(MPI_Message message) { return abi::object_of<Matched>(message, matched_with); }

MPI_Message keep_matched(messages::Early* early, MPI_Comm comm) {
  auto* const matched = new Matched{early, comm, 0};
  const std::lock_guard lock(matched_table.mutex);
  do {
    matched_table.last = matched_table.last % 0x03fffffe + 1;
  } while (matched_table.by_index.count(matched_table.last));
  matched->index = matched_table.last;
  matched_table.by_index[matched->index] = matched;
  return handle_of(matched);
}

Matched take_matched(MPI_Message message) {
  Matched* const matched = own_message(message);
  const Matched copy = *matched;
  {
    const std::lock_guard lock(matched_table.mutex);
    matched_table.by_index.erase(matched->index);
  }
  delete matched;
  return copy;
}

bool probe_once(const Communicator& c, int source, int tag, bool take, messages::Messenger::Found& found) {
  return the_messenger->probe({c.context, wildcard_source(source), wildcard_tag(tag)}, take, found);
}

void set_status(MPI_Status* status, const messages::Messenger::Found& found) {
  mpi::set_status(status, found.envelope.source, found.envelope.tag, found.bytes, false);
}

// From anybody, of this node or another.
template <class There>
int probe_both(bool blocks, Found& where, const Communicator& c, int tag, bool take, messages::Messenger::Found& found,
               MPI_Status* status, There there) {
  before_host_receives(&c, tag);
  const int code =
      probe_for_anybody(c, blocks, where, [&] { return probe_once(c, MPI_ANY_SOURCE, tag, take, found); }, there);
  if (where == Found::near) set_status(status, found);
  if (where == Found::none) look_elsewhere();  // what else waits for the host
  return code;
}

// Probe and Mprobe: until there is one.
void probe_blocking(const Communicator& c, int source, int tag, bool take, messages::Messenger::Found& found) {
  bool there = probe_once(c, source, tag, take, found);
  if (there) return;
  const int member = source == MPI_ANY_SOURCE ? -1 : c.members[source];
  auto probe = [&] {
    if (there || (there = probe_once(c, source, tag, take, found))) return true;
    if (revoked(c.comm)) throw team::Revoked("the communicator was revoked");
    return false;
  };
  the_messenger->wait_until(probe, [&](int m) { return member < 0 || m == member; }, nullptr, "probing");
}

template <class N, class HostCall>
int receive_matched(const char* function, void* buffer, N count, MPI_Datatype type, MPI_Message* message,
                    MPI_Status* status, MPI_Request* request, HostCall host_call) {
  if (!message || !the_messenger || !is_own_message(*message)) return host_call();
  TypedData typed(buffer, count, type);
  if (!typed.good) return raise_code(own_message(*message)->comm, count < 0 ? MPI_ERR_COUNT : MPI_ERR_TYPE);
  const Matched matched = take_matched(*message);
  *message = host.message_null;
  return guarded(matched.comm, function, [&]() -> int {
    std::unique_ptr<Packed> packed;
    if (typed.packs()) {
      packed = std::make_unique<Packed>(buffer, count, type, host.self);  // its own may have gone
      typed.data = packed->data();
    }
    auto stage = devices::stage(typed.data, false);
    if (request) {
      auto message = std::make_unique<Message>(matched.comm);
      Message& m = *message;
      if (packed) packed->keep_type();
      m.packed = std::move(packed);
      m.receive_stage = std::move(stage);
      m.layout = std::move(typed.layout);
      m.request.is_send = false;
      m.request.data = typed.data;
      m.request.member = matched.early->member;
      *request = under_way(matched.comm, std::move(message));
      the_messenger->start_matched(m.request, *matched.early);
      return MPI_SUCCESS;
    }
    messages::Request r;
    r.data = typed.data;
    r.member = matched.early->member;
    the_messenger->start_matched(r, *matched.early);
    wait_for(r);
    if (stage) store(*stage, r);
    mpi::set_status(status, r.envelope.source, r.envelope.tag, counted(r), false);
    return report(matched.comm, packed ? land(*packed, r) : outcome(r));
  });
}

// ---------------------------------------------------------------- combined

// pre: the communicator spans nodes. Ranks that do not exist are on neither side.
bool near(const Communicator& c, int rank) { return rank >= 0 && rank < c.size && c.members[std::size_t(rank)] >= 0; }
bool far(const Communicator& c, int one, int other) {
  for (const int rank : {one, other})
    if (rank >= 0 && rank < c.size && c.members[std::size_t(rank)] < 0) return true;
  return false;
}

// One half goes by one side, the other by the other, or it is not known.
template <class N>
int sendrecv_by_halves(const char* function, const void* send, N send_count, MPI_Datatype send_type, int dest,
                       int send_tag, void* recv, N recv_count, MPI_Datatype recv_type, int source, int recv_tag,
                       MPI_Comm comm, MPI_Status* status, MPI_Request* request, bool copy) {
  return guarded(comm, function, [&]() -> int {
    auto both = std::make_unique<Combined>();
    both->half[0] = both->half[1] = host.request_null;
    MPI_Count count = send_count;
    if (copy && dest != MPI_PROC_NULL) {
      Packed packed(const_cast<void*>(send), send_count, send_type, comm);
      const layout::Data data = packed.data();
      if (const int code = packed.pack_all(); code != MPI_SUCCESS) return code;
      both->sent.assign(data.address, data.address + data.bytes);
      send = both->sent.data();
      count = MPI_Count(both->sent.size());
      send_type = host.byte;
    }
    int code = Irecv_c(recv, recv_count, recv_type, source, recv_tag, comm, &both->half[0]);
    if (code != MPI_SUCCESS) return code;
    code = Isend_c(send, count, send_type, dest, send_tag, comm, &both->half[1]);
    if (code != MPI_SUCCESS) {
      Cancel(&both->half[0]);
      Wait(&both->half[0], MPI_STATUS_IGNORE);
      return code;
    }
    if (request) return make_request(comm, std::move(both), false, request);
    MPI_Status statuses[2];
    code = Waitall(2, both->half, statuses);
    if (status != MPI_STATUS_IGNORE) *status = statuses[0];
    if (code == MPI_SUCCESS) return code;
    for (const MPI_Status& each : statuses)
      if (each.MPI_ERROR != MPI_SUCCESS) return each.MPI_ERROR;
    return code;
  });
}

// Both sides of a combined call; either may be nowhere. `copy`: the send buffer is replaced, so it is copied first.
template <class N, class HostCall>
int sendrecv(const char* function, const void* send, N send_count, MPI_Datatype send_type, int dest, int send_tag,
             void* recv, N recv_count, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm,
             MPI_Status* status, MPI_Request* request, bool copy, HostCall host_call) try {
  Communicator* const c = channel(comm);
  if (c && spans_nodes(*c)) [[unlikely]] {
    // Where all goes by one side, that side combines it.
    const bool hosts = far(*c, dest, source) && (source == MPI_PROC_NULL || !near(*c, source)) &&
                       (dest == MPI_PROC_NULL || !near(*c, dest)) && source != MPI_ANY_SOURCE;
    const bool ours = source != MPI_ANY_SOURCE && !far(*c, dest, source);
    if (!hosts && !ours)
      return sendrecv_by_halves(function, send, send_count, send_type, dest, send_tag, recv, recv_count, recv_type,
                                source, recv_tag, comm, status, request, copy);
  }
  if (!c || !good_destination(*c, dest, send_tag) || !good_source(*c, source, recv_tag))
    return blocking_host(host_call);
  TypedData out(send, send_count, send_type), in(recv, recv_count, recv_type);
  if (!out.good || !in.good) return blocking_host(host_call);
  return guarded(comm, function, [&]() -> int {
    auto send_stage = devices::stage(out.data, dest != MPI_PROC_NULL);
    auto receive_stage = devices::stage(in.data, false);
    layout::Data data = out.data;
    std::unique_ptr<std::byte[]> kept;
    std::optional<memory::Temporary> temporary;
    std::unique_ptr<Packed> packed_out, packed_in;
    if (in.packs() && source != MPI_PROC_NULL) {
      packed_in = std::make_unique<Packed>(recv, recv_count, recv_type, comm);
      in.data = packed_in->data();
    }
    if (out.packs() && dest != MPI_PROC_NULL) {
      packed_out = std::make_unique<Packed>(const_cast<void*>(send), send_count, send_type, comm);
      data = packed_out->data();
      if (const int code = packed_out->pack_all(); code != MPI_SUCCESS) return code;
    } else if (copy && dest != MPI_PROC_NULL && data.bytes) {
      std::byte* to;
      if (request) {
        kept.reset(new std::byte[data.bytes]);
        to = kept.get();
      } else {
        temporary.emplace(data.bytes);
        to = temporary->data();
        if (!to) throw OutOfMemory();
      }
      layout::gather(to, data, 0, data.bytes);
      data = {to, data.bytes, {}};
    }
    if (request) {
      auto message = std::make_unique<Message>(comm);
      Message& m = *message;
      m.layout = std::move(in.layout);
      m.other_layout = std::move(out.layout);
      m.copy = std::move(kept);
      if (packed_in) packed_in->keep_type();
      m.packed = std::move(packed_in);
      m.other_packed = std::move(packed_out);
      m.send_stage = std::move(send_stage);
      m.receive_stage = std::move(receive_stage);
      if (dest != MPI_PROC_NULL) m.other = std::make_unique<messages::Request>();
      m.request.is_send = false;
      *request = under_way(comm, std::move(message));
      if (source == MPI_PROC_NULL) {
        // Its status says so; completion is the send's alone.
        m.request.member = -1;
        m.request.envelope = {c->context, MPI_PROC_NULL, MPI_ANY_TAG};
        m.request.complete_at_once();
      } else {
        prepare_receive(m.request, *c, source, recv_tag, in.data);
        the_messenger->start(m.request);
      }
      if (m.other) {
        prepare_send(*m.other, *c, dest, send_tag, SendMode::standard, data);
        the_messenger->start(*m.other);
      }
      return MPI_SUCCESS;
    }
    messages::Request receiving, sending;
    const bool receives = source != MPI_PROC_NULL;
    if (receives) {
      prepare_receive(receiving, *c, source, recv_tag, in.data);
      the_messenger->start(receiving);
    }
    bool sent = dest == MPI_PROC_NULL;
    try {
      if (!sent) sent = the_messenger->send_at_once(c->members[dest], {c->context, c->rank, send_tag}, data);
      if (!sent) {
        prepare_send(sending, *c, dest, send_tag, SendMode::standard, data);
        sending.attended = true;
        the_messenger->start(sending);
      }
      if (receives) the_messenger->wait(receiving);
      if (!sent) the_messenger->wait(sending);
    } catch (...) {
      if (receives) the_messenger->abandon(receiving);
      if (!sent && sending.is_send) the_messenger->abandon(sending);
      throw;
    }
    if (!receives) {
      set_nowhere_status(status);
      return MPI_SUCCESS;
    }
    if (receive_stage) store(*receive_stage, receiving);
    mpi::set_status(status, receiving.envelope.source, receiving.envelope.tag, counted(receiving), false);
    return report(comm, packed_in ? land(*packed_in, receiving) : outcome(receiving));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

}  // namespace

int Recv(void* b, int n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Status* s) {
  return receive(
      "MPI_Recv", b, n, t, source, tag, c, s, [&] { return host.Recv(b, n, t, source, tag, c, s); },
      [&](MPI_Request* r) { return host.Irecv(b, n, t, source, tag, c, r); });
}
int Recv_c(void* b, MPI_Count n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Status* s) {
  return receive(
      "MPI_Recv_c", b, n, t, source, tag, c, s,
      [&] { return large(host.Recv_c, host.Recv, "MPI_Recv_c", c, b, n, t, source, tag, c, s); },
      [&](MPI_Request* r) { return large(host.Irecv_c, host.Irecv, "MPI_Recv_c", c, b, n, t, source, tag, c, r); });
}
#define NEARFIELD_MAKE_RECEIVE(Name, persistent)                                                        \
  int Name(void* b, int n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Request* r) {           \
    return make_receive(persistent, "MPI_" #Name, b, n, t, source, tag, c, r,                           \
                        [&] { return host.Name(b, n, t, source, tag, c, r); });                         \
  }                                                                                                     \
  int Name##_c(void* b, MPI_Count n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Request* r) { \
    return make_receive(persistent, "MPI_" #Name "_c", b, n, t, source, tag, c, r, [&] {                \
      return large(host.Name##_c, host.Name, "MPI_" #Name "_c", c, b, n, t, source, tag, c, r);         \
    });                                                                                                 \
  }
NEARFIELD_MAKE_RECEIVE(Irecv, false)
NEARFIELD_MAKE_RECEIVE(Recv_init, true)

int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag)) return blocking_host([&] { return host.Probe(source, tag, comm, status); });
  if (source == MPI_PROC_NULL) {
    set_nowhere_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Probe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      Found where;
      return probe_both(true, where, *c, tag, false, found, status,
                        [&](int* flag) { return iprobe_there(*c, tag, flag, status); });
    }
    probe_blocking(*c, source, tag, false, found);
    set_status(status, found);
    return MPI_SUCCESS;
  });
}

int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag) || !flag) {
    before_host_receives(c, tag);
    poll_ours();
    return host.Iprobe(source, tag, comm, flag, status);
  }
  if (source == MPI_PROC_NULL) {
    *flag = 1;
    set_nowhere_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Iprobe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      Found where;
      const int code = probe_both(false, where, *c, tag, false, found, status,
                                  [&](int* there) { return iprobe_there(*c, tag, there, status); });
      *flag = where != Found::none;
      run_bodies();
      return code;
    }
    *flag = probe_once(*c, source, tag, false, found);
    if (*flag) set_status(status, found);
    else look_elsewhere();
    return MPI_SUCCESS;
  });
}

int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag) || !message)
    return blocking_host([&] { return host.Mprobe(source, tag, comm, message, status); });
  if (source == MPI_PROC_NULL) {
    *message = host.message_no_proc;
    set_nowhere_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Mprobe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      Found where;
      const int code = probe_both(true, where, *c, tag, true, found, status,
                                  [&](int* flag) { return improbe_there(comm, c->rank, tag, flag, message, status); });
      if (where == Found::near) *message = keep_matched(found.message, comm);
      return code;
    }
    probe_blocking(*c, source, tag, true, found);
    *message = keep_matched(found.message, comm);
    set_status(status, found);
    return MPI_SUCCESS;
  });
}

int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag) || !flag || !message) {
    before_host_receives(c, tag);
    poll_ours();
    return host.Improbe(source, tag, comm, flag, message, status);
  }
  if (source == MPI_PROC_NULL) {
    *flag = 1;
    *message = host.message_no_proc;
    set_nowhere_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Improbe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      Found where;
      const int code = probe_both(false, where, *c, tag, true, found, status, [&](int* there) {
        return improbe_there(comm, c->rank, tag, there, message, status);
      });
      if (where == Found::near) *message = keep_matched(found.message, comm);
      if (where == Found::none) *message = host.message_null;
      *flag = where != Found::none;
      run_bodies();
      return code;
    }
    *flag = probe_once(*c, source, tag, true, found);
    if (*flag) {
      *message = keep_matched(found.message, comm);
      set_status(status, found);
    } else {
      *message = host.message_null;
      look_elsewhere();
    }
    return MPI_SUCCESS;
  });
}

int Mrecv(void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Status* s) {
  return receive_matched("MPI_Mrecv", b, n, t, m, s, nullptr, [&] { return host.Mrecv(b, n, t, m, s); });
}
int Mrecv_c(void* b, MPI_Count n, MPI_Datatype t, MPI_Message* m, MPI_Status* s) {
  return receive_matched("MPI_Mrecv_c", b, n, t, m, s, nullptr,
                         [&] { return large(host.Mrecv_c, host.Mrecv, "MPI_Mrecv_c", host.world, b, n, t, m, s); });
}
int Imrecv(void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Request* r) {
  return receive_matched("MPI_Imrecv", b, n, t, m, MPI_STATUS_IGNORE, r, [&] { return host.Imrecv(b, n, t, m, r); });
}
int Imrecv_c(void* b, MPI_Count n, MPI_Datatype t, MPI_Message* m, MPI_Request* r) {
  return receive_matched("MPI_Imrecv_c", b, n, t, m, MPI_STATUS_IGNORE, r,
                         [&] { return large(host.Imrecv_c, host.Imrecv, "MPI_Imrecv_c", host.world, b, n, t, m, r); });
}

int Sendrecv(const void* s, int ns, MPI_Datatype ts, int dest, int stag, void* r, int nr, MPI_Datatype tr, int source,
             int rtag, MPI_Comm c, MPI_Status* status) {
  return sendrecv("MPI_Sendrecv", s, ns, ts, dest, stag, r, nr, tr, source, rtag, c, status, nullptr, false,
                  [&] { return host.Sendrecv(s, ns, ts, dest, stag, r, nr, tr, source, rtag, c, status); });
}
int Sendrecv_c(const void* s, MPI_Count ns, MPI_Datatype ts, int dest, int stag, void* r, MPI_Count nr, MPI_Datatype tr,
               int source, int rtag, MPI_Comm c, MPI_Status* status) {
  return sendrecv("MPI_Sendrecv_c", s, ns, ts, dest, stag, r, nr, tr, source, rtag, c, status, nullptr, false, [&] {
    return large(host.Sendrecv_c, host.Sendrecv, "MPI_Sendrecv_c", c, s, ns, ts, dest, stag, r, nr, tr, source, rtag, c,
                 status);
  });
}
int Sendrecv_replace(void* b, int n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                     MPI_Status* status) {
  return sendrecv("MPI_Sendrecv_replace", b, n, t, dest, stag, b, n, t, source, rtag, c, status, nullptr, true,
                  [&] { return host.Sendrecv_replace(b, n, t, dest, stag, source, rtag, c, status); });
}
int Sendrecv_replace_c(void* b, MPI_Count n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                       MPI_Status* status) {
  return sendrecv("MPI_Sendrecv_replace_c", b, n, t, dest, stag, b, n, t, source, rtag, c, status, nullptr, true, [&] {
    return large(host.Sendrecv_replace_c, host.Sendrecv_replace, "MPI_Sendrecv_replace_c", c, b, n, t, dest, stag,
                 source, rtag, c, status);
  });
}

int Isendrecv(const void* s, int ns, MPI_Datatype ts, int dest, int stag, void* r, int nr, MPI_Datatype tr, int source,
              int rtag, MPI_Comm c, MPI_Request* request) {
  return sendrecv(
      "MPI_Isendrecv", s, ns, ts, dest, stag, r, nr, tr, source, rtag, c, MPI_STATUS_IGNORE, request, false, [&] {
        return young(host.Isendrecv, "MPI_Isendrecv", c, s, ns, ts, dest, stag, r, nr, tr, source, rtag, c, request);
      });
}
int Isendrecv_c(const void* s, MPI_Count ns, MPI_Datatype ts, int dest, int stag, void* r, MPI_Count nr,
                MPI_Datatype tr, int source, int rtag, MPI_Comm c, MPI_Request* request) {
  return sendrecv("MPI_Isendrecv_c", s, ns, ts, dest, stag, r, nr, tr, source, rtag, c, MPI_STATUS_IGNORE, request,
                  false, [&] {
                    return large(host.Isendrecv_c, host.Isendrecv, "MPI_Isendrecv_c", c, s, ns, ts, dest, stag, r, nr,
                                 tr, source, rtag, c, request);
                  });
}
int Isendrecv_replace(void* b, int n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                      MPI_Request* request) {
  return sendrecv(
      "MPI_Isendrecv_replace", b, n, t, dest, stag, b, n, t, source, rtag, c, MPI_STATUS_IGNORE, request, true, [&] {
        return young(host.Isendrecv_replace, "MPI_Isendrecv_replace", c, b, n, t, dest, stag, source, rtag, c, request);
      });
}
int Isendrecv_replace_c(void* b, MPI_Count n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                        MPI_Request* request) {
  return sendrecv("MPI_Isendrecv_replace_c", b, n, t, dest, stag, b, n, t, source, rtag, c, MPI_STATUS_IGNORE, request,
                  true, [&] {
                    return large(host.Isendrecv_replace_c, host.Isendrecv_replace, "MPI_Isendrecv_replace_c", c, b, n,
                                 t, dest, stag, source, rtag, c, request);
                  });
}

// ---------------------------------------------------------------- message handles as integers

int Message_toint(MPI_Message message) {
  return abi::integer_of(message, [](MPI_Message one) {
    return is_own_message(one) ? -2 - int(own_message(one)->index) : host.message_to_int(one);
  });
}
MPI_Message Message_fromint(int number) {
  return abi::of_integer<MPI_Message>(number, [](int one) {
    if (one >= -1) return host.message_from_int(one);
    const Matched* const matched = matched_with(std::uint32_t(-2 - one));
    return matched ? handle_of(matched) : host.message_null;
  });
}
int Message_c2f(MPI_Message message) { return Message_toint(message); }
MPI_Message Message_f2c(int number) { return Message_fromint(number); }

}  // namespace nearfield::mpi
