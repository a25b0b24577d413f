#include "engine/context/waits.hpp"

#include <algorithm>

#include "engine/hang_report/reporter.hpp"

namespace nearfield::context {

// The thread does other work until the runner resumes us, which polls our flag while the thread waits elsewhere. If it
// sleeps, the member that we await notifies it (wake_suspended).
void CollectiveContext::suspend(bool (*flag)(void*), void* flag_context, bool (*lacking)(void*, int), void* argument,
                                Awaited awaited) {
  // Resumptions between readings of the clock; fewer when oversubscribed, since other ranks run for milliseconds in
  // between.
  const std::uint32_t looks = process_.policy().oversubscribed ? 16 : 256;
  const auto there = [&] { return flag(flag_context); };
  awaited_ = awaited;
  std::uint64_t start = 0, inspected = 0;
  for (std::uint32_t i = 1;; ++i) {
    fiber_->suspend();
    if (waiting::spin(process_.runner().looks(), there)) break;
    if (i % looks != 0) continue;
    const std::uint64_t now = waiting::nanoseconds();
    if (start == 0) start = inspected = now;
    if (now - inspected < waiting::between_inspections) continue;
    inspected = now;
    inspect(now - start, lacking, argument);
  }
  process_.runner().note_progress();
}

// Published by Runner::asleep_on.
void CollectiveContext::publish_awaited() {
  mine_->awaits.store(awaited_.whom, std::memory_order_relaxed);
  mine_->awaits_what.store(std::uint32_t(awaited_.what), std::memory_order_relaxed);
  mine_->awaits_value.store(awaited_.value, std::memory_order_relaxed);
}

void CollectiveContext::wait_until(FunctionRef<bool()> flag, FunctionRef<bool(int)> lacks) {
  wait([&] { return flag(); }, [&](int m) { return lacks(m); }, {everybody, What::unrung});
}

CollectiveContext::CollectiveContext(Team& team, unsigned number)
    : team_(team),
      process_(team.process()),
      shape_(team.shape()),
      rank_(team.rank()),
      size_(team.size()),
      number_(number),
      own_(&team.words(rank_)),
      words_(std::size_t(size_)),
      base_(team.segments()),
      peer_(team.peers()),
      inputs_(std::size_t(size_)),
      outputs_(std::size_t(size_)),
      exchanged_send_(std::size_t(size_)),
      exchanged_recv_(std::size_t(size_)) {
  children_.reserve(std::size_t(size_));  // all memory is allocated before the members agree
  for (auto*& slot : noted_) slot = process_.reach().in_flight_buffers.take();
}

void CollectiveContext::prepare() { agreement_.emplace(process_.reach(), peer_, team_.mappers()); }

CollectiveContext::~CollectiveContext() {
  for (auto*& slot : noted_) process_.reach().in_flight_buffers.put_back(slot);
  let_go_of_buffers();
}

// ---------------------------------------------------------------- waking

void CollectiveContext::publish_asleep(bool asleep, Awaited awaited) {
  auto& watchers = awaited.whom == everybody ? gate_->sleepers : team_.words(int(awaited.whom) - 1).watched;
  if (!asleep) {
    watchers.fetch_sub(1, std::memory_order_relaxed);
    own_->awaits.store(0, std::memory_order_relaxed);
    return;
  }
  own_->awaits_what.store(std::uint32_t(awaited.what), std::memory_order_relaxed);
  own_->awaits_value.store(awaited.value, std::memory_order_relaxed);
  own_->awaits.store(awaited.whom, std::memory_order_release);  // SYNC: awaits
  watchers.fetch_add(1, std::memory_order_seq_cst);             // SYNC: watchers
}

inline void CollectiveContext::wake_waiters(What what, std::uint64_t value) {
  if (fiber_) [[unlikely]] {
    wake_suspended(std::uint32_t(rank_ + 1), what, value);
    if (number_) return;  // in further contexts only bodies wait
  }
  if (own_->watched.load(std::memory_order_relaxed) == 0) return;
  for (int r = 0; r < size_; ++r) {
    MemberControlBlock& other = team_.words(r);
    // SYNC: awaits
    if (r == rank_ || other.awaits.load(std::memory_order_acquire) != std::uint32_t(rank_ + 1)) continue;
    // A sleeper that awaits another word or a greater value would only sleep again.
    if (other.awaits_what.load(std::memory_order_relaxed) != std::uint32_t(what) ||
        other.awaits_value.load(std::memory_order_relaxed) > value)
      continue;
    other.wake_word.wake();
  }
}

inline void CollectiveContext::wake_everybody() {
  if (fiber_) [[unlikely]] {
    wake_suspended(everybody, What::gate, 0);
    if (number_) return;
  }
  if (gate_->sleepers.load(std::memory_order_relaxed) != 0) gate_->wake_word.wake();
}

// Wakes processes that sleep while their body of this context awaits what we have done. As with wake words, one that is
// missed sleeps to the end of its short timeout.
void CollectiveContext::wake_suspended(std::uint32_t awaited, What what, std::uint64_t value) {
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    const auto& header = *reinterpret_cast<const ProcessHeader*>(base_[r]);
    const std::uint64_t where = header.asleep_on.load(std::memory_order_acquire);  // SYNC: asleep-on
    const ContextControlBlock& other = *words_[r];
    if (!where || other.awaits.load(std::memory_order_relaxed) != awaited) continue;
    if (awaited != everybody && (other.awaits_what.load(std::memory_order_relaxed) != std::uint32_t(what) ||
                                 other.awaits_value.load(std::memory_order_relaxed) > value))
      continue;
    reinterpret_cast<waiting::WakeWord*>(base_[r] + where)->wake();
  }
}

