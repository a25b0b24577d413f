// A team for a communicator whose first collective call must not wait: it is created while the program goes on.
//
//   the first such call    tells the others our Hello by messages, and is put into a queue, as are those that follow
//   a lane of the runner   when all have told: joins, and tells whether it could
//                          when all have told that: the communicator has a team, or has none
//   afterwards             the queue is issued in its order, to the team or to the host: settled
//   calls that may wait    wait until then
//
// All members make the same calls in the same order, so all of them found a team where one does. They share a node and
// have met, as members of the messenger: others are the host's, since by it nobody could found anything without waiting
// in between, or its own collectives would lose their order.
//
// Threads: the lane is whoever's runs it, under the runner's lock; the queue has a lock of its own. `settled` publishes
// the team to all.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "engine/messages/edges.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

class AsyncCreation final : fibers::Lane {
 public:
  // A call that waits for the team. Goes once; nullptr: the host has to take it. Throws nothing.
  struct Deferred {
    virtual void go(team::Team* team) = 0;
    Deferred* next = nullptr;

   protected:
    ~Deferred() = default;
  };

  // Local, in the communicator's first collective call, where that may not wait and creates(). Without memory for it
  // the others are told so.
  static void begin(Communicator& state);
  ~AsyncCreation();
  static bool any() { return under_way_.load(std::memory_order_relaxed) != 0; }
  bool settled() const { return settled_.load(std::memory_order_acquire); }  // pairs with settle
  // False: it is settled, and the call is the caller's to make.
  bool defer(Deferred& call);
  void forget(Deferred& call);
  // pre: a deferred call has gone. Until all have, if another thread is at it.
  void let_all_go() { const std::lock_guard lock(queue_lock_); }
  // Until it is settled. False: a member has died, and it never will be.
  bool wait();
  // Whether that member of the messenger is one of its members.
  bool involves(int member) const;

 private:
  explicit AsyncCreation(Communicator& state);
  // What is needed until it is settled.
  struct Work;
  void run() override;
  void afterwards() override;
  bool exchange(messages::Edges& edges);

  Communicator& state_;
  std::unique_ptr<Work> work_;
  std::atomic<bool> settled_{false};
  static inline std::atomic<int> under_way_{0};
  std::recursive_mutex queue_lock_;  // an error handler may make further calls
  Deferred *first_ = nullptr, *last_ = nullptr;
};

// Whether a team of its members can be created so; the same on all of them.
bool creates(const Communicator& state);
// Lets those communicators go that the program has freed before their team was created.
void free_created();
// Whether one is being created.
inline bool is_being_created(const Communicator& state) {
  return state.async_creation && !state.async_creation->settled();
}
// The communicator's state, where a collective that must not wait is ours: it has a team, or will have one.
Communicator* created(MPI_Comm comm);

}  // namespace nearfield::mpi
