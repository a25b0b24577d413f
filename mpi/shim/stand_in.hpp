// Law 4: both sides progress. While a call of the host blocks, messages of ours may need this rank: a peer's rendezvous
// waits for the receive that was posted here, and the host may in turn wait for that peer. So when a blocking call goes
// to the host and something of ours is under way, a thread stands in for the rank until the call returns.
//
// The thread is started at the first such call; programs that never make one do not have it. From then on the
// messenger takes its lock in every call.
#pragma once

namespace nearfield::mpi {

class StandIn {
 public:
  StandIn() : lent_(lend()) {}
  ~StandIn() {
    if (lent_) take_back();
  }
  StandIn(const StandIn&) = delete;

 private:
  static bool lend();
  static void take_back();
  bool lent_;
};

}  // namespace nearfield::mpi