// ---------------------------------------------------------------- meetings

// Waits until `word` of every member is at least `value`. pre: ours is.
template <class Word>
inline void CollectiveContext::meet_by(Word word, What what, std::uint64_t value) {
  auto lacking = [&](int m) { return word(*words_[m]).load(std::memory_order_relaxed) < value; };
  if (meeting_ == Meeting::tree) return meet_along_tree(lacking);
  if (meeting_ == Meeting::gate) {
    gate_target_ += size_;
    const std::uint64_t target = gate_target_;
    // acq_rel: publishes our stores to members that see the sum, and all members' stores to the one that completes it.
    if (gate_->gate.fetch_add(1, std::memory_order_acq_rel) + 1 >= target) return wake_everybody();  // SYNC: gate
    // SYNC: gate
    return wait([&] { return gate_->gate.load(std::memory_order_acquire) >= target; }, lacking, {everybody});
  }
  for (int i = 1; i < size_; ++i) {
    const int other = rank_ + i < size_ ? rank_ + i : rank_ + i - size_;
    const auto& theirs = word(*words_[other]);
    // SYNC: slot, posted
    wait([&] { return theirs.load(std::memory_order_acquire) >= value; }, [&](int m) { return m == other; },
         {std::uint32_t(other + 1), what, value});
  }
}

template <class Lacking>
inline void CollectiveContext::meet_along_tree(Lacking lacking) {
  const std::uint64_t meeting = ++meetings_;
  for (const int child : children_)
    wait([&] { return words_[child]->gathered.load(std::memory_order_acquire) >= meeting; }, lacking,  // SYNC: gathered
         {std::uint32_t(child + 1), What::gathered, meeting});
  if (parent_ >= 0) {
    mine_->gathered.store(meeting, std::memory_order_release);  // SYNC: gathered
    wake_waiters(What::gathered, meeting);
    // SYNC: released
    wait([&] { return words_[parent_]->released.load(std::memory_order_acquire) >= meeting; }, lacking,
         {std::uint32_t(parent_ + 1), What::released, meeting});
  }
  if (children_.empty()) return;
  mine_->released.store(meeting, std::memory_order_release);  // SYNC: released
  wake_waiters(What::released, meeting);
}

void CollectiveContext::join_tree() {
  meeting_ = shape_.meeting;
  parent_ = tree().parent(rank_, 0);
  tree().each_part(rank_, 0, [&](int member) {
    if (member != rank_) children_.push_back(member);
  });
}

// ---------------------------------------------------------------- small operations

