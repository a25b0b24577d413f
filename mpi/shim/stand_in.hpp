// While a call of the host blocks, messages of ours may need this rank: a peer may have run out of room for what it
// sends, or wait for a receive that was posted here, and the host may in turn wait for that peer. So a thread stands in
// for the rank until the call returns.
//
//   rank                                      stand-in                          peer
//   lends itself: says where it can be rung   sleeps
//   calls the host                            takes in what has come, under     is blocked on the rank: rings
//     (something of ours under way: rings)    the messenger's lock, until
//   is back: takes the lock once              nothing moves; sleeps again
//
// The thread is started at the first such call; programs that never make one do not have it. It costs a rank nothing
// while nobody rings: the messenger takes its lock only while the rank is lent.
#pragma once

namespace nearfield::mpi {

class StandIn {
 public:
  StandIn() : lent_(lend()) {}
  ~StandIn() {
    if (lent_) take_back();
  }
  StandIn(const StandIn&) = delete;

  // For a call that begins inside of another one of the host's (MPI_Finalize, which ends our part in a callback).
  static bool lend();
  static void take_back();

 private:
  bool lent_;
};

}  // namespace nearfield::mpi
