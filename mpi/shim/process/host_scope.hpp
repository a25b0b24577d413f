// Scope of a call of the host that may block: the progress thread goes on with our messages meanwhile
// (engine/messages/progress_thread.hpp, law 3 of docs/dev/architecture.md). Every call of the program that goes to the
// host is inside one: messages and collectives use this scope, all others blocking.hpp. They nest, and several threads
// may have one each: the rank has left the host when all have ended.
#pragma once
#include "engine/messages/progress_thread.hpp"
#include "mpi/shim/calls/called.hpp"
#include "mpi/shim/process/yield_in_host.hpp"

namespace nearfield::mpi {

// Serves::in_host, or Serves::always with NEARFIELD_PROGRESS=thread; nullptr: the host serves all messages. Never
// destroyed, like the messenger.
inline constinit messages::ProgressThread* the_progress_thread = nullptr;

// Number of any-source receives under way in communicators that span nodes (p2p/any_source.hpp). They are posted at the
// host before the rank enters it, since it does not probe for them meanwhile.
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

  // For a call that begins inside another one of the host (MPI_Finalize, whose callback calls end_of_program()).
  static bool enter() {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      post_any_source();
    return the_progress_thread && the_progress_thread->enter_host();
  }
  static void leave() { the_progress_thread->leave_host(); }

 private:
  const unsigned before_;
  const InHost in_host_;
};

}  // namespace nearfield::mpi
