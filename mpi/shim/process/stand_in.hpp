// Scope of a call of the host that may block: a progress thread stands in for the rank, so that our messages progress
// (engine/messages/stand_in.hpp, law 3 of docs/architecture.md). Every call of the program that goes to the host is
// inside one: messages and collectives use this scope, all others blocking.hpp. They nest, and several threads may have
// one each: the rank has left the host when all have ended.
#pragma once
#include "engine/messages/helper.hpp"
#include "engine/messages/stand_in.hpp"
#include "mpi/shim/calls/called.hpp"
#include "mpi/shim/process/giving_way.hpp"
#include "mpi/shim/process/globals.hpp"

namespace nearfield::mpi {

// Made with the messenger; nullptr: the host serves all messages. Never destroyed, like the messenger.
inline constexpr messages::StandIn*& the_stand_in = shim.stand_in;

// With NEARFIELD_PROGRESS=thread, from MPI_Init to the end of MPI_Finalize; otherwise nullptr. Never destroyed.
inline constexpr messages::Helper*& the_helper = shim.helper;

// Number of any-source receives under way in communicators that span nodes (p2p/any_source.hpp). They are posted at the
// host before the rank enters it, since it does not probe for them meanwhile.
inline constexpr std::atomic<int>& any_source_requests = shim.any_source_count;
void post_any_source();
bool look_for_any_source();  // returns whether the host has been called, and so has progressed

class StandInScope {
 public:
  // `meets_others`: false if the call waits for no other rank, so that none needs us before it ends.
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

  // For a call that begins inside another one of the host (MPI_Finalize, whose callback calls end_of_program()).
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
