// Progress: polls of fastboxes, queue and transfers, and the waits that are made of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/yield.hpp"
#include "engine/hang_report/reporter.hpp"
#include "engine/messages/protocols.hpp"
#include "engine/messages/queue.hpp"

namespace nearfield::messages {
namespace {

constexpr std::uint32_t quiet_polls = 4096;  // without a message, before a fastbox is looked at now and then only
constexpr std::uint32_t now_and_then = 64;
constexpr std::uint32_t review = 1024;    // polls from one look for silent fastboxes to the next
constexpr std::size_t always_polled = 4;  // fastboxes that cost nothing to look at
constexpr int in_one_poll = 16;           // records of one fastbox: the others get their turn
constexpr int looks_in_one_poll = 16;     // in vain, at the oldest messages under way, and at others
constexpr int looks_at_newest = 8;
constexpr int idle_looks = 256;           // at others, in a poll that has nothing else to do
constexpr int looks_before_sleep = 4096;  // at others

}  // namespace

bool Messenger::poll_box(int member) {
  In& in = in_[member];
  std::uint64_t word;
  bool any_came = false;
  for (int i = 0; i < in_one_poll; ++i) {
    const Record* const record = in.box.look(word);
    const bool awaited = posted_.size() != 0;
    if (!record || !deliver(member, word, *record)) break;
    in.box.take(word);
    any_came = true;
    // What is behind the last that was waited for is left for its own receive, which takes it from here without it
    // being kept meanwhile; and where nothing is behind it, a look would take from the writer the line that it fills
    // next.
    if (awaited && posted_.size() == 0) break;
  }
  if (any_came) in.came = polls_;
  return any_came;
}

// All there is: cells are few, and their sender's for whatever it has for anybody.
bool Messenger::poll_queue() {
  bool any_came = false;
  const auto at = [this](Reference r) -> Cell& { return cell_at(r); };
  for (int i = 0; i < in_one_poll; ++i) {
    const Reference reference = undelivered_ ? std::exchange(undelivered_, 0) : dequeue(*mine_, shadow_, at);
    if (!reference) break;
    Cell& cell = at(reference);
    const int member = int(reference >> 48) - 1;
    const std::uint64_t word = cell.record.word.load(std::memory_order_relaxed);  // ordered by the queue
    if (kind_of(word) == Kind::fastbox) {
      std::uint64_t where[2];
      std::memcpy(where, cell.record.payload, sizeof where);
      in_[member].box = FastboxReader(reinterpret_cast<Ring*>(base_[member] + where[0]), where[1]);
      in_[member].came = polls_;
      talking_.push_back(member);
    } else if (!deliver(member, word, cell.record)) {
      undelivered_ = reference;
      break;
    }
    cell.busy.store(0, std::memory_order_release);  // pairs with free_cell
    any_came = true;
  }
  return any_came;
}

// Who talks and who is silent.
bool Messenger::poll_silent(bool all) {
  if (talking_.size() > always_polled && polls_ % review == 0)
    for (std::size_t i = 0; i < talking_.size(); ++i) {
      const int member = talking_[i];
      if (polls_ - in_[member].came < quiet_polls) continue;
      silent_.push_back(member);
      talking_[i--] = talking_.back();
      talking_.pop_back();
    }
  if (polls_ % now_and_then != 0 && !all) return false;
  bool any_came = false;
  for (std::size_t i = 0; i < silent_.size(); ++i) {
    const int member = silent_[i];
    if (!poll_box(member)) continue;
    any_came = true;
    talking_.push_back(member);
    silent_[i--] = silent_.back();
    silent_.pop_back();
  }
  return any_came;
}

// One step of those in the list that can do one. The oldest are looked at first, since those that wait are served in
// their order as a rule, then the newest, which may be of another peer than all in front of it, and of the others some,
// in turn: a poll costs the same however many there are. One of these that moves goes to the front. `all`: the
// last look before a sleep, which should miss nothing; where there are very many the sleep is short. A busy request
// stays where it is, so the walk can go on from it after the lock was let go.
template <class Pump, class End>
bool Messenger::go_on_with(InTurn& list, bool all, Pump pump, End end) {
  bool progress = false;
  int in_vain = 0;
  auto walk = [&](Link* link, int most) {
    while (link != &list && in_vain < most) {
      if (link == &list.turn) {
        link = link->next;
        continue;
      }
      Request& request = *static_cast<Request*>(link->owner);
      const bool moved = !request.busy && pump(request);
      progress |= moved;
      in_vain += !moved;
      link = link->next;
      if (request.way == State::done) {
        end(request);
      } else if (moved && most > looks_in_one_poll && !request.busy) {
        request.under_way.remove();
        request.under_way.insert_before(*list.next);
      }
    }
    return link;
  };
  Link* link = walk(list.next, looks_in_one_poll);
  if (link == &list) return progress;
  if (!list.turn.linked()) list.turn.insert_before(*link);
  Link* newest = &list;
  for (int i = 0; i < looks_at_newest; ++i) newest = newest->previous;
  walk(newest, in_vain + looks_at_newest);
  link = list.turn.linked() ? list.turn.next : list.next;
  link = walk(link, in_vain + (all ? looks_before_sleep : progress ? looks_in_one_poll : idle_looks));
  if (list.turn.linked()) list.turn.remove();
  if (link != &list) list.turn.insert_before(*link);
  return progress;
}

// What is under way already.
bool Messenger::go_on(Guard& guard, bool all) {
  if (waiting_for_room_) flush_waiting();
  bool progress = take_answers();
  progress |= go_on_with(
      receiving_, all, [&](Request& request) { return request.protocol->receive(*this, request, guard); },
      [&](Request& request) { end_receive(request); });
  progress |= go_on_with(
      sending_, all, [&](Request& request) { return request.protocol->send(*this, request, guard); },
      [&](Request& request) { end_send(request); });
  if (!retired_.empty()) reclaim();
  return progress;
}

// Where there is nothing to do this is a look at one line of each peer that talks, and at that of the queue: programs
// test requests in loops.
bool Messenger::poll_locked(Guard& guard) {
  bool progress = false;
  ++polls_;
  const bool all = look_at_all_.load(std::memory_order_relaxed);
  if (all) [[unlikely]]
    look_at_all_.store(false, std::memory_order_relaxed);
  if (undecided_) [[unlikely]]
    decide(guard);
  for (std::size_t i = 0; i < talking_.size(); ++i) {
    std::uint64_t word;
    const int member = talking_[i];
    if (in_[member].box.look(word)) progress |= poll_box(member);
  }
  if (!silent_.empty() || talking_.size() > always_polled) [[unlikely]]
    progress |= poll_silent(all);
  if (shadow_ || undelivered_ || mine_->head.load(std::memory_order_relaxed)) [[unlikely]]
    progress |= poll_queue();
  if (waiting_for_room_ || !receiving_.empty() || !sending_.empty() || !offered_.empty() || !listed_.empty() ||
      !retired_.empty()) [[unlikely]]
    progress |= go_on(guard, all);
  if (due_) [[unlikely]]
    follow(guard);
  for (Link* link = stalled_.next; link != &stalled_;) {
    auto& stalled = *static_cast<Stalled*>(link->owner);
    link = link->next;
    if (!stalled.go_on()) continue;
    stalled.stalled.remove();
    progress = true;
  }
  return progress;
}

void Messenger::follow(Guard& guard) {
  while (Follower* const follower = due_) {
    due_ = follower->next;
    follower->follow([&](Request& request) { start_locked(request, guard); });
  }
}

void Messenger::stall(Stalled& stalled, FunctionRef<void()> note) {
  {
    const Guard guard(*this);
    note();
    stalled.stalled.owner = &stalled;
    if (!stalled.stalled.linked()) stalled_.push(stalled.stalled);
  }
  process_.progress.wake_assistant();
}

void Messenger::unstall(Stalled& stalled) {
  const Guard guard(*this);
  if (stalled.stalled.linked()) stalled.stalled.remove();
}

void Messenger::forget(Follower& follower) {
  const Guard guard(*this);
  for (Follower** at = &due_; *at; at = &(*at)->next)
    if (*at == &follower) {
      *at = follower.next;
      return;
    }
}

bool Messenger::poll() {
  Guard guard(*this, std::try_to_lock);
  return guard.owns() && poll_locked(guard);
}

bool Messenger::help() {
  Guard guard(*this, std::try_to_lock);
  if (!guard.owns()) return false;
  guard.stand_in();
  return poll_locked(guard);
}

Atomic<std::uint32_t>& Messenger::begin_nap() {
  mine_->asleep.fetch_add(1, std::memory_order_seq_cst);
  look_at_all_.store(true, std::memory_order_relaxed);  // the last look before the sleep
  return mine_->wake_word;
}

void Messenger::end_nap() { mine_->asleep.fetch_sub(1, std::memory_order_relaxed); }

void Messenger::lend() {
  if (!program_threads_.load(std::memory_order_relaxed)) threaded_.store(true, std::memory_order_relaxed);
  asleep_on(&mine_->blocked_wake_word);
}

void Messenger::take_back() {
  mine_->elsewhere.store(0, std::memory_order_relaxed);
  if (program_threads_.load(std::memory_order_relaxed)) return;
  { const std::lock_guard lock(lock_); }  // the stand-in looks whether we are back when it has the lock
  threaded_.store(false, std::memory_order_relaxed);
}

Messenger::Did Messenger::stand_in(FunctionRef<bool()> back) {
  const std::lock_guard lock(lock_);
  if (back()) return Did::nothing_to_do;
  Guard guard(*this, Guard::held);
  guard.stand_in();
  if (poll_locked(guard)) return Did::moved;
  if (busy_locked()) return Did::waits;
  asleep_on(&mine_->blocked_wake_word);
  return poll_locked(guard) ? Did::moved : Did::nothing_to_do;  // what came before we could be rung
}

// Who finds another thread at work need not sleep long.
bool Messenger::busy() {
  Guard guard(*this, std::try_to_lock);
  return !guard.owns() || busy_locked();
}

std::optional<Messenger::Lost> Messenger::oldest_unexpected() {
  Guard guard(*this, std::try_to_lock);
  if (!guard.owns()) return std::nullopt;
  const UnexpectedEntry* const oldest = unexpected_.find_if([](const UnexpectedEntry&) { return true; });
  if (!oldest) return std::nullopt;
  return Lost{static_cast<const UnexpectedMessage*>(oldest)->member, oldest->envelope};
}

bool Messenger::sends_pending() {
  Guard guard(*this);
  auto waits = [this](const List& list) {
    for (Link* link = list.next; link != &list; link = link->next) {
      if (!link->owner) continue;
      const int member = static_cast<Request*>(link->owner)->member;
      if (member == me_ || !(peer_[member]->left() || peer_[member]->gone())) return true;
    }
    return false;
  };
  return waits(sending_) || waits(offered_) || waits(listed_) ||
         std::ranges::any_of(out_, [&](const Out& out) { return waits(out.waiting); });
}

// Other threads may be at work with it: then its receiver goes by what was said when it began.
void Messenger::attend(Request& request) {
  if (request.is_send && !threaded() && request.offered.transfer && !request.complete())
    request.offered.transfer->attended.store(1, std::memory_order_relaxed);
}

// A thread of the program that waits. Where there are several of a rank they share its CPUs: each gives its CPU away
// after every look, or it would keep it from the one that has something to do.
struct Messenger::AmongWaiters {
  explicit AmongWaiters(Messenger& messenger)
      : messenger_(messenger), counts_(messenger.program_threads_.load(std::memory_order_relaxed)) {
    if (counts_) messenger_.waiters_.fetch_add(1, std::memory_order_relaxed);
  }
  ~AmongWaiters() {
    if (counts_) messenger_.waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  AmongWaiters(const AmongWaiters&) = delete;
  bool several() const { return counts_ && messenger_.waiters_.load(std::memory_order_relaxed) % wants_lock > 1; }

 private:
  Messenger& messenger_;
  const bool counts_;
};

void Messenger::wait(Request& request) {
  if (request.complete()) return;  // what else has come is taken in by those who look for it
  attend(request);
  {
    const AmongWaiters waiters(*this);
    for (int i = process_.policy().oversubscribed ? 1 : 200; i > 0; --i) {
      poll();
      if (request.complete()) return;
      if (waiters.several()) yield();
      else processor::await_loads();
    }
  }
  wait_until([&] { return request.complete(); }, [&](int m) { return request.member == m || request.member < 0; },
             nullptr, request.is_send ? "sending" : "receiving");
}

struct Messenger::SleepHost : waiting::Waiter {
  SleepHost(Messenger& messenger, FunctionRef<bool(int)> awaited, FunctionRef<void()> also, const char* doing)
      : Waiter{messenger.process_.progress}, messenger(messenger), awaited(awaited), also(also), doing(doing) {}
  Messenger& messenger;
  FunctionRef<bool(int)> awaited;
  FunctionRef<void()> also;
  const char* doing;
  bool moved_since = false;  // by looks at what we wait for

