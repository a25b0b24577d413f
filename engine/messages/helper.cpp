#include "engine/messages/helper.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "engine/base/yield.hpp"
#include "engine/messages/own_thread.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::messages {
namespace {

// How it looks while something is under way: so many looks after the last one that moved anything, each after some
// pauses, then naps that become twice as long each time (ns). On a CPU that a rank computes on, both are of its time.
struct LookIntervals {
  unsigned awake, pauses;
  bool yields;  // its CPU may be needed by other helpers; a rank would keep it for milliseconds
  std::uint64_t first_nap, longest_nap;
};
constexpr LookIntervals often{100, 40, true, 20'000, 500'000}, seldom{16, 20, false, 200'000, 2'000'000};

constexpr unsigned looks_for_more = 4;              // after the last operation has ended
constexpr std::uint64_t unnoticed = 200'000;        // ns; naps that are not ended by who begins something
constexpr std::uint64_t longest = 1'000'000'000;    // of its sleeps
constexpr std::uint64_t cpu_known = 1'000'000'000;  // for so long: ranks may be bound anew
constexpr unsigned long timer_slack = 5'000;

}  // namespace

Helper::Helper(team::Process& process, Messenger* messenger, std::vector<pid_t> ranks, Atomic<std::uint32_t>& word)
    : process_(process),
      progress_(process.progress()),
      messenger_(messenger),
      ranks_(std::move(ranks)),
      cpus_of_ranks_(ranks_.size()),
      granted_(machine::granted_cpus()),
      near_(machine::cache_neighbors(process.cpus())),
      pid_(getpid()),
      word_(word),
      sleeps_on_(&word) {}

Helper* Helper::start(team::Process& process, Messenger* messenger, std::vector<pid_t> ranks) {
  const auto offset = process.arena().allocate_zeroed(team::line, team::line);
  if (!offset) return nullptr;
  auto* const word = new (process.segment().base() + *offset) Atomic<std::uint32_t>(0);
  auto* const helper = new Helper(process, messenger, std::move(ranks), *word);
  if (!start_own_thread<&Helper::run>(helper->thread_, helper)) {
    delete helper;
    process.arena().free(*offset);
    return nullptr;
  }
  process.progress().set_assistant(helper);
  return helper;
}

void Helper::stop() {
  if (getpid() != pid_) return;                     // of a fork, which has no such thread
  stopped_.store(true, std::memory_order_seq_cst);  // SYNC: helper-stopped
  asleep_.store(true, std::memory_order_seq_cst);   // SYNC: helper-asleep
  wake();
  pthread_join(thread_, nullptr);
}

void Helper::wake() {
  if (!asleep_.exchange(false, std::memory_order_seq_cst)) return;  // SYNC: helper-asleep
  auto& word = *sleeps_on_.load(std::memory_order_acquire);         // SYNC: helper-sleeps-on
  word.fetch_add(1, std::memory_order_release);                     // SYNC: wake-word
  waiting::futex_wake(word);
}

// Peers that have no room for what they send us ring where it sleeps; the wait has told them another place.
void Helper::wait_ends() {
  if (!asleep_.load(std::memory_order_seq_cst)) return;  // SYNC: helper-asleep
  if (progress_.busy()) wake();
  else progress_.asleep_on(sleeps_on_.load(std::memory_order_acquire));  // SYNC: helper-sleeps-on
}

// Who waits may have to share its CPU with ranks that compute; on a free one the work is done sooner.
bool Helper::dispensable() const { return !on_free_cpu_ && progress_.attended(); }

bool Helper::step() {
  const bool moved = process_.runner().poll();
  return (messenger_ && messenger_->help()) || moved;
}

// After it has told where it sleeps: whether it need not sleep.
bool Helper::look_once_more() {
  return stopped_.load(std::memory_order_seq_cst) || (!dispensable() && step());
}  // SYNC: helper-stopped

// While something is under way; whether anything moved or began. Whoever sends to us or does what we await rings.
bool Helper::nap(std::uint64_t nanoseconds) {
  auto& word = messenger_ ? messenger_->begin_nap() : word_;
  const std::uint32_t seen = word.load(std::memory_order_acquire);  // SYNC: wake-word
  sleeps_on_.store(&word, std::memory_order_release);               // SYNC: helper-sleeps-on
  const bool noticed = nanoseconds > unnoticed;
  if (noticed) asleep_.store(true, std::memory_order_seq_cst);  // SYNC: helper-asleep
  if (!progress_.attended()) progress_.asleep_on(&word);
  const bool moved = look_once_more();
  if (!moved && !progress_.attended()) waiting::futex_wait(word, seen, nanoseconds);
  if (!progress_.attended()) progress_.asleep_on(nullptr);
  const bool woken = noticed && !asleep_.exchange(false, std::memory_order_seq_cst);  // SYNC: helper-asleep
  if (messenger_) messenger_->end_nap();
  return moved || woken;
}

// Nothing is under way, or a thread of the program keeps it going. Whether that may have changed.
bool Helper::sleep() {
  const std::uint32_t seen = word_.load(std::memory_order_acquire);  // SYNC: wake-word
  sleeps_on_.store(&word_, std::memory_order_release);               // SYNC: helper-sleeps-on
  asleep_.store(true, std::memory_order_seq_cst);                    // SYNC: helper-asleep
  if (!progress_.attended()) progress_.asleep_on(&word_);
  const bool moved = look_once_more();
  const bool needed = !dispensable() && progress_.busy();
  if (!moved && !needed) waiting::futex_wait(word_, seen, longest);
  if (!progress_.attended()) progress_.asleep_on(nullptr);
  const bool woken = !asleep_.exchange(false, std::memory_order_seq_cst);  // SYNC: helper-asleep
  return moved || needed || woken || word_.load(std::memory_order_relaxed) != seen;
}

void Helper::find_cpu() {
  const std::uint64_t now = waiting::nanoseconds();
  if (looked_for_cpu_ && now - looked_for_cpu_ < cpu_known) return;
  looked_for_cpu_ = now;
  std::ranges::transform(ranks_, cpus_of_ranks_.begin(), machine::cpus_of);
  const auto spare_cpus =
      machine::find_spare_cpus(granted_, machine::cpus_of(getpid()), cpus_of_ranks_, near_, process_.cpus().quota);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (spare_cpus.cpus.bits[std::size_t(cpu)]) CPU_SET(cpu, &mask);
  on_free_cpu_ = sched_setaffinity(0, sizeof mask, &mask) == 0 && spare_cpus.free;
}

void Helper::run() {
  prctl(PR_SET_NAME, "nearfield", 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, timer_slack, 0, 0, 0);
  find_cpu();
  unsigned vain = 0;  // looks in a row that found nothing to do
  while (!stopped_.load(std::memory_order_relaxed)) {
    const LookIntervals& how = on_free_cpu_ || away_.load(std::memory_order_relaxed) > 0 ? often : seldom;
    if (!dispensable() && step()) {
      // Who waits for what has moved may sleep by now.
      if (messenger_ && progress_.attended()) messenger_->wake_ourselves();
      vain = 0;
      continue;
    }
    const bool attended = progress_.attended(), needed = !dispensable() && progress_.busy();
    if (++vain <= how.awake) {
      if (needed && !attended) {
        for (unsigned i = 0; i < how.pauses; ++i) processor::pause();
        if (how.yields) yield();
        continue;
      }
      vain = how.awake + 1;
    }
    const unsigned naps = vain - how.awake - 1;
    const std::uint64_t next = std::min(how.first_nap << std::min(naps, 10u), how.longest_nap);
    bool news = false;
    if (needed && attended) {  // peers ring the one that waits
      waiting::futex_wait(word_, word_.load(std::memory_order_relaxed), next);
    } else if (needed) {
      news = nap(next);
    } else if (naps < looks_for_more) {
      waiting::futex_wait(word_, word_.load(std::memory_order_relaxed), std::min(next, unnoticed));
    } else if ((news = sleep())) {
      find_cpu();
    }
    if (news) vain = how.awake - 2;
  }
}

}  // namespace nearfield::messages
