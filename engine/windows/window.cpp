// Creation of a window, and the one function by which its members wait.
#include "engine/windows/window.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "engine/base/yield.hpp"

namespace nearfield::windows {
namespace {

// Published to the other members at creation.
struct MemberDescription {
  std::uint64_t words, memory;  // offsets in its segment; `memory`: for Window::Lies::in_segment
  std::uint64_t bytes, unit;
  std::uint32_t able, barriers;
};

}  // namespace

bool register_for_barriers() {
  static const bool registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return registered;
}

void barrier_on_all_processors() {
  // After registration it fails only while the kernel lacks memory for it.
  while (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) yield();
}

Window::Window(std::unique_ptr<team::Team> team, HeldLocks& held, const Memory& mine)
    : team_(std::move(team)),
      context_(team_->context()),
      rank_(team_->rank()),
      size_(team_->size()),
      memory_(std::size_t(size_)),
      words_(std::size_t(size_)),
      access_(std::size_t(size_), Access::none),
      held_(held),
      landing_(std::make_unique<Landing[]>(std::size_t(size_))),
      starts_(std::size_t(size_)),
      waits_(std::size_t(size_)) {
  memory_[std::size_t(rank_)] = mine;
}

// Keeps our control block allocated, since others may be using it; close() frees it.
Window::~Window() {
  if (exchanged_) context_.exchange.end();
  team::Team::close(std::move(team_));
}

void Window::close(std::unique_ptr<Window> window) {
  if (window->words_offset_) window->team_->process().arena().free(window->words_offset_);
}

std::unique_ptr<Window> Window::create(std::unique_ptr<team::Team> team, HeldLocks& held, Lies lies, const Memory& mine,
                                       std::span<const Memory> known, std::string& why) {
  std::unique_ptr<Window> window(new Window(std::move(team), held, mine));
  if (window->arrange(lies, known, why)) return window;
  close(std::move(window));
  return nullptr;
}

bool Window::arrange(Lies lies, std::span<const Memory> known, std::string& why) {
  team::Process& process = team_->process();
  const Memory& mine = memory_[std::size_t(rank_)];
  MemberDescription own{0, 0, mine.bytes, mine.unit, 0, register_for_barriers()};
  if (auto offset = process.arena().allocate_zeroed(words_bytes(size_), team::line)) {
    words_offset_ = own.words = *offset;
    own.able = 1;
  }
  if (lies == Lies::in_segment && mine.bytes) own.memory = std::uint64_t(mine.base - process.segment().base());
  const std::uint64_t seq = context_.slots.allgather(&own, sizeof own);
  bool able = true;
  for (int m = 0; m < size_; ++m) {
    const auto theirs = context_.slots.get<MemberDescription>(m, seq);
    able &= theirs.able != 0;
    always_locked_ |= !theirs.barriers;
    std::byte* const segment = team_->segment_of(m);
    words_[std::size_t(m)] = reinterpret_cast<WindowControlBlock*>(segment + theirs.words);
    if (m == rank_) continue;
    memory_[std::size_t(m)] = {theirs.bytes ? segment + theirs.memory : nullptr, theirs.bytes, theirs.unit};
  }
  if (!able) {
    why = "a member lacks memory for the window's words";
    return false;
  }
  if (lies == Lies::known)
    for (int m = 0; m < size_; ++m) memory_[std::size_t(m)] = known[std::size_t(m)];
  if (lies != Lies::anywhere) return true;
  exchanged_ = true;
  if (!context_.exchange.begin({}, {mine.base, mine.bytes}, 0)) {
    why = "its memory cannot be reached by all of its ranks";
    return false;
  }
  for (int m = 0; m < size_; ++m)
    if (m != rank_) memory_[std::size_t(m)].base = context_.exchange.recv_of(m);
  return true;
}

// ---------------------------------------------------------------- waiting

void Window::publish_asleep(bool asleep, std::uint32_t what, std::uint32_t ticket) {
  WindowControlBlock& own = words(rank_);
  if (!asleep) {
    if (what >= for_lock) words(target_of(what)).lock.sleepers.fetch_sub(1, std::memory_order_relaxed);
    return own.asleep.store(awake, std::memory_order_relaxed);
  }
  own.ticket.store(ticket, std::memory_order_relaxed);
  own.asleep.store(what, std::memory_order_seq_cst);  // SYNC: window-asleep
  // SYNC: lock-sleepers
  if (what >= for_lock) words(target_of(what)).lock.sleepers.fetch_add(1, std::memory_order_seq_cst);
}

// Waits until `flag()`; the member that makes it true calls notify() or ring_next(). `lacks(member)`: returns whether
// we wait for that member.
void Window::wait_for(std::uint32_t what, std::uint32_t ticket, FunctionRef<bool()> flag,
                      FunctionRef<bool(int)> lacks) {
  const waiting::Policy& policy = team_->process().policy();
  if (waiting::spin(policy.oversubscribed ? 1 : 65, flag)) return;
  const struct Doing {
    context::CallLog& calls;
    ~Doing() { calls.leave(); }
  } doing_it{context_.calls};
  context_.calls.enter(doing(what));
  waiting::wait_slowly(policy, flag,
                       {.others = team_->process().progress(),
                        .inspect = [&](std::uint64_t elapsed) { context_.waits.inspect(elapsed, lacks); },
                        .word = &words(rank_).wake_word,
                        .publish = [&](bool asleep) { publish_asleep(asleep, what, ticket); }});
}

std::string describe(std::uint64_t doing) {
  const auto what = std::uint32_t(doing);
  if (what < for_lock) return "at a window, for what another rank does to it";
  return "for the lock of rank " + std::to_string(target_of(what)) + " of a window";
}

// Wakes a member that may sleep for a word that we have changed. Without a fence we may miss the sleeper, which costs
// the rest of its timed sleep. Oversubscribed ranks sleep too often for that, so they issue a fence.
void Window::notify(int member) {
  if (team_->process().policy().oversubscribed) full_fence();
  WindowControlBlock& theirs = words(member);
  if (member != rank_ && theirs.asleep.load(std::memory_order_relaxed) == for_notice) theirs.wake_word.wake();
}

// Wakes the members whose turn it is; `lets_in`: urgent readers as well.
void Window::ring_next(int target, Turn turn, bool lets_in) {
  const Lock& lock = words(target).lock;
  if (lock.sleepers.load(std::memory_order_relaxed) == 0) return;
  const bool urgent_ones = lets_in || lock.is_free(turn);
  for (int m = 0; m < size_; ++m) {
    WindowControlBlock& theirs = words(m);
    const std::uint32_t what = theirs.asleep.load(std::memory_order_acquire);  // SYNC: window-asleep
    if (m == rank_ || what < for_lock || target_of(what) != target) continue;
    if (what & urgent ? urgent_ones : turn.concerns(theirs.ticket.load(std::memory_order_relaxed)))
      theirs.wake_word.wake();
  }
}

}  // namespace nearfield::windows
