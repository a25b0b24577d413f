// Scope of a call of the host that may block. Meanwhile the progress thread progresses Nearfield's messages
// (engine/messages/progress_thread.hpp, law 3 of docs/dev/architecture.md). Every call of the program that may block in
// the host is inside such a scope: messages and collectives use this one, all others that of blocking.hpp. Scopes nest,
// and several threads may have one each; the rank has left the host when all of them have ended.
#pragma once
#include "engine/messages/progress_thread.hpp"
#include "mpi/shim/calls/called.hpp"
#include "mpi/shim/process/yield_in_host.hpp"

namespace nearfield::mpi {

// It serves while the rank is in the host (Serves::in_host), or always if NEARFIELD_PROGRESS=thread. nullptr: the host
// serves all messages. Like the messenger it is never destroyed.
inline constinit messages::ProgressThread* the_progress_thread = nullptr;

// Number of any-source receives under way in communicators that span nodes, and of tokens (p2p/any_source.hpp). The
// receives are posted at the host before the rank enters it, since meanwhile this rank cannot probe for their messages.
inline constinit std::atomic<int> any_source_requests{0};
void post_any_source();
bool look_for_any_source();  // returns whether the host has been called, and so has progressed

class HostScope {
 public:
  // `meets_others`: false if the call waits for no other rank, so that none needs us before it ends.
  explicit HostScope(bool moves_data = true, bool meets_others = true)
      : before_(inside->host_scopes), in_host_(moves_data) {
    if (!meets_others) return;
    if (enter()) ++inside->host_scopes;
    calls::note_host();
  }
  ~HostScope() {
    for (; inside->host_scopes > before_; --inside->host_scopes) leave();
  }
  HostScope(const HostScope&) = delete;

  // The same without a scope, for MPI_Finalize: the rank enters in end_of_program(), a callback of the host.
  static bool enter() {
    const bool entered = the_progress_thread && the_progress_thread->enter_host();
    // Receives that other threads begin from here on see that we are in the host. SYNC: any-source-requests
    if (any_source_requests.load(std::memory_order_seq_cst)) [[unlikely]]
      post_any_source();
    return entered;
  }
  static void leave() { the_progress_thread->leave_host(); }

 private:
  const unsigned before_;
  const InHost in_host_;
};

}  // namespace nearfield::mpi
