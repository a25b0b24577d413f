// Around a call of the host that may block: a thread stands in for the rank meanwhile, so that messages of ours go on
// (engine/messages/stand_in.hpp, law 3 of docs/architecture.md). Whatever gives a call of the program to the host does
// it inside of one: here are those of messages and collectives, in blocking.hpp all others. They nest, and several
// threads may have one each: the rank is back when all have ended.
#pragma once
#include "engine/messages/stand_in.hpp"

namespace nearfield::mpi {

// Made with the messenger; nullptr: the host carries all messages. Never destroyed, as the messenger.
extern messages::StandIn* the_stand_in;

class StandIn {
 public:
  StandIn() : lent_(lend()) {}
  ~StandIn() {
    if (lent_) take_back();
  }
  StandIn(const StandIn&) = delete;

  // For a call that begins inside of another one of the host's (MPI_Finalize, which ends our part in a callback).
  static bool lend() { return the_stand_in && the_stand_in->lend(); }
  static void take_back() { the_stand_in->take_back(); }

 private:
  bool lent_;
};

}  // namespace nearfield::mpi
