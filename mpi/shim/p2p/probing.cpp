// Probes, and the messages that matched probes (MPI_Mprobe) have taken out of matching. In communicators that span
// nodes any-source probes poll both our messages and the host (any_source.hpp). As with requests, the host never sees
// our handles of messages (law 2 of docs/dev/architecture.md). A table under a lock holds them until they are received.
#include <unordered_map>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/p2p/landing.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

// A message that a matched probe took out of matching.
struct Matched {
  messages::UnexpectedMessage* early = nullptr;  // the engine's message; never null
  MPI_Comm comm{};
  std::uint32_t index = 0;
};

struct MatchedTable {
  std::mutex mutex;
  std::unordered_map<std::uint32_t, Matched*> by_index;
  std::uint32_t last = 0;
};

namespace {

MatchedTable& matched_table() { return made<MatchedTable>(); }

Matched* matched_with(std::uint32_t index) {
  const std::lock_guard lock(matched_table().mutex);
  const auto found = matched_table().by_index.find(index);
  return found == matched_table().by_index.end() ? nullptr : found->second;
}
bool is_own_message(MPI_Message message) { return abi::is_ours(message); }
MPI_Message handle_of(const Matched* matched) { return abi::handle_of<MPI_Message>(matched, matched->index); }
Matched* own_message(MPI_Message message) { return abi::object_of<Matched>(message, matched_with); }

MPI_Message keep_matched(messages::UnexpectedMessage* early, MPI_Comm comm) {
  auto* const matched = new Matched{early, comm, 0};
  const std::lock_guard lock(matched_table().mutex);
  do {
    matched_table().last = matched_table().last % 0x03fffffe + 1;
  } while (matched_table().by_index.count(matched_table().last));
  matched->index = matched_table().last;
  matched_table().by_index[matched->index] = matched;
  return handle_of(matched);
}

void take_matched(MPI_Message message) {
  Matched* const matched = own_message(message);
  {
    const std::lock_guard lock(matched_table().mutex);
    matched_table().by_index.erase(matched->index);
  }
  delete matched;
}

bool probe_once(const Communicator& c, int source, int tag, bool take, messages::Messenger::Found& found) {
  return the_messenger->probe({c.context, wildcard_source(source), wildcard_tag(tag)}, take, found);
}

void set_probe_status(MPI_Status* status, const messages::Messenger::Found& found) {
  set_status(status, found.envelope.source, found.envelope.tag, found.bytes, false);
}

// Returns whether the death of that member is an error of a probe that has found nothing yet.
bool may_come_from(const Communicator& c, int source, int member) {
  return source == MPI_ANY_SOURCE ? may_come_from(c, member) : c.members[std::size_t(source)] == member;
}

// Called by probes that do not wait, when they have found nothing.
void progress_others(const Communicator& c, int source) {
  if (!mpi::progress_others()) [[likely]]
    return;
  for (int m = 0; m < the_messenger->members(); ++m)
    if (the_messenger->known_dead(m) && may_come_from(c, source, m)) throw the_messenger->death_of(m, "probing");
}

// Probes for messages of any source, of this node or another.
template <class There>
int probe_both(bool blocks, FoundAt& where, const Communicator& c, int tag, bool take,
               messages::Messenger::Found& found, MPI_Status* status, There there) {
  before_host_receives(&c, tag);
  const int code =
      probe_for_anybody(c, blocks, where, [&] { return probe_once(c, MPI_ANY_SOURCE, tag, take, found); }, there);
  if (where == FoundAt::near) set_probe_status(status, found);
  if (where == FoundAt::none && code == MPI_SUCCESS) progress_others(c, MPI_ANY_SOURCE);
  return code;
}

// Probe and Mprobe: waits until there is a message.
void probe_blocking(const Communicator& c, int source, int tag, bool take, messages::Messenger::Found& found) {
  bool there = probe_once(c, source, tag, take, found);
  if (there) return;
  auto probe = [&] {
    if (there || (there = probe_once(c, source, tag, take, found))) return true;
    if (revoked(c.comm)) throw team::Revoked("the communicator was revoked");
    return false;
  };
  the_messenger->wait_until(probe, [&](int m) { return may_come_from(c, source, m); }, nullptr, "probing");
}

// The last argument is the status of the receive, or its request.
template <Function number, class N, class Last>
int receive_matched(void* buffer, N count, MPI_Datatype type, MPI_Message* message, Last last) {
  constexpr const char* function = name_of(number);
  constexpr bool later = std::is_same_v<Last, MPI_Request*>;
  if (!message || !the_messenger || !is_own_message(*message)) {
    const HostScope scope(true, !later);
    return at_host<number>(buffer, count, type, message, last);
  }
  TypedData typed(buffer, count, type);
  if (!typed.good) return raise_code(own_message(*message)->comm, count < 0 ? MPI_ERR_COUNT : MPI_ERR_TYPE);
  const Matched matched = *own_message(*message);
  const auto take = [&] {  // once there is memory for the rest: until then the program still has the message
    take_matched(*message);
    *message = host.message_null;
  };
  return guarded(matched.comm, function, [&]() -> int {
    auto packed = packed_copy(typed, buffer, count, type, matched.comm, true);  // the communicator may be freed
    if constexpr (later) {
      auto fresh = std::make_unique<Message>(matched.comm);
      Message& m = *fresh;
      m.packed = std::move(packed);
      m.layout = std::move(typed.layout);
      m.request.is_send = false;
      m.request.data = typed.data;
      m.request.member = matched.early->member;
      *last = under_way(matched.comm, std::move(fresh));
      take();
      the_messenger->start_matched(m.request, *matched.early);
      return MPI_SUCCESS;
    } else {
      take();
      messages::Request r;
      r.data = typed.data;
      r.member = matched.early->member;
      the_messenger->start_matched(r, *matched.early);
      wait_for(r);
      set_status(last, r.envelope.source, r.envelope.tag, counted(r), false);
      return report(matched.comm, packed ? land(*packed, r) : outcome(r));
    }
  });
}

}  // namespace