  std::uint64_t longest_nap() const { return also ? waiting::short_nap : ~std::uint64_t{0}; }
  bool turn() {
    const bool moved = others.turn();
    if (also) also();
    return std::exchange(moved_since, false) || moved;
  }
  Atomic<std::uint32_t>& wake_word() { return messenger.mine_->wake_word; }
  void before_sleep() { static_cast<void>(messenger.begin_nap()); }
  void after_sleep() { messenger.end_nap(); }
  void inspect(std::uint64_t elapsed) {
    for (int r = 0; r < messenger.members_; ++r) {
      if (r == messenger.me_ || !awaited(r) || !messenger.peer_[r]->gone() || messenger.peer_[r]->left()) continue;
      throw team::Died("process " + std::to_string(messenger.peer_[r]->pid) + " (rank " + std::to_string(r) +
                       " of those on this node) has died; rank " + std::to_string(messenger.me_) + " was " + doing);
    }
    if (!messenger.process_.hang_reporter) return;
    hang_report::Awaited whom;
    for (int r = 0; r < messenger.members_; ++r)
      if (r != messenger.me_ && awaited(r)) whom.add(r);
    messenger.process_.hang_reporter->waits(elapsed, whom);
  }
};

void Messenger::wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also,
                           const char* doing) {
  const auto& policy = process_.policy();
  SleepHost host(*this, awaited, also, doing);
  const AmongWaiters waiters(*this);
  // Whoever has the CPU takes in all there is before it gives the CPU away.
  auto flag = [&] {
    for (int i = 0; i < 64; ++i) {
      const bool moved = poll();
      if (done()) return true;
      if (!moved) break;
      host.moved_since = true;
    }
    if (waiters.several()) yield();
    return false;
  };
  for (int i = policy.oversubscribed || waiters.several() ? 2 : 200; i > 0; --i) {
    if (flag()) return;
    if (!policy.oversubscribed) processor::pause();
  }
  waiting::Policy ours = policy;
  ours.sleep_at_once = false;  // that is for waits that one call ends for all
  ours.oversubscribed |= waiters.several();
  waiting::wait_slowly(ours, flag, host);
}

}  // namespace nearfield::messages
