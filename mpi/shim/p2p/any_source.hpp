// Any-source receives and probes in communicators that span nodes: their message may come by us or by the host.
//
//   a call that blocks   polls both sides in turn
//   a request            is posted here. Probes of the host (MPI_Improbe) find messages from other nodes, which match
//                        the oldest receive that they fit; that receive leaves our matching in the same step
//   the host needs it    because the rank enters it, or because it gets a receive or a probe that could overtake the
//                        request: first all requests are posted there too, the oldest first. A message that comes here
//                        then must withdraw its receive there before it matches (AnySourceRequest::claim)
//
// The host does not cancel: on the MPICH family a receive that is cancelled while its message comes loses it (8 bytes
// over UCX, 1 MB over libfabric, where Intel MPI hangs and MPICH aborts). So we withdraw it by a *token*, a message to
// ourselves of no bytes and with the tag in question, which matches the oldest receive posted there that fits
// (engine/messages/elsewhere.cpp says what follows). No other message to ourselves goes by the host in such a
// communicator. Posting there is delayed as long as possible, also since MPICH over UCX loses any-source receives whose
// message has come already, or comes from both sides at once.
//
// A message longer than its receive is detected before the host receives it, so that we raise the error: the MPICH
// family calls the wrong error handler.
//
// Threads: the list of waiting requests has a lock. Matching is decided under the messenger's lock, which is taken
// inside of that one.
//
//   state       next        by
//   here        posted      post_there()
//               matched     look(), begin(): a probe of the host has found its message; done, if that is there at once
//               cancelled   cancel()
//   posted      cancelling  cancel()
//   posted,     here        resolve(): a token has come, which promises it to a message of this node; its communicator
//   cancelling              has been freed
//               done        resolve(): the host has received its message
//   cancelling  cancelled   resolve()
//   matched     done        completed(): the host has received it
//   done        here        completed(): what was longer than the buffer, as if it had come here
//
// What is here, posted or cancelling is complete when the messenger has completed it.
#pragma once
#include <atomic>

#include "mpi/shim/p2p/activity.hpp"

namespace nearfield::mpi {

// A probe of a host with a network takes 200 to 400 ns, a poll of our messages 10: with that many polls per probe its
// share is 25 ns at most.
inline constexpr unsigned looks_at_host = 16;

class AnySourceRequest final : public Activity, messages::Elsewhere {
 public:
  // `near`: our receive, not begun. The host receives into the same buffer.
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
  enum class Look : std::uint8_t { nothing, moved, through };  // through: it is matched
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
  // Under the messenger's lock until the host matches it, then its owner's.
  MPI_Request there_;    // posted, cancelling, matched
  bool orphan_ = false;  // its communicator has been freed
  bool listed_ = false;  // owner
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

// As MPI_Improbe and MPI_Iprobe of the host with any source; they receive tokens that they find.
int improbe_there(MPI_Comm comm, int rank, int tag, int* flag, MPI_Message* message, MPI_Status* status);
int iprobe_there(const Communicator& c, int tag, int* flag, MPI_Status* status);

// MPI_Recv with any source, into described data. Throws what waits throw.
int receive_from_anybody(const layout::Data& data, const Communicator& c, void* buffer, MPI_Count count,
                         MPI_Datatype type, int tag, MPI_Status* status);

// Probes with any source; calls alternate which side they poll first. near(): polls ours; there(flag): probes the host
// and returns an error code. `blocks`: until there is a message.
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
  int outcome() override { return code_; }
  void status(MPI_Status* status) const override;
  void abandon() override {}
  bool involves(int) const override { return false; }  // each half checks for itself

 private:
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
};

}  // namespace nearfield::mpi
