// Creates the team of a communicator while the program goes on, if its first collective call is non-blocking.
//
//   the first such call    sends our Hello to the other members as messages, and is queued, as are later calls
//   a lane of the runner   when all Hellos have come: joins the team, and sends whether it could
//                          when all answers have come: the communicator has a team, or never will have one
//   afterwards             queued calls are issued in order, to the team or to the host; then it is *settled*
//   blocking calls         wait until it is settled
//
// All members make the same calls in the same order, so if one begins to create a team all do. They are members of the
// messenger, so they share a node. The host serves the first non-blocking calls of all other communicators: to create a
// team for them we would need collectives of the host, and would have to wait for these to keep the order of calls.
//
// Threads: any thread runs the lane, under the runner's lock; the queue has a lock of its own. `settled` publishes the
// team to all threads.
#pragma once
#include <atomic>
#include <list>
#include <memory>
#include <mutex>

#include "engine/messages/edges.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

class AsyncCreation final : fibers::Lane {
 public:
  // A call that waits for the team. go(team) is called once, when the creation is settled, and issues the call: to the
  // team, or to the host if `team` is nullptr. It must not throw.
  struct Deferred {
    virtual void go(team::Team* team) = 0;
    std::list<Deferred*> place;  // one element, made before the call is queued, so that queuing needs no memory

   protected:
    ~Deferred() = default;
  };

  // Local. Called in the communicator's first collective call if that is non-blocking. pre: messages reach all its
  // ranks. If memory is short, it sends the others a refusal.
  static void begin(Communicator& state);
  ~AsyncCreation();
  static bool any() { return begun_.load(std::memory_order_relaxed) != 0; }
  bool settled() const { return settled_.load(std::memory_order_acquire); }  // SYNC: creation-settled
  // Queues a call. False: the creation is settled, and the caller issues the call itself.
  bool defer(Deferred& call);
  void forget(Deferred& call);
  // pre: a deferred call has been issued. Returns when the thread that issues deferred calls has issued all of them.
  void let_all_go() { const std::lock_guard lock(queue_lock_); }
  // Waits until it is settled. False: a member has died, so it never will be.
  bool wait();
  // Returns whether that member of the messenger is a member of the communicator.
  bool involves(int member) const;

 private:
  explicit AsyncCreation(Communicator& state);
  // State that is needed until it is settled.
  struct Work;
  void run() override;
  void afterwards() override;
  messages::ErrorKind exchange(messages::Edges& edges);

  static inline constinit std::atomic<int> begun_{0};  // number of creations that are not settled
  Communicator& state_;
  std::unique_ptr<Work> work_;
  std::atomic<bool> settled_{false};
  std::recursive_mutex queue_lock_;  // an error handler may make further calls
  std::list<Deferred*> deferred_;
};

// Frees communicators that the program has freed before their team was created.
void free_created();
inline bool is_being_created(const Communicator& state) {
  return state.async_creation && !state.async_creation->settled();
}

}  // namespace nearfield::mpi
