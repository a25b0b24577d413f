// Short messages of plain types between ranks of this node: sends that leave at once, and receives of messages that
// have come or come while they poll. They need no request. Other messages, and wrong arguments, are left to the general
// call.
#pragma once
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

// A message of dense data with a partner and a tag that are no wildcards. `member` -1: another kind, or another node.
struct PlainMessage {
  Communicator* communicator = nullptr;
  int rank = 0, member = -1;
  std::uint64_t bytes = 0;
  layout::Data data(const void* buffer) const {
    return {static_cast<std::byte*>(const_cast<void*>(buffer)), bytes, {}};
  }
};

template <class N>
[[gnu::always_inline]] inline PlainMessage plain_message(const void* buffer, N count, MPI_Datatype type, int partner,
                                                         int tag, MPI_Comm comm) {
  Communicator* const c = channel(comm);
  if (!c || unsigned(partner) >= unsigned(c->size) || unsigned(tag) > unsigned(largest_tag)) return {};
  const TypeInfo* const info = find_type(type);
  if (!info || !info->dense || count < 0 || (count && !buffer) || devices::possible()) return {};
  return {c, partner, c->members[std::size_t(partner)], std::uint64_t(count) * info->bytes};
}

[[gnu::always_inline]] inline bool send_short(const PlainMessage& to, const void* buffer, int tag) {
  return to.member >= 0 && the_messenger->send_short(to.member, {to.communicator->context, to.communicator->rank, tag},
                                                     static_cast<const std::byte*>(buffer), to.bytes);
}

[[gnu::always_inline]] inline bool receive_short(const PlainMessage& from, void* buffer, int tag, MPI_Status* status) {
  if (from.member < 0) return false;
  const std::int64_t bytes = the_messenger->receive_at_once(from.member, {from.communicator->context, from.rank, tag},
                                                            static_cast<std::byte*>(buffer), from.bytes);
  if (bytes < 0) return false;
  set_status(status, from.rank, tag, std::uint64_t(bytes), false);
  return true;
}

}  // namespace nearfield::mpi
