#include "engine/messages/progress_thread.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/base/yield.hpp"
#include "engine/machine/spare_cpus.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::messages {
namespace {

// How the thread looks while something is under way. It looks `awake` times after the last look that moved anything, or
// `woken` times after it was woken, each time after some pauses. Then it naps between looks: `even_naps` times for
// first_nap ns, then twice as long each time, up to longest_nap. If its CPU is that of a rank that computes, all this
// takes time from the rank.
struct LookIntervals {
  unsigned awake, woken, pauses;
  bool yields;  // its CPU may be needed by others; a rank would keep it for milliseconds
  std::uint64_t first_nap, longest_nap;
  unsigned even_naps;
  unsigned looks_for_more;  // short naps after the last operation has ended, in case that more follow
  std::uint64_t nap(unsigned number) const {
    return number < even_naps ? first_nap : std::min(first_nap << std::min(number + 1 - even_naps, 10u), longest_nap);
  }
};
constexpr LookIntervals in_the_host{200, 200, 0, true, 20'000, 500'000, 1800, 0};
constexpr LookIntervals often{100, 2, 40, true, 20'000, 500'000, 1, 4};
constexpr LookIntervals seldom{16, 2, 20, false, 200'000, 2'000'000, 1, 4};

constexpr std::uint64_t unnoticed = 200'000;        // ns; a thread that begins something does not end naps up to this
constexpr std::uint64_t longest = 1'000'000'000;    // ns, of its longest sleep
constexpr std::uint64_t cpu_known = 1'000'000'000;  // ns between searches for a free CPU: ranks may be bound anew
constexpr unsigned long timer_slack = 5'000;

}  // namespace

// The CPUs on which it runs beside ranks that compute (Serves::always).
class ProgressThread::Place {
 public:
  Place(const machine::Cpus& cpus, std::vector<pid_t> ranks)
      : ranks_(std::move(ranks)),
        cpus_of_ranks_(ranks_.size()),
        granted_(machine::granted_cpus()),
        near_(machine::read_caches(cpus).neighbors),
        quota_(cpus.quota) {}
  bool free() const { return free_; }
  // By the thread itself.
  void find() {
    const std::uint64_t now = waiting::nanoseconds();
    if (looked_ && now - looked_ < cpu_known) return;
    looked_ = now;
    std::ranges::transform(ranks_, cpus_of_ranks_.begin(), machine::cpus_of);
    const auto spare_cpus =
        machine::find_spare_cpus(granted_, machine::cpus_of(getpid()), cpus_of_ranks_, near_, quota_);
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (spare_cpus.cpus.bits[std::size_t(cpu)]) CPU_SET(cpu, &mask);
    free_ = sched_setaffinity(0, sizeof mask, &mask) == 0 && spare_cpus.free;
  }