int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag)) return blocking_host([&] { return host.Probe(source, tag, comm, status); });
  if (source == MPI_PROC_NULL) {
    set_proc_null_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Probe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      FoundAt where;
      return probe_both(true, where, *c, tag, false, found, status,
                        [&](int* flag) { return iprobe_there(*c, tag, flag, status); });
    }
    probe_blocking(*c, source, tag, false, found);
    set_probe_status(status, found);
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
    set_proc_null_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Iprobe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      FoundAt where;
      const int code = probe_both(false, where, *c, tag, false, found, status,
                                  [&](int* there) { return iprobe_there(*c, tag, there, status); });
      *flag = where != FoundAt::none;
      run_bodies();
      return code;
    }
    *flag = probe_once(*c, source, tag, false, found);
    if (*flag) set_probe_status(status, found);
    else progress_others(*c, source);
    return MPI_SUCCESS;
  });
}

int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag) || !message)
    return blocking_host([&] { return host.Mprobe(source, tag, comm, message, status); });
  if (source == MPI_PROC_NULL) {
    *message = host.message_no_proc;
    set_proc_null_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Mprobe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      FoundAt where;
      const int code = probe_both(true, where, *c, tag, true, found, status,
                                  [&](int* flag) { return improbe_there(comm, c->rank, tag, flag, message, status); });
      if (where == FoundAt::near) *message = keep_matched(found.message, comm);
      return code;
    }
    probe_blocking(*c, source, tag, true, found);
    *message = keep_matched(found.message, comm);
    set_probe_status(status, found);
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
    set_proc_null_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, "MPI_Improbe", [&]() -> int {
    messages::Messenger::Found found;
    if (may_cross(*c, source)) [[unlikely]] {
      FoundAt where;
      const int code = probe_both(false, where, *c, tag, true, found, status, [&](int* there) {
        return improbe_there(comm, c->rank, tag, there, message, status);
      });
      if (where == FoundAt::near) *message = keep_matched(found.message, comm);
      if (where == FoundAt::none) *message = host.message_null;
      *flag = where != FoundAt::none;
      run_bodies();
      return code;
    }
    *flag = probe_once(*c, source, tag, true, found);
    if (*flag) {
      *message = keep_matched(found.message, comm);
      set_probe_status(status, found);
    } else {
      *message = host.message_null;
      progress_others(*c, source);
    }
    return MPI_SUCCESS;
  });
}

int Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  return receive_matched<Function::Mrecv>(buffer, count, type, message, status);
}
int Mrecv_c(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  return receive_matched<Function::Mrecv_c>(buffer, count, type, message, status);
}
int Imrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  return receive_matched<Function::Imrecv>(buffer, count, type, message, request);
}
int Imrecv_c(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  return receive_matched<Function::Imrecv_c>(buffer, count, type, message, request);
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
    return matched ? handle_of(matched) : host.message_from_int(one);
  });
}
int Message_c2f(MPI_Message message) { return Message_toint(message); }
MPI_Message Message_f2c(int number) { return Message_fromint(number); }

}  // namespace nearfield::mpi
