#include "mpi/shim/stand_in.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>

#include "engine/waiting/wait.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {
namespace {

std::atomic<std::uint32_t> lent{0};  // calls of the host that block now
std::atomic<bool> started{false};
std::mutex starting;

bool rank_is_back() { return lent.load(std::memory_order_relaxed) == 0; }  // ordered by the messenger's lock

void* stand_in(void*) {
  while (messages::Messenger* const messenger = the_messenger) {
    auto& word = messenger->summons();
    std::uint32_t rung = word.load(std::memory_order_acquire);  // pairs with Messenger::summon and lend
    // Awake for a while, then now and then: the host may block for long.
    for (int idle = 0; !rank_is_back(); ++idle) {
      rung = word.load(std::memory_order_acquire);  // or else one more ring would end every nap at once
      auto did = messenger->stand_in(rank_is_back);
      if (the_runner->poll()) did = messages::Messenger::Did::moved;
      else if (did == messages::Messenger::Did::nothing_to_do && the_runner->busy())
        did = messages::Messenger::Did::waits;
      if (did == messages::Messenger::Did::nothing_to_do) break;
      if (did == messages::Messenger::Did::moved) idle = 0;
      else if (idle < 200) sched_yield();
      else waiting::futex_wait(word, rung, idle < 2000 ? 20'000 : 500'000);
    }
    waiting::futex_wait(word, rung, 1'000'000'000);
  }
  return nullptr;
}

// False where no thread can be had: the call then blocks without a stand-in.
bool start() {
  if (started.load(std::memory_order_acquire)) [[likely]]
    return true;
  const std::lock_guard lock(starting);
  if (started.load(std::memory_order_relaxed)) return true;
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool good = pthread_create(&thread, nullptr, stand_in, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (good) pthread_detach(thread);
  started.store(good, std::memory_order_release);
  return good;
}

}  // namespace

bool StandIn::lend() {
  messages::Messenger* const messenger = the_messenger;
  if (!messenger || messenger->members() < 2 || !start()) return false;
  if (lent.fetch_add(1, std::memory_order_acq_rel) == 0) messenger->lend();
  if (messenger->node().progress.busy()) [[unlikely]] {
    messenger->summons().fetch_add(1, std::memory_order_release);  // pairs with stand_in
    waiting::futex_wake(messenger->summons());
  }
  return true;
}

void StandIn::take_back() {
  if (lent.fetch_sub(1, std::memory_order_acq_rel) == 1 && the_messenger) the_messenger->take_back();
}

}  // namespace nearfield::mpi