 private:
  const std::vector<pid_t> ranks_;
  std::vector<machine::CpuSet> cpus_of_ranks_;
  const machine::CpuSet granted_, near_;
  const double quota_;
  bool free_ = false;
  std::uint64_t looked_ = 0;  // ns
};

ProgressThread::ProgressThread(team::Process& process, Messenger* messenger, Serves when, std::vector<pid_t> ranks)
    : process_(process),
      progress_(process.progress()),
      messenger_(messenger),
      when_(when),
      word_(process.header().progress_thread),
      sleeps_on_(&word_),
      place_(when == Serves::always ? std::make_unique<Place>(process.cpus(), std::move(ranks)) : nullptr) {}

ProgressThread::~ProgressThread() = default;

// Signals are for the program's own threads.
bool ProgressThread::start() {
  if (started_.load(std::memory_order_acquire)) [[likely]]  // SYNC: progress-thread-started
    return true;
  const std::lock_guard lock(starting_);
  if (started_.load(std::memory_order_relaxed)) return true;
  const auto run = [](void* thread) -> void* {
    waiting::own_thread = true;
    static_cast<ProgressThread*>(thread)->run();
    return nullptr;
  };
  pid_ = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool good = pthread_create(&thread_, nullptr, run, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (good && when_ == Serves::always) progress_.set_background(this);
  started_.store(good, std::memory_order_release);  // SYNC: progress-thread-started
  return good;
}

void ProgressThread::stop() {
  stopped_.store(true, std::memory_order_seq_cst);  // SYNC: progress-thread-stopped
  // SYNC: progress-thread-started; a fork has no such thread
  if (!started_.load(std::memory_order_acquire) || getpid() != pid_) return;
  asleep_.store(true, std::memory_order_seq_cst);  // SYNC: progress-thread-asleep
  wake();
  pthread_join(thread_, nullptr);
}

bool ProgressThread::enter_host() {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  if (when_ == Serves::in_host && (messenger_->members() < 2 || !start())) return false;
  const int others = in_host_.fetch_add(1, std::memory_order_seq_cst);  // SYNC: in-host
  if (when_ == Serves::in_host && others == 0) messenger_->enter_host(word_);
  if (progress_.busy()) [[unlikely]]
    wake();
  return true;
}

void ProgressThread::leave_host() {
  const int before = in_host_.fetch_sub(1, std::memory_order_seq_cst);  // SYNC: in-host
  if (when_ != Serves::in_host || before != 1) return;
  messenger_->leave_host();
  // Another thread may have entered meanwhile. SYNC: in-host
  if (in_host_.load(std::memory_order_seq_cst) > 0) [[unlikely]]
    messenger_->enter_host(word_);
}

void ProgressThread::wake() {
  if (asleep_.exchange(false, std::memory_order_seq_cst))  // SYNC: progress-thread-asleep
    sleeps_on_.load(std::memory_order_acquire)->wake();    // SYNC: progress-thread-sleeps-on
}

// The wait has published its own word for peers that are blocked on us; now the sleeping thread publishes its word.
void ProgressThread::wait_ends() {
  if (!asleep_.load(std::memory_order_seq_cst)) return;  // SYNC: progress-thread-asleep
  if (progress_.busy()) wake();
  else progress_.asleep_on(sleeps_on_.load(std::memory_order_acquire));  // SYNC: progress-thread-sleeps-on
}

// In the host: acquire, so that the thread sees what the rank did without the lock before. Always: a waiting thread may
// share its CPU with ranks that compute, so on a free CPU the progress thread serves even while it waits.
bool ProgressThread::serves() const {
  if (when_ == Serves::in_host) return in_host_.load(std::memory_order_seq_cst) > 0;  // SYNC: in-host
  return place_->free() || !progress_.attended();
}

// Whether anything moved. `sleeps_on`: where it is about to sleep in the host.
bool ProgressThread::step(waiting::WakeWord* sleeps_on) {
  fibers::Runner& runner = process_.runner();
  if (when_ == Serves::always) {
    const bool moved = runner.poll();
    return (messenger_ && messenger_->poll()) || moved;
  }
  const auto rank_is_back = [this] { return !serves(); };
  const bool moved = runner.busy() && messenger_->run_in_host(rank_is_back, [&] { return runner.poll(); });
  return messenger_->step_in_host(rank_is_back, sleeps_on) || moved;
}

// Whether something is under way. A rank that is back from the host works without the lock, so it is asked under it.
bool ProgressThread::is_needed() {
  if (when_ == Serves::always) return progress_.busy();
  return process_.runner().busy() || messenger_->busy_in_host([this] { return !serves(); });
}

// Whether anything has moved or begun. `busy`: whether something is under way. After it has told where it sleeps it
// looks once more.
bool ProgressThread::sleep(bool busy, std::uint64_t nanoseconds) {
  const bool always = when_ == Serves::always, for_messages = always && busy && messenger_;
  const bool noticed = nanoseconds > unnoticed;
  const auto publish = [&](waiting::WakeWord* where) {
    if (for_messages) messenger_->publish_asleep(where != nullptr);
    if (where) {
      sleeps_on_.store(where, std::memory_order_release);           // SYNC: progress-thread-sleeps-on
      if (noticed) asleep_.store(true, std::memory_order_seq_cst);  // SYNC: progress-thread-asleep
    }
    if (always && !progress_.attended()) progress_.asleep_on(where);
  };
  bool news = false;
  const auto look = [&]() -> std::uint64_t {
    news = stopped_.load(std::memory_order_seq_cst) ||  // SYNC: progress-thread-stopped
           (serves() && (step(&word_) || is_needed() != busy));
    return news ? 0 : nanoseconds;
  };
  waiting::WakeWord& word = for_messages ? messenger_->wake_word() : word_;
  const std::uint32_t rung = word.seen();
  word.sleep(publish, look);
  if (noticed && !asleep_.exchange(false, std::memory_order_seq_cst)) return true;  // SYNC: progress-thread-asleep
  return news || word.seen() != rung;
}

void ProgressThread::run() {
  prctl(PR_SET_NAME, "nearfield", 0, 0, 0);
  if (place_) {
    prctl(PR_SET_TIMERSLACK, timer_slack, 0, 0, 0);
    place_->find();
  }
  unsigned vain = 0;  // looks in a row that found nothing to do
  while (!stopped_.load(std::memory_order_relaxed)) {
    const LookIntervals& how = !place_ ? in_the_host : place_->free() || in_host() ? often : seldom;
    const std::uint32_t rung = word_.seen();
    const bool attended = place_ && progress_.attended();
    if (serves() && step()) {
      // Who waits for what has moved may sleep by now.
      if (attended && messenger_) messenger_->wake_ourselves();
      vain = 0;
      continue;
    }
    const bool needed = serves() && is_needed();
    if (++vain <= how.awake) {
      if (needed && !attended) {
        for (unsigned i = 0; i < how.pauses; ++i) processor::pause();
        if (how.yields) yield();
        continue;
      }
      vain = how.awake + 1;
    }
    const unsigned naps = vain - how.awake - 1;
    bool news = false;
    if (needed && attended) {  // peers ring the one that waits
      word_.nap(rung, how.nap(naps));
    } else if (needed) {
      news = sleep(true, how.nap(naps));
    } else if (naps < how.looks_for_more) {
      word_.nap(rung, std::min(how.nap(naps), unnoticed));
    } else if ((news = sleep(false, longest)) && place_) {
      place_->find();
    }
    if (news) vain = how.awake - how.woken;
  }
}

}  // namespace nearfield::messages
