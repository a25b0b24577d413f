// Any-source receives and probes in communicators that span nodes: Nearfield or the host may carry their message.
// "Here" means in Nearfield, "there" at the host.
//
//   a call that blocks   polls both sides in turn
//   a request            is posted here. Probes of the host (MPI_Improbe) find messages from other nodes, which match
//                        the oldest receive that they fit; that receive leaves the matching here in the same step
//   the rank enters      all requests are posted there too, the oldest first. The same is done before the host gets a
//   the host             receive or a probe that could overtake a request. From then on a message that comes here must
//                        withdraw its receive there before it matches (AnySourceRequest::claim)
//
// We do not withdraw a receive by MPI_Cancel of the host: if the receive's message comes at that moment, hosts of the
// MPICH family lose the message (8 bytes over UCX, 1 MB over libfabric, where Intel MPI hangs and MPICH aborts). We use
// a *token* instead: an empty message to ourselves with the tag of the message that has come here. It matches the
// oldest receive posted there that fits (engine/messages/elsewhere.cpp says what follows). No other message to
// ourselves goes by the host in such a communicator. Receives are posted there as late as possible, also since MPICH
// over UCX loses any-source receives whose message has come already, or comes from both sides at once.
//
// A message longer than its receive is detected before the host receives it, so that we raise the error: the MPICH
// family calls the wrong error handler.
//
// Threads: the list of waiting requests has a lock. Matching is decided under the messenger's lock, which is taken
// while the lock of the list is held.
//
//   state       next        by
//   here        posted      post_there()
//               matched     look(), begin(): a probe of the host has found its message; done, if it is received at once
//               cancelled   cancel()
//   posted      cancelling  cancel()
//   posted,     here        resolve(): a token has come, which promises the receive to a message of this node; claim():
//   cancelling              its communicator has been freed
//               done        resolve(): the host has received its message
//   cancelling  cancelled   resolve()
//   matched     done        completed(): the host has received it
//   done        here        completed(): the message was longer than the buffer; handled as if it had come here
//
// In the states here, posted and cancelling a request is complete when the messenger has completed it.
#pragma once
#include <atomic>

#include "mpi/shim/p2p/activity.hpp"

namespace nearfield::mpi {

// Polls of our messages per probe of the host. With a network a probe takes 200 to 400 ns, a poll 10: probes add 25 ns.
inline constexpr unsigned looks_at_host = 16;

class AnySourceRequest final : public Activity, messages::Elsewhere {
 public:
  // `near`: the receive to be posted here, which has not begun. The other arguments are those of the receive there.
  AnySourceRequest(std::unique_ptr<Message> near, void* buffer, MPI_Count count, MPI_Datatype type, int tag,
                   const Communicator& c);
  ~AnySourceRequest() override;
  int begin() override;
  bool completed() override;
  int outcome() override;
  void status(MPI_Status* status) const override;
  void cancel() override;
  void abandon() override;
  bool involves(int member) const override { return waits() && near_->involves(member); }
  bool from_anybody() const override { return true; }
  bool owed() const override { return false; }

 private:
  friend struct AnySourceRequests;
  friend void post_any_source();
  friend void post_any_source_before(const Communicator& c, int tag);
  friend void forget_any_source(MPI_Comm comm);
  enum class State : std::uint8_t { here, posted, cancelling, matched, done, cancelled };
  enum class Look : std::uint8_t { nothing, moved, through };  // moved: a message was found; through: it has one
  Look look();                                                 // probes the host for this request and those before it
  void post_there();
  void leave();
  Claim claim(int tag, messages::Tokens*& asked) override;
  Claim resolve();
  void take(MPI_Message message, const MPI_Status& status);
  void hand_over();
  State state() const { return state_.load(std::memory_order_relaxed); }
  bool waits() const { return state() <= State::cancelling; }
  bool waits_here() const { return state() == State::here && near_->request.posted && !near_->request.promised; }
  bool overlaps(MPI_Comm comm, int tag) const {
    return comm_ == comm && !orphan_ && (tag_ == MPI_ANY_TAG || tag == MPI_ANY_TAG || tag_ == tag);
  }

  const std::unique_ptr<Message> near_;
  void* const buffer_;
  const MPI_Count count_;
  std::optional<Committed> kept_;
  const MPI_Datatype type_;
  const int tag_, rank_;
  const MPI_Comm comm_;
  // Guarded by the messenger's lock until the host matches the request; then only its owner uses them.
  MPI_Request there_;    // in the states posted, cancelling and matched
  bool orphan_ = false;  // its communicator has been freed
  bool listed_ = false;  // in the list of waiting requests; only its owner uses this
  unsigned looks_ = 0;
  std::unique_ptr<std::byte[]> longer_;  // room for a message that is longer than the buffer
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  std::atomic<State> state_{State::here};  // set last, publishes the fields above
};

// Called before the host gets a receive or a probe of that communicator.
void post_any_source_before(const Communicator& c, int tag);
inline void before_host_receives(const Communicator* c, int tag) {
  if (any_source_requests.load(std::memory_order_relaxed) && c) [[unlikely]]
    post_any_source_before(*c, tag);
}

// Like MPI_Improbe and MPI_Iprobe of the host with any source, but a token that they find is received and not returned.
int improbe_there(MPI_Comm comm, int rank, int tag, int* flag, MPI_Message* message, MPI_Status* status);
int iprobe_there(const Communicator& c, int tag, int* flag, MPI_Status* status);

// MPI_Recv with any source. pre: the layout of the data is described. Throws team::Broken as waits do.
int receive_from_anybody(const layout::Data& data, const Communicator& c, void* buffer, MPI_Count count,
                         MPI_Datatype type, int tag, MPI_Status* status);

// Probes with any source; successive calls alternate which side they poll first. near() polls our messages; there(flag)
// probes the host and returns an error code. `blocks`: waits until there is a message.
enum class FoundAt : std::uint8_t { none, near, there };
extern const PerThread<bool> probe_there_first;
template <class Near, class There>
int probe_for_anybody(const Communicator& c, bool blocks, FoundAt& found, Near near, There there) {
  bool& there_first = *probe_there_first;
  int code = MPI_SUCCESS;
  found = FoundAt::none;
  auto look_there = [&] {
    int flag = 0;
    code = there(&flag);
    if (flag) found = FoundAt::there;
    return flag || code != MPI_SUCCESS;
  };
  auto look_near = [&] {
    if (!near()) return false;
    found = FoundAt::near;
    return true;
  };
  there_first = !there_first;
  if ((there_first && look_there()) || look_near() || (!there_first && look_there()) || !blocks) return code;
  unsigned looks = 0;
  the_messenger->wait_until(
      [&] {
        if (found != FoundAt::none || code != MPI_SUCCESS || look_near()) return true;
        if (revoked(c.comm)) throw team::Revoked("the communicator was revoked");
        return ++looks % looks_at_host == 0 && look_there();
      },
      [&](int member) { return may_come_from(c, member); },
      [&] {
        if (found == FoundAt::none && code == MPI_SUCCESS) look_there();
      },
      "probing");
  return code;
}

// A combined send and receive as two requests.
class SendReceive final : public Activity {
 public:
  MPI_Request half[2];          // the receive, the send
  std::vector<std::byte> sent;  // copy of the sent data of MPI_Isendrecv_replace
  int begin() override { return MPI_SUCCESS; }
  bool completed() override;
  int outcome() override;
  void status(MPI_Status* status) const override;
  void abandon() override {}
  bool involves(int) const override { return false; }  // each half checks for itself

 private:
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
};

}  // namespace nearfield::mpi
