// What a team does of a call that returns before it is done (../task.hpp): the next call of its communicator, in a
// further context (engine/context/pool.hpp); or a planned one, in a context of its own, by each start. Who carries a
// call is decided as for blocking calls, equally on all ranks.
//
//   at_rest --post--> issued ----------------------------------------> complete: the body has ended
//      \--post--> queued --its communicator has its team--> issued
//                    \------there will be none--> at_host -----------> complete: the host's request is
//                     \-----revoked, or no memory--> failed ---------> complete
//
// Calls outlive their communicator as requests do elsewhere: its team is closed when the last has gone.
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

  // The next call of the communicator. `host_call`: of one that is yet to have its team.
  TeamWork(Communicator& c, const char* function, const collectives::Call& call,
           std::unique_ptr<StagingBuffers> buffers, HostCall host_call = {});
  TeamWork(Communicator& c, const char* function, const collectives::Call& call,
           std::unique_ptr<StagingBuffers> buffers, const Plan& plan);
  ~TeamWork();

  int post();
  void progress();
  bool complete() const;
  int finalize();
  void abandon() {}  // goes on, and may be waited for again
  // A body looks for dead members itself.
  bool involves(int member) const { return state() == State::queued && creation_->involves(member); }
  bool stays() const { return state() == State::issued && !call_.complete(); }

 private:
  enum class State : std::uint8_t { at_rest, queued, issued, at_host, failed };
  State state() const { return state_.load(std::memory_order_acquire); }  // SYNC: task-state
  void join(team::Team& team);
  int issue();
  void go(team::Team* team) override;

  Communicator& c_;  // as long as we are queued, or a user of its team
  const char* const function_;
  choosing::QueuedCall call_;
  std::unique_ptr<StagingBuffers> buffers_;
  context::TaskQueue* const own_queue_ = nullptr;  // of one that is planned
  team::Team* team_ = nullptr;
  std::atomic<State> state_{State::at_rest};
  int code_ = MPI_SUCCESS;
  // Of one that is or was queued.
  std::shared_ptr<AsyncCreation> creation_;
  HostCall host_call_;
  MPI_Request at_host_ = host.request_null;
};

}  // namespace nearfield::mpi
