// The Work (../task.hpp) of a call that a team serves and that returns before it is complete: a non-blocking call in a
// further context (engine/context/pool.hpp), or a persistent one in a context of its own. As for blocking calls, all
// ranks decide alike who serves a call (route.hpp).
//
//   at_rest --post--> issued ------------------------------------> complete: its body (a fiber) has ended
//      \--post--> queued --the team has been created--> issued
//                    \------no team can be created--> at_host ---> complete: the host's request is
//                     \-----revoked, no memory, empty--> ended ---> complete
//
// Calls may outlive their communicator: the team is closed when the last of its calls is complete.
#pragma once
#include <atomic>
#include <functional>
#include <memory>

#include "engine/choosing/queued_call.hpp"
#include "mpi/shim/collectives/task.hpp"
#include "mpi/shim/communicators/async_creation.hpp"

namespace nearfield::mpi {

class TeamWork final : AsyncCreation::Deferred {
 public:
  using HostCall = std::function<int(MPI_Request*)>;
  struct Plan {
    choosing::Chooser::Rows rows;
    context::TaskQueue& queue;
  };

  // The next call on the communicator. `host_call`: given if the team is still being created, in case none can be.
  TeamWork(Communicator& c, const char* function, const collectives::Call& call,
           std::unique_ptr<StagingBuffers> buffers, HostCall host_call = {});
  TeamWork(Communicator& c, const char* function, const collectives::Call& call,
           std::unique_ptr<StagingBuffers> buffers, const Plan& plan);
  ~TeamWork();

  int post();
  void progress();
  bool complete() const;
  int finalize();
  void abandon() {}  // the call goes on, and the program may wait for it again
  bool goes_on_without(int) { return false; }
  // A body looks for dead members itself.
  bool involves(int member) const { return state() == State::queued && creation_->involves(member); }
  bool stays() const { return state() == State::issued && !call_.complete(); }

 private:
  enum class State : std::uint8_t { at_rest, queued, issued, at_host, ended };
  State state() const { return state_.load(std::memory_order_acquire); }  // SYNC: task-state
  void join(team::Team& team);
  int issue();
  void go(team::Team* team) override;

  Communicator& c_;  // valid while the call is queued, and from join() on, which keeps it for us
  const char* const function_;
  choosing::QueuedCall call_;
  std::unique_ptr<StagingBuffers> buffers_;
  context::TaskQueue* const own_queue_ = nullptr;  // of a persistent call
  team::Team* team_ = nullptr;
  std::atomic<State> state_{State::at_rest};
  int code_ = MPI_SUCCESS;
  bool fetched_ = false;  // whether `buffers_` hold what this rank sends
  // Only of a call that is or was queued.
  std::shared_ptr<AsyncCreation> creation_;
  const bool empty_ = false;  // the call moves nothing
  HostCall host_call_;
  MPI_Request at_host_ = host.request_null;
};

}  // namespace nearfield::mpi
