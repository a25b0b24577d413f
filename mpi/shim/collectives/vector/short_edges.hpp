// Serves calls of edges with few bytes and dense types (exchange.hpp), which are the most frequent: each edge is sent
// and received when the operation visits it, so a call needs no list of edges, no requests and no memory. Three passes:
//
//   look     checks that all parts are dense, and so short that each message fits into a record
//   send     sends all parts in their order. A send waits for room in the receiver's fastbox or queue; the receiver
//            receives messages while it waits in the same way
//   receive  receives all parts in their order; the part that this rank sends to itself is copied
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/messages/edges.hpp"
#include "mpi/shim/collectives/vector/partner_data.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/handles/types.hpp"

namespace nearfield::mpi {

class ShortEdges {
 public:
  explicit ShortEdges(const messages::Partners& partners)
      : partners_(partners), limit_(partners.messenger.in_record()) {}

  // False: the edges are not of this kind, and nothing has been done. Throws Broken.
  template <class Operation>
  bool run(const Operation& operation) {
    // Operations with rest() receive in buffers that are not allocated here.
    if constexpr (requires(Operation& any) { any.rest(true); }) return false;
    if (operation.in_place() || devices::possible()) return false;
    for (pass_ = Pass::look; pass_ != Pass::over; pass_ = Pass(int(pass_) + 1))
      if (!operation.edges(*this)) return false;
    death_.report();
    return true;
  }
  const messages::EdgeError& error() const { return error_; }
  std::uint64_t bytes() const { return sent_; }  // to all

  bool send(int partner, int tag, const PartnerData& data, int k) {
    if (pass_ == Pass::receive) return true;
    messages::Edge edge{partner, tag, {}};
    if (!describe(edge, data, k)) return false;
    const bool own = partners_.is_us(partner);
    if (pass_ == Pass::look) return !own || std::exchange(own_, edge).partner < 0;  // one edge at most
    sent_ += edge.data.bytes;
    if (edge.data.bytes && !own) death_.outlive([&] { messages::send_short(partners_, edge, error_); });
    return true;
  }
  bool receive(int partner, int tag, const PartnerData& data, int k) {
    if (pass_ == Pass::send) return true;
    messages::Edge edge{partner, tag, {}};
    if (!describe(edge, data, k)) return false;
    if (pass_ == Pass::look) return true;
    if (partners_.is_us(partner)) copy_own(edge);
    else if (edge.data.bytes) death_.outlive([&] { messages::receive_short(partners_, edge, error_); });
    return true;
  }

 private:
  enum class Pass { look, send, receive, over };

  bool describe(messages::Edge& edge, const PartnerData& data, int k) {
    const MPI_Count count = data.count(k);
    if (const MPI_Datatype type = data.type(k); !info_ || type != info_->handle) {
      info_ = find_type(type);
      if (!info_ || !info_->dense) return false;
    }
    void* const address = data.address(k);
    if (count < 0 || std::uint64_t(count) > limit_ || address == MPI_IN_PLACE) return false;
    edge.data = {static_cast<std::byte*>(address), std::uint64_t(count) * info_->bytes, {}};
    return edge.data.bytes <= limit_;
  }
  void copy_own(const messages::Edge& edge) {
    if (own_.partner < 0 || own_.tag != edge.tag) return;
    if (own_.data.bytes > edge.data.bytes)
      error_.note({messages::ErrorKind::truncated, edge.partner, own_.data.bytes, edge.data.bytes});
    if (const std::uint64_t bytes = std::min(own_.data.bytes, edge.data.bytes))
      std::memmove(edge.data.address, own_.data.address, bytes);
  }

  const messages::Partners partners_;
  const std::uint64_t limit_;  // bytes
  Pass pass_ = Pass::look;
  messages::Edge own_{-1, 0, {}};
  const TypeInfo* info_ = nullptr;  // of the last part
  std::uint64_t sent_ = 0;
  messages::EdgeError error_;
  messages::FirstDeath death_;
};

}  // namespace nearfield::mpi
