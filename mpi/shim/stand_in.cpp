#include "mpi/shim/stand_in.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>

#include "engine/waiting/wait.hpp"
#include "mpi/shim/communicator.hpp"

namespace nearfield::mpi {
namespace {

std::atomic<std::uint32_t> lent{0};  // calls of the host that block now; also the futex word of the thread
std::atomic<bool> started{false};
std::mutex starting;

void* stand_in(void*) {
  for (;;) {
    if (lent.load(std::memory_order_acquire) == 0) {  // pairs with lend
      waiting::futex_wait(lent, 0, 1'000'000'000);
      continue;
    }
    messages::Messenger* const messenger = the_messenger;
    if (!messenger) return nullptr;
    // Awake for a while, then now and then: the host may block for long.
    for (int round = 0; lent.load(std::memory_order_relaxed); ++round) {
      try {
        messenger->poll();
      } catch (const team::Broken&) {  // the rank itself meets it when it comes back
      }
      if (round < 200) {
        sched_yield();
        continue;
      }
      const timespec pause{0, round < 2000 ? 20'000 : 500'000};
      nanosleep(&pause, nullptr);
    }
  }
}

// False where no thread can be had: the call then blocks without a stand-in.
bool start() {
  if (started.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(starting);
  if (started.load(std::memory_order_relaxed)) return true;
  the_messenger->set_threaded(true);
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
  if (!the_messenger || !the_messenger->busy() || !start()) return false;
  if (lent.fetch_add(1, std::memory_order_release) == 0) waiting::futex_wake(lent);  // pairs with stand_in
  return true;
}

void StandIn::take_back() { lent.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace nearfield::mpi