// Waits until `done` of every other member is at least `needed`. Returns the least, which is often more, so that the
// next calls need not look.
std::uint64_t CollectiveContext::wait_done(Atomic<std::uint64_t> ContextControlBlock::*done, What what,
                                           std::uint64_t needed) {
  std::uint64_t least = ~std::uint64_t{0};
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    std::uint64_t seen = 0;
    // SYNC: slot-done, line-done
    wait([&] { return (seen = (words_[r]->*done).load(std::memory_order_acquire)) >= needed; },
         [&](int m) { return m == r; }, {std::uint32_t(r + 1), what, needed});
    least = std::min(least, seen);
  }
  return least;
}

std::byte* CollectiveContext::reserve_slot(std::uint64_t seq) {
  if (seq > slots && seq - slots > slots_safe_)
    slots_safe_ = wait_done(&ContextControlBlock::slot_done, What::slot_done, seq - slots);
  return mine_->slot[seq % slots].payload;
}

void CollectiveContext::publish_slot(std::uint64_t seq, std::size_t bytes) {
  Slot& slot = mine_->slot[seq % slots];
  slot.bytes = bytes;
  slot.seq.store(seq, std::memory_order_release);  // SYNC: slot
  wake_waiters(What::slot, seq);
}

const std::byte* CollectiveContext::wait_slot(int member, std::uint64_t seq) {
  Slot& slot = words_[member]->slot[seq % slots];
  // SYNC: slot
  wait([&] { return slot.seq.load(std::memory_order_acquire) >= seq; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::slot, seq});
  return slot.payload;
}

void CollectiveContext::meet_slots(std::uint64_t seq) {
  meet_by([seq](ContextControlBlock& m) -> auto& { return m.slot[seq % slots].seq; }, What::slot, seq);
  have_met_slots(seq);  // a member that has published seq has read all of seq - 1
}

void CollectiveContext::finish_rooted_slot(std::uint64_t seq) {
  mine_->slot_done.store(seq, std::memory_order_release);  // SYNC: slot-done
  wake_waiters(What::slot_done, seq);
}

std::byte* CollectiveContext::reserve_line(std::uint64_t seq) {
  if (seq > lines && seq - lines > lines_safe_)
    lines_safe_ = wait_done(&ContextControlBlock::line_done, What::line_done, seq - lines / 2);
  return mine_->small[seq % lines].payload;
}

void CollectiveContext::publish_line(std::uint64_t seq, std::size_t bytes) {
  mine_->small[seq % lines].seq.store(seq << 8 | bytes, std::memory_order_release);  // SYNC: line
  wake_waiters(What::line, seq << 8 | bytes);
}

const std::byte* CollectiveContext::wait_line(int member, std::uint64_t seq) {
  Line& line = words_[member]->small[seq % lines];
  // SYNC: line
  wait([&] { return line.seq.load(std::memory_order_acquire) >= seq << 8; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::line, seq << 8});
  return line.payload;
}

void CollectiveContext::finish_line(std::uint64_t seq) {
  mine_->line_done.store(seq, std::memory_order_release);  // SYNC: line-done
  wake_waiters(What::line_done, seq);
}

// ---------------------------------------------------------------- large operations

void CollectiveContext::post_word(std::uint64_t tick) {
  mine_->posted.store(tick, std::memory_order_release);  // SYNC: posted
  wake_waiters(What::posted, tick);
}

