// Receives and probes from anybody in communicators that span nodes: what they wait for is ours or the host's.
//
//   a call that blocks   asks both sides in turn
//   a request            is posted here. Looks at the host (MPI_Improbe) find what comes from other nodes, which meets
//                        the oldest receive that it fits; that one is out of our matching then, in the same step
//   the host needs it    because the rank goes where nobody looks at the host, or because the host is given a receive
//                        or a probe that could overtake it: first it is posted there too, from the oldest on. What
//                        comes here then has to take it back there before it may have it (AnySourceRequest::claim)
//
// The host is not asked to cancel: a receive that is taken back while its message comes loses it on the MPICH family
// (8 bytes over UCX, 1 MB over libfabric, where Intel MPI hangs and MPICH aborts). So it is taken back by what is
// always right: a message to ourselves, a *token*, of no bytes and with the tag in question, which meets the oldest
// receive that is posted there and fits (engine/messages/elsewhere.cpp says what follows). Nobody else sends to itself
// by the host in such a communicator. Posting there is put off as long as can be, also since MPICH over UCX loses
// receives from anybody for which something has come already, or comes from both sides at once.
//
// What is longer than its receive is known before the host receives it, so that the error is ours: the MPICH family
// takes it to the wrong error handler.
//
// Threads: the list of those that wait has a lock. What both sides decide is decided under the messenger's, which is
// taken inside of that one.
#pragma once
#include <atomic>

#include "mpi/shim/p2p/activity.hpp"

namespace nearfield::mpi {

// A look at the host costs 200 to 400 ns where it has a network to ask, one at ours 10: so many of ours to one of it
// leave its share below 20 ns.
inline constexpr unsigned looks_at_host = 16;

class AnySourceRequest final : public Activity, messages::Elsewhere {
 public:
  // `near`: the receive as ours, not begun. What the host has goes into the same buffer.
  AnySourceRequest(std::unique_ptr<Message> near, void* buffer, MPI_Count count, MPI_Datatype type, int tag,
                   const Communicator& c);
  ~AnySourceRequest() override;
  int begin() override;
  bool completed() override;
  int outcome() override;
  void status(MPI_Status* status) const override;
  void cancel() override;
  void abandon() override;
  bool involves(int member) const override {
    return met_.load(std::memory_order_relaxed) == Met::no && near_->involves(member);
  }
  bool owed() const override { return false; }

 private:
  friend struct AnySourceRequests;
  friend void post_any_source();
  friend void post_any_source_before(const Communicator& c, int tag);
  friend void forget_any_source(MPI_Comm comm);
  enum class Met : std::uint8_t { no, there, proc_null };      // nowhere: cancelled
  enum class Look : std::uint8_t { nothing, moved, through };  // through: it is met
  Look look();                                                 // at the host, for it and for those before it
  void post_there();
  void orphan(MPI_Comm comm);
  void leave();
  Claim claim(int tag, messages::Tokens*& asked) override;
  Claim resolve();
  void take(MPI_Message message, const MPI_Status& status);
  void hand_over();
  bool waits_here() const {
    return met_.load(std::memory_order_relaxed) == Met::no && near_->request.posted && !near_->request.promised &&
           there_ == host.request_null;
  }
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
  // Under the messenger's lock until it is met there, then its owner's.
  MPI_Request there_;
  bool cancelling_ = false, orphan_ = false;
  bool done_ = false;    // met there, and complete
  bool listed_ = false;  // its owner's
  unsigned looks_ = 0;
  std::unique_ptr<std::byte[]> longer_;  // what is longer than our data, as it comes there
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  std::atomic<Met> met_{Met::no};  // set last; pairs with completed()
};

// Before the host is given a receive or a probe of that communicator.
void post_any_source_before(const Communicator& c, int tag);
inline void before_host_receives(const Communicator* c, int tag) {
  if (any_source_requests.load(std::memory_order_relaxed) && c) [[unlikely]]
    post_any_source_before(*c, tag);
}

// As MPI_Improbe and MPI_Iprobe from anybody, at the host; tokens are taken out of the way.
int improbe_there(MPI_Comm comm, int rank, int tag, int* flag, MPI_Message* message, MPI_Status* status);
int iprobe_there(const Communicator& c, int tag, int* flag, MPI_Status* status);

// MPI_Recv, into data that we can describe. Throws what waits throw.
int receive_from_anybody(const layout::Data& data, const Communicator& c, void* buffer, MPI_Count count,
                         MPI_Datatype type, int tag, MPI_Status* status);

// Whether there is a message from anybody, for which a call looks first at one side and the next at the other.
// near(): ours; there(flag): the host's, an error code. MPI_Iprobe and MPI_Improbe, until there is one if it blocks.
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
      [](int) { return true; },
      [&] {
        if (found == FoundAt::none && code == MPI_SUCCESS) look_there();
      },
      "probing");
  return code;
}

// Both halves of a combined send and receive, each as a request of its own.
class SendReceive final : public Activity {
 public:
  MPI_Request half[2];          // of the receive, of the send
  std::vector<std::byte> sent;  // a copy of what is sent, where that is replaced
  int begin() override { return MPI_SUCCESS; }
  bool completed() override;
  int outcome() override { return code_; }
  void status(MPI_Status* status) const override;
  void abandon() override {}
  bool involves(int) const override { return false; }  // each half looks for itself

 private:
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
};

}  // namespace nearfield::mpi
