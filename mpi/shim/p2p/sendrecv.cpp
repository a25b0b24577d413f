#include "mpi/shim/p2p/sendrecv.hpp"

#include "engine/base/out_of_memory.hpp"
#include "engine/memory/temporaries.hpp"
#include "engine/messages/edges.hpp"
#include "mpi/shim/p2p/landing.hpp"

namespace nearfield::mpi {
namespace {

// near(): is a rank on this node? far(): is one of two on another? No for ranks that do not exist. pre: several nodes.
bool near(const Communicator& c, int rank) { return rank >= 0 && rank < c.size && c.members[std::size_t(rank)] >= 0; }
bool far(const Communicator& c, int one, int other) {
  for (const int rank : {one, other})
    if (rank >= 0 && rank < c.size && c.members[std::size_t(rank)] < 0) return true;
  return false;
}

// Serves send and receive by separate requests: one of them is the host's, or the source may be on any node.
int sendrecv_by_halves(const char* function, const void* send, MPI_Count send_count, MPI_Datatype send_type, int dest,
                       int send_tag, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int source, int recv_tag,
                       MPI_Comm comm, MPI_Status* status, MPI_Request* request, bool copy) {
  return guarded(comm, function, [&]() -> int {
    auto both = std::make_unique<SendReceive>();
    both->half[0] = both->half[1] = host.request_null;
    if (copy && dest != MPI_PROC_NULL) {
      Packed packed(const_cast<void*>(send), send_count, send_type, comm);
      const layout::Data data = packed.data();
      if (const int code = packed.pack_all(); code != MPI_SUCCESS) return code;
      both->sent.assign(data.address, data.address + data.bytes);
      send = both->sent.data();
      send_count = MPI_Count(both->sent.size());
      send_type = host.byte;
    }
    constexpr auto receive = &make_receive<Function::Irecv_c, false, MPI_Count>;
    constexpr auto send_it = &make_send<Function::Isend_c, SendMode::standard, false, MPI_Count>;
    int code = receive(recv, recv_count, recv_type, source, recv_tag, comm, &both->half[0]);
    if (code != MPI_SUCCESS) return code;
    code = send_it(send, send_count, send_type, dest, send_tag, comm, &both->half[1]);
    if (code != MPI_SUCCESS) {
      Cancel(&both->half[0]);
      Wait(&both->half[0], MPI_STATUS_IGNORE);
      return code;
    }
    if (request) return make_request(comm, std::move(both), false, request);
    MPI_Status statuses[2] = {};
    code = Waitall(2, both->half, statuses);
    if (status != MPI_STATUS_IGNORE) *status = statuses[0];
    if (code == MPI_SUCCESS) return code;
    for (const MPI_Status& each : statuses)
      if (each.MPI_ERROR != MPI_SUCCESS) return each.MPI_ERROR;
    return code;
  });
}

// Sends, and waits for that and for `receiving`, a prepared receive (nullptr: none). `dest` may be MPI_PROC_NULL.
void exchange(const Communicator& c, const layout::Data& data, int dest, int tag, messages::Request* receiving) {
  messages::Request sending;
  if (receiving) the_messenger->start(*receiving);
  bool sent = dest == MPI_PROC_NULL;
  try {
    if (!sent) sent = the_messenger->send_at_once(c.members[std::size_t(dest)], {c.context, c.rank, tag}, data);
    if (!sent) {
      prepare_send(sending, c, dest, tag, SendMode::standard, data);
      sending.attended = true;
      the_messenger->start(sending);
    }
    messages::FirstDeath death;
    if (receiving)
      death.outlive([&] { the_messenger->wait(*receiving, [&c](int member) { return may_come_from(c, member); }); },
                    [&] { the_messenger->abandon(*receiving); });
    if (!sent) the_messenger->wait(sending);
    death.report();
  } catch (...) {
    if (receiving) the_messenger->abandon(*receiving);
    if (!sent && sending.is_send) the_messenger->abandon(sending);
    throw;
  }
}

}  // namespace

int send_and_receive(const char* function, const void* send, MPI_Count send_count, MPI_Datatype send_type, int dest,
                     int send_tag, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int source, int recv_tag,
                     MPI_Comm comm, MPI_Status* status, MPI_Request* request, bool copy,
                     FunctionRef<int()> host_call) try {
  Communicator* const c = channel(comm);
  if (c && spans_nodes(*c)) [[unlikely]] {
    // If both halves go by one side, that side combines them.
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
    std::unique_ptr<std::byte[]> kept;
    std::optional<memory::Temporary> temporary;
    std::unique_ptr<Packed> packed_out, packed_in;
    if (source != MPI_PROC_NULL) packed_in = packed_copy(in, recv, recv_count, recv_type, comm, request);
    if (dest != MPI_PROC_NULL) packed_out = packed_copy(out, send, send_count, send_type, comm);
    layout::Data data = out.data;
    if (packed_out) {
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
      m.packed = std::move(packed_in);
      m.other_packed = std::move(packed_out);
      if (dest != MPI_PROC_NULL) m.other = std::make_unique<messages::Request>();
      m.request.is_send = false;
      *request = under_way(comm, std::move(message));
      if (source == MPI_PROC_NULL) {
        // The status is that of a receive from MPI_PROC_NULL; the request is complete when the send is.
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
    messages::Request receiving;
    const bool receives = source != MPI_PROC_NULL;
    if (receives) prepare_receive(receiving, *c, source, recv_tag, in.data);
    exchange(*c, data, dest, send_tag, receives ? &receiving : nullptr);
    if (!receives) {
      set_proc_null_status(status);
      return MPI_SUCCESS;
    }
    set_status(status, receiving.envelope.source, receiving.envelope.tag, counted(receiving), false);
    return report(comm, packed_in ? land(*packed_in, receiving) : outcome(receiving));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

}  // namespace nearfield::mpi