// Wrong programs come with different numbers of parts: the last member's counts.
void CollectiveContext::work_together(std::size_t parts, const std::function<void(std::size_t part)>& work) {
  const std::uint64_t round = ++rounds_together_ & 0xffffffff;
  gate_target_ += size_;
  auto& open = gate_->parts;
  auto& done = gate_->done;
  if (gate_->gate.fetch_add(1, std::memory_order_acq_rel) + 1 == gate_target_) {      // SYNC: gate
    open.store(round << 32 | std::uint64_t(parts) << 16, std::memory_order_release);  // SYNC: parts; all have arrived
    if (parts > 1) wake_everybody();
  }
  const auto is_open = [&](std::uint64_t now) { return now >> 32 == round; };
  const auto left = [](std::uint64_t now) { return (now & 0xffff) < (now >> 16 & 0xffff); };
  bool counted = false;
  for (;;) {
    std::uint64_t next = open.load(std::memory_order_acquire);  // SYNC: parts
    if (is_open(next) && !std::exchange(counted, true)) done_target_ += next >> 16 & 0xffff;
    while (is_open(next) && left(next)) {
      // SYNC: parts
      if (!open.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      work(next & 0xffff);
      // A member that sees all parts done sees their stores.
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == done_target_) wake_everybody();  // SYNC: parts-done
      next = open.load(std::memory_order_acquire);                                             // SYNC: parts
    }
    if (counted && done.load(std::memory_order_acquire) >= done_target_) return;  // SYNC: parts-done
    wait(
        [&] {
          if (counted && done.load(std::memory_order_acquire) >= done_target_) return true;  // SYNC: parts-done
          const std::uint64_t now = open.load(std::memory_order_acquire);                    // SYNC: parts
          return is_open(now) && (!counted || left(now));
        },
        [&](int m) { return words_[m]->posted.load(std::memory_order_relaxed) < tick_; }, {everybody});
  }
}

// A member that posts it between calls, or in one without buffers, has read all earlier buffers.
void CollectiveContext::post_empty() {
  mine_->consumed.store(++tick_, std::memory_order_release);  // SYNC: consumed
  post(tick_);
}

void CollectiveContext::wait_posted(int member, std::uint64_t tick) {
  const auto& posted = words_[member]->posted;
  // SYNC: posted
  wait([&] { return posted.load(std::memory_order_acquire) >= tick; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::posted, tick});
}

void CollectiveContext::meet(std::uint64_t tick) {
  meet_by([](ContextControlBlock& m) -> auto& { return m.posted; }, What::posted, tick);
  if (tick > 2) ticks_safe_ = std::max(ticks_safe_, tick - 2);
}

void CollectiveContext::consume(std::uint64_t tick) {
  mine_->consumed.store(tick, std::memory_order_release);  // SYNC: consumed
  wake_waiters(What::consumed, tick);
}

void CollectiveContext::wait_consumed(int member, std::uint64_t tick) {
  const auto& consumed = words_[member]->consumed;
  // SYNC: consumed
  wait([&] { return consumed.load(std::memory_order_acquire) >= tick; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::consumed, tick});
}

void CollectiveContext::wait_all_consumed(std::uint64_t tick) {
  for (int r = 0; r < size_; ++r)
    if (r != rank_) wait_consumed(r, tick);
  if (tick > ticks_safe_) ticks_safe_ = tick;
}

// ---------------------------------------------------------------- reports

std::string CollectiveContext::doing() const {
  return process_.services().describe(mine_->doing.load(std::memory_order_relaxed));
}

void CollectiveContext::inspect(std::uint64_t elapsed, bool (*lacking)(void*, int), void* argument) {
  team_.inspect([this] { return doing(); }, lacking, argument);
  look_for_other_calls(elapsed, lacking, argument);
  if (!process_.hang_reporter()) return;
  hang_report::Awaited awaited;
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && lacking(argument, r)) awaited.add(process_.hang_reporter()->member_of(peer_[r]));
  if (fiber_) process_.hang_reporter()->body_waits(awaited);
  else process_.hang_reporter()->waits(elapsed, awaited);
}

// A member overwrites its oldest call before it counts the new one.
std::uint64_t CollectiveContext::call_of(int member, std::uint64_t number) const {
  const ContextControlBlock& theirs = *words_[member];
  const auto known = [&](std::uint64_t begun) { return begun >= number && begun - number < calls_known - 1; };
  if (!number || !known(theirs.calls.load(std::memory_order_acquire))) return 0;                   // SYNC: calls
  const std::uint64_t call = theirs.called[number % calls_known].load(std::memory_order_acquire);  // SYNC: called
  return known(theirs.calls.load(std::memory_order_relaxed)) ? call : 0;
}

