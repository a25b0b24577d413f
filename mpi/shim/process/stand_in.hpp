// Around a call of the host that may block: a thread stands in for the rank meanwhile, so that messages of ours go on
// (engine/messages/stand_in.hpp, law 3 of docs/architecture.md). Whatever gives a call of the program to the host does
// it inside of one: here are those of messages and collectives, in blocking.hpp all others. They nest, and several
// threads may have one each: the rank is back when all have ended.
#pragma once
#include "engine/messages/helper.hpp"
#include "engine/messages/stand_in.hpp"
#include "mpi/shim/calls/called.hpp"
#include "mpi/shim/process/giving_way.hpp"

namespace nearfield::mpi {

// Made with the messenger; nullptr: the host carries all messages. Never destroyed, as the messenger.
extern messages::StandIn* the_stand_in;

// With NEARFIELD_PROGRESS=thread, from MPI_Init to the end of MPI_Finalize; else nullptr. Never destroyed.
extern messages::Helper* the_helper;

// Receives from anybody that wait for messages of ours or of the host's, in communicators that span nodes
// (p2p/any_source.hpp). While the rank is in the host nobody looks for them there, so they are posted there
// before.
extern std::atomic<int> any_source_requests;
void post_any_source();
bool look_for_any_source();  // whether the host has been asked for anything, and so has gone on

class StandInScope {
 public:
  // `meets_others`: false where no other rank is awaited, so that nobody needs us before the call is over.
  explicit StandInScope(bool moves_data = true, bool meets_others = true)
      : before_(inside->lent), in_host_(moves_data) {
    if (!meets_others) return;
    if (lend()) ++inside->lent;
    calls::note_host();
  }
  ~StandInScope() {
    for (; inside->lent > before_; --inside->lent) take_back();
  }
  StandInScope(const StandInScope&) = delete;

  // For a call that begins inside of another one of the host's (MPI_Finalize, which ends our part in a callback).
  static bool lend() {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      post_any_source();
    return the_stand_in && the_stand_in->lend();
  }
  static void take_back() { the_stand_in->take_back(); }

 private:
  const unsigned before_;
  const InHost in_host_;
};

}  // namespace nearfield::mpi
