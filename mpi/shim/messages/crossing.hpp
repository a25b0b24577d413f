// Receives and probes from anybody in communicators that span nodes: what they wait for is ours or the host's.
//
// A call that blocks asks both sides in turn. A request is posted on both; what meets it here first takes it back there
// (MPI_Cancel, which is local), what meets it there takes it out here (engine/messages/elsewhere.cpp). So later
// receives need not be held back: each side has its own order, and messages from one sender go by one side only.
//
// Of one thread at a time, as all requests; what both sides decide, under the messenger's lock.
#pragma once
#include "mpi/shim/messages/activity.hpp"

namespace nearfield::mpi {

// A look at the host costs 200 to 400 ns where it has a network to ask, one at ours 10: so many of ours to one of it
// leave its share below 20 ns.
inline constexpr unsigned looks_at_host = 16;

class Crossing final : public Activity, messages::Elsewhere {
 public:
  // `near`: the receive as ours, not begun. The host's goes into the same buffer.
  Crossing(std::unique_ptr<Message> near, void* buffer, MPI_Count count, MPI_Datatype type, int tag, MPI_Comm comm);
  ~Crossing() override;
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
  enum class Met : std::uint8_t { no, there, nowhere };  // nowhere: cancelled
  void posted() override;
  Claim claim() override;
  Claim look();  // under the messenger's lock
  const std::unique_ptr<Message> near_;
  void* const buffer_;
  const MPI_Count count_;
  std::optional<Committed> kept_;
  const MPI_Datatype type_;
  const int tag_;
  const MPI_Comm comm_;
  MPI_Request there_;  // under the lock
  bool taking_back_ = false, wants_cancel_ = false;
  std::atomic<Met> met_{Met::no};  // set last; pairs with completed()
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  unsigned looks_ = 0;
};

// MPI_Recv, into data that we can describe. Throws what waits throw.
int receive_from_anybody(const layout::Data& data, const Communicator& c, void* buffer, MPI_Count count,
                         MPI_Datatype type, int tag, MPI_Status* status);

// Whether there is a message from anybody, for which a call looks first at one side and the next at the other.
// near(): ours; there(flag): the host's, an error code. MPI_Iprobe and MPI_Improbe, until there is one if it blocks.
enum class Found : std::uint8_t { none, near, there };
template <class Near, class There>
int probe_for_anybody(bool blocks, Found& found, Near near, There there) {
  static thread_local bool there_first;
  int code = MPI_SUCCESS;
  found = Found::none;
  auto look_there = [&] {
    int flag = 0;
    code = there(&flag);
    if (flag) found = Found::there;
    return flag || code != MPI_SUCCESS;
  };
  auto look_near = [&] {
    if (!near()) return false;
    found = Found::near;
    return true;
  };
  there_first = !there_first;
  if ((there_first && look_there()) || look_near() || (!there_first && look_there()) || !blocks) return code;
  unsigned looks = 0;
  the_messenger->wait_until(
      [&] {
        return found != Found::none || code != MPI_SUCCESS || look_near() ||
               (++looks % looks_at_host == 0 && look_there());
      },
      [](int) { return true; },
      [&] {
        if (found == Found::none && code == MPI_SUCCESS) look_there();
      },
      "probing");
  return code;
}

// Both halves of a combined send and receive, each as a request of its own.
class Combined final : public Activity {
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