// Members count their calls and keep what they were, so a mismatch is certain. One that has begun a later call has done
// its part of ours, which two looks in a row would have found. Members that differ in length alone report it themselves
// if they run the same row, and may only be late.
void CollectiveContext::look_for_other_calls(std::uint64_t elapsed, bool (*lacking)(void*, int), void* argument) {
  constexpr std::uint64_t late = 1'000'000'000;
  if (!mine_->doing.load(std::memory_order_relaxed) || !calls_) return;
  const team::Services& services = process_.services();
  const std::uint64_t ours = call_of(rank_, calls_);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || !lacking(argument, r)) continue;
    const std::uint64_t begun = words_[r]->calls.load(std::memory_order_acquire);  // SYNC: calls
    if (begun < calls_) continue;
    const std::uint64_t theirs = call_of(r, calls_);
    const bool same = theirs == ours || theirs == 0;
    if (same && begun == calls_) continue;
    const bool other_length = !same && !((theirs ^ ours) & ~services.length_of_doing());
    if (other_length && elapsed < late) continue;
    const std::uint64_t now = words_[r]->doing.load(std::memory_order_relaxed);
    const Suspect seen{calls_, begun, now, r};
    if (same && std::exchange(suspect_, seen) != seen) return;
    if (other_length) report_lengths(false);
    const auto rank = [](int member) { return "rank " + std::to_string(member); };
    const std::string text = rank(r) + " of a communicator of " + std::to_string(size_) +
                             (same ? " has gone on, and is " : " is ") + services.describe(same ? now : theirs) +
                             " where " + rank(rank_) + " is " + services.describe(ours);
    team_.break_off(text.c_str());
    throw Broken(text);
  }
}

// As "in allreduce rank 1 has 16 bytes where ranks 0, 2 have 8 bytes": the rarest length first.
std::string CollectiveContext::describe_lengths() const {
  const team::Services& services = process_.services();
  const std::uint64_t of_length = services.length_of_doing();
  struct Group {
    std::uint64_t bytes;
    std::vector<int> members;
  };
  std::vector<Group> groups;
  for (int r = 0; r < size_; ++r) {
    const std::uint64_t call = call_of(r, calls_);
    if (!call) continue;
    const auto same = std::ranges::find(groups, call & of_length, &Group::bytes);
    if (same == groups.end()) groups.push_back({call & of_length, {r}});
    else same->members.push_back(r);
  }
  if (groups.size() < 2) return "ranks are out of step after a call of different lengths, " + doing();
  std::ranges::stable_sort(groups, {}, [](const Group& group) { return group.members.size(); });
  std::string text;
  constexpr std::size_t most_groups = 4, most_members = 8;
  for (std::size_t g = 0; g < std::min(groups.size(), most_groups); ++g) {
    const auto& [bytes, members] = groups[g];
    text += (g == 0 ? "" : g == 1 ? " where " : ", ") + std::string(members.size() == 1 ? "rank " : "ranks ");
    for (std::size_t i = 0; i < std::min(members.size(), most_members); ++i)
      text += (i ? ", " : "") + std::to_string(members[i]);
    if (members.size() > most_members) text += " and " + std::to_string(members.size() - most_members) + " more";
    text += (members.size() == 1 ? " has " : " have ") + std::to_string(bytes) + " bytes";
  }
  return text + ", " + services.describe(call_of(rank_, calls_));
}

void CollectiveContext::report_lengths(bool in_step) const {
  const std::string text = describe_lengths();
  if (!in_step) team_.break_off(text.c_str(), team::Break::by_lengths);
  throw team::UnequalLengths(text);
}

// `wanted`: the count at which the next calls need not look.
bool CollectiveContext::room_ready(Atomic<std::uint64_t> ContextControlBlock::*done, What what, std::uint64_t wanted,
                                   std::uint64_t needed, std::uint64_t& safe) {
  std::uint64_t least = ~std::uint64_t{0}, limit = 0;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    std::uint64_t seen = 0;
    const auto over = [&] {
      seen = (words_[r]->*done).load(std::memory_order_acquire);  // SYNC: slot-done, line-done, consumed
      if (seen >= wanted) return true;
      const std::uint64_t now = waiting::nanoseconds();
      if (limit == 0) limit = now + patience();
      return now > limit;
    };
    wait(over, [&](int m) { return m == r; }, {std::uint32_t(r + 1), what, wanted});
    least = std::min(least, seen);
  }
  safe = std::max(safe, least);
  return least >= needed;
}

}  // namespace nearfield::context
