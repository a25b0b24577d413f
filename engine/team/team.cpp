#include "engine/team/team.hpp"

#include <algorithm>
#include <cstring>

namespace nearfield::team {
namespace {

// Teams that we have closed while other members have not: their blocks must stay.
std::mutex closing_mutex;

std::string describe_call(std::uint64_t doing) {
  if (!doing) return "outside of Nearfield's collectives";
  const auto collective = collectives::Collective((doing >> 56) - 1);
  return std::string("in ") + collectives::name(collective) + " of " + std::to_string(doing & 0xffffffffff) + " bytes";
}

}  // namespace

// Adapts a wait to waiting::wait_slowly.
struct Team::WaitHost : waiting::Waiter {
  WaitHost(Team& team, Awaited awaited, bool (*lacking)(void*, int), void* context)
      : Waiter{team.node_.progress}, team(team), awaited(awaited), lacking(lacking), context(context) {}
  Team& team;
  Awaited awaited;
  bool (*lacking)(void*, int);
  void* context;
  Atomic<std::uint32_t>& watchers() {
    return awaited.whom == everybody ? team.leader_->sleepers : team.member_[awaited.whom - 1]->watched;
  }
  bool one_event() const { return awaited.whom == everybody; }
  Atomic<std::uint32_t>& bell() { return awaited.whom == everybody ? team.leader_->bell : team.mine_->bell; }
  void before_sleep() {
    team.mine_->awaits_what.store(std::uint32_t(awaited.what), std::memory_order_relaxed);
    team.mine_->awaits_value.store(awaited.value, std::memory_order_relaxed);
    team.mine_->awaits.store(awaited.whom, std::memory_order_release);  // pairs with ring_bells
    watchers().fetch_add(1, std::memory_order_seq_cst);
  }
  void after_sleep() {
    watchers().fetch_sub(1, std::memory_order_relaxed);
    team.mine_->awaits.store(0, std::memory_order_relaxed);
  }
  void inspect(std::uint64_t elapsed) { team.inspect(elapsed, lacking, context); }
};

// `flag`: what we wait for. `lacking(member)`: whether that member still owes us something (slow path only).
template <class Flag, class Lacking>
inline void Team::wait(Flag flag, Lacking lacking, Awaited awaited) {
  if (flag()) return;
  if (!node_.policy().crowded) {
    for (int i = 0; i < 64; ++i) {
      _mm_pause();
      if (flag()) return;
    }
  }
  WaitHost host(
      *this, awaited, [](void* context, int member) { return (*static_cast<Lacking*>(context))(member); }, &lacking);
  waiting::wait_slowly(node_.policy(), flag, host);
}

Team::Team(Node& node, int rank, int size)
    : node_(node),
      rank_(rank),
      size_(size),
      member_(size),
      base_(size),
      peer_(size),
      inputs_(size),
      outputs_(size),
      exposed_send_(size),
      exposed_recv_(size),
      heap_told_(size),
      heap_settled_(size),
      heap_refused_(size),
      heap_(size) {
  for (auto*& slot : noted_) slot = node.noticeboard.take();
}

Team::~Team() {
  for (auto*& slot : noted_) node_.noticeboard.put_back(slot);
  let_go_of_buffers();
  if (block_allocation_) node_.arena().free(block_allocation_);
}

void Team::close(std::unique_ptr<Team> team) {
  static Team* closing;  // chained by a member: that the host frees a communicator must not need memory
  const std::lock_guard lock(closing_mutex);
  for (int r = 0; r < team->size_; ++r)
    if (r != team->rank_)
      team->member_[r]->closed.fetch_add(1, std::memory_order_release);  // pairs with the load below
  team->next_closing_ = closing;
  closing = team.release();
  // Freeing needs no peer's block: only our own count of members that are through with us.
  for (Team** each = &closing; *each;) {
    Team* const one = *each;
    if (one->mine_->closed.load(std::memory_order_acquire) == std::uint32_t(one->size_ - 1)) {
      *each = one->next_closing_;
      delete one;
    } else {
      each = &one->next_closing_;
    }
  }
}

// ---------------------------------------------------------------- waking

inline void Team::ring_bells(What what, std::uint64_t value) {
  if (mine_->watched.load(std::memory_order_relaxed) == 0) return;
  for (int r = 0; r < size_; ++r) {
    MemberBlock& other = *member_[r];
    if (r == rank_ || other.awaits.load(std::memory_order_acquire) != std::uint32_t(rank_ + 1)) continue;
    // A sleeper that needs more than this would only wake to sleep again.
    if (other.awaits_what.load(std::memory_order_relaxed) != std::uint32_t(what) ||
        other.awaits_value.load(std::memory_order_relaxed) > value)
      continue;
    other.bell.fetch_add(1, std::memory_order_release);  // pairs with the acquire load in wait_slowly
    waiting::futex_wake(other.bell);
  }
}

inline void Team::ring_everybody() {
  if (leader_->sleepers.load(std::memory_order_relaxed) == 0) return;
  leader_->bell.fetch_add(1, std::memory_order_release);  // pairs with the acquire load in wait_slowly
  waiting::futex_wake(leader_->bell);
}

// ---------------------------------------------------------------- meetings

// `word` of every member is, or will be, at least `value`; ours is.
template <class Word>
inline void Team::meet_by(Word word, What what, std::uint64_t value) {
  auto lacking = [&](int m) { return word(*member_[m]).load(std::memory_order_relaxed) < value; };
  if (shape_.meeting == Meeting::tree) return meet_along_tree(lacking);
  if (shape_.meeting == Meeting::gate) {
    gate_target_ += size_;
    const std::uint64_t target = gate_target_;
    // acq_rel: what we have stored is published to whoever sees the sum, and everybody's to whoever completes it.
    if (leader_->gate.fetch_add(1, std::memory_order_acq_rel) + 1 >= target) return ring_everybody();
    return wait([&] { return leader_->gate.load(std::memory_order_acquire) >= target; }, lacking, {everybody});
  }
  for (int i = 1; i < size_; ++i) {
    const int other = rank_ + i < size_ ? rank_ + i : rank_ + i - size_;
    const auto& theirs = word(*member_[other]);
    wait([&] { return theirs.load(std::memory_order_acquire) >= value; }, [&](int m) { return m == other; },
         {std::uint32_t(other + 1), what, value});
  }
}

template <class Lacking>
inline void Team::meet_along_tree(Lacking lacking) {
  const std::uint64_t meeting = ++meetings_;
  for (const int child : children_)
    wait([&] { return member_[child]->gathered.load(std::memory_order_acquire) >= meeting; }, lacking,
         {std::uint32_t(child + 1), What::gathered, meeting});
  if (parent_ >= 0) {
    mine_->gathered.store(meeting, std::memory_order_release);  // pairs with the parent's wait above
    ring_bells(What::gathered, meeting);
    wait([&] { return member_[parent_]->released.load(std::memory_order_acquire) >= meeting; }, lacking,
         {std::uint32_t(parent_ + 1), What::released, meeting});
  }
  if (children_.empty()) return;
  mine_->released.store(meeting, std::memory_order_release);  // pairs with the children's wait above
  ring_bells(What::released, meeting);
}

void Team::join_tree() {
  parent_ = tree().parent(rank_, 0);
  tree().each_part(rank_, 0, [&](int member) {
    if (member != rank_) children_.push_back(member);
  });
}

// ---------------------------------------------------------------- small operations

// Until everybody's `done` is `needed`; the least of them, often ahead of that, which saves the next looks.
std::uint64_t Team::wait_done(Atomic<std::uint64_t> MemberBlock::*done, What what, std::uint64_t needed) {
  std::uint64_t least = ~std::uint64_t{0};
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    std::uint64_t seen = 0;
    wait([&] { return (seen = (member_[r]->*done).load(std::memory_order_acquire)) >= needed; },
         [&](int m) { return m == r; }, {std::uint32_t(r + 1), what, needed});
    least = std::min(least, seen);
  }
  return least;
}

std::byte* Team::reserve_slot(std::uint64_t seq) {
  if (seq > slots && seq - slots > slots_safe_)
    slots_safe_ = wait_done(&MemberBlock::slot_done, What::slot_done, seq - slots);
  return mine_->slot[seq % slots].payload;
}

void Team::publish_slot(std::uint64_t seq, std::size_t bytes) {
  Slot& slot = mine_->slot[seq % slots];
  slot.bytes = bytes;
  slot.seq.store(seq, std::memory_order_release);  // pairs with wait_slot and meet_slots
  ring_bells(What::slot, seq);
}

const std::byte* Team::wait_slot(int member, std::uint64_t seq) {
  Slot& slot = member_[member]->slot[seq % slots];
  wait([&] { return slot.seq.load(std::memory_order_acquire) >= seq; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::slot, seq});
  return slot.payload;
}

void Team::meet_slots(std::uint64_t seq) {
  meet_by([seq](MemberBlock& m) -> auto& { return m.slot[seq % slots].seq; }, What::slot, seq);
  have_met_slots(seq);  // who has published seq has read all of seq - 1
}

void Team::finish_rooted_slot(std::uint64_t seq) {
  mine_->slot_done.store(seq, std::memory_order_release);  // pairs with reserve_slot
  ring_bells(What::slot_done, seq);
}

std::byte* Team::reserve_line(std::uint64_t seq) {
  if (seq > lines && seq - lines > lines_safe_)
    lines_safe_ = wait_done(&MemberBlock::line_done, What::line_done, seq - lines / 2);
  return mine_->small[seq % lines].payload;
}

void Team::publish_line(std::uint64_t seq, std::size_t bytes) {
  mine_->small[seq % lines].seq.store(seq << 8 | bytes, std::memory_order_release);  // pairs with wait_line
  ring_bells(What::line, seq << 8 | bytes);
}

const std::byte* Team::wait_line(int member, std::uint64_t seq) {
  Line& line = member_[member]->small[seq % lines];
  wait([&] { return line.seq.load(std::memory_order_acquire) >= seq << 8; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::line, seq << 8});
  return line.payload;
}

void Team::finish_line(std::uint64_t seq) {
  mine_->line_done.store(seq, std::memory_order_release);  // pairs with reserve_line
  ring_bells(What::line_done, seq);
}

// ---------------------------------------------------------------- large operations

void Team::post_word(std::uint64_t tick) {
  mine_->posted.store(tick, std::memory_order_release);  // pairs with wait_posted and meet
  ring_bells(What::posted, tick);
}

void Team::work_together(std::size_t parts, const std::function<void(std::size_t part)>& work) {
  const std::uint64_t round = ++rounds_together_ & 0xffffffff;
  gate_target_ += size_;
  done_target_ += parts;
  const std::uint64_t target = gate_target_, done_target = done_target_;
  auto& open = leader_->parts;
  auto& done = leader_->done;
  if (leader_->gate.fetch_add(1, std::memory_order_acq_rel) + 1 == target) {
    open.store(round << 32, std::memory_order_release);  // pairs with the loads below: everybody has arrived
    if (parts > 1) ring_everybody();
  }
  for (;;) {
    std::uint64_t next = open.load(std::memory_order_acquire);
    while (next >> 32 == round && (next & 0xffffffff) < parts) {
      if (!open.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      work(next & 0xffffffff);
      // Pairs with the wait below: what a part has stored is there for whoever sees all parts done.
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == done_target) ring_everybody();
      next = open.load(std::memory_order_acquire);
    }
    if (done.load(std::memory_order_acquire) >= done_target) return;
    wait(
        [&] {
          if (done.load(std::memory_order_acquire) >= done_target) return true;
          const std::uint64_t now = open.load(std::memory_order_acquire);
          return now >> 32 == round && (now & 0xffffffff) < parts;
        },
        [&](int m) { return member_[m]->posted.load(std::memory_order_relaxed) < tick_; }, {everybody});
  }
}

// Whoever posts it between calls, or in one that has no buffers, has read all there were.
void Team::post_empty() {
  mine_->consumed.store(++tick_, std::memory_order_release);  // pairs with wait_consumed
  post(tick_);
}

void Team::wait_posted(int member, std::uint64_t tick) {
  const auto& posted = member_[member]->posted;
  wait([&] { return posted.load(std::memory_order_acquire) >= tick; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::posted, tick});
}

void Team::meet(std::uint64_t tick) {
  meet_by([](MemberBlock& m) -> auto& { return m.posted; }, What::posted, tick);
  if (tick > 2) ticks_safe_ = std::max(ticks_safe_, tick - 2);
}

void Team::consume(std::uint64_t tick) {
  mine_->consumed.store(tick, std::memory_order_release);  // pairs with wait_consumed
  ring_bells(What::consumed, tick);
}

void Team::wait_consumed(int member, std::uint64_t tick) {
  const auto& consumed = member_[member]->consumed;
  wait([&] { return consumed.load(std::memory_order_acquire) >= tick; }, [&](int m) { return m == member; },
       {std::uint32_t(member + 1), What::consumed, tick});
}

void Team::wait_all_consumed(std::uint64_t tick) {
  for (int r = 0; r < size_; ++r)
    if (r != rank_) wait_consumed(r, tick);
  if (tick > ticks_safe_) ticks_safe_ = tick;
}

// ---------------------------------------------------------------- reports and checks

bool Team::revoked() const {
  return std::ranges::any_of(member_, [](const MemberBlock* m) { return m->revoked.load(std::memory_order_acquire); });
}

void Team::break_off(const char* why) {
  broken_off = true;
  mine_->broken_off.store(1, std::memory_order_release);  // pairs with inspect
  throw Broken(std::string(why) + ", " + describe_call(mine_->doing.load(std::memory_order_relaxed)));
}

void Team::inspect(std::uint64_t elapsed, bool (*lacking)(void*, int), void* context) {
  if (revoked() || (abandoned && abandoned(abandoned_context))) throw Revoked("the communicator was revoked");
  for (int r = 0; r < size_; ++r) {
    if (member_[r]->broken_off.load(std::memory_order_acquire) == 0) continue;  // pairs with break_off
    broken_off = true;
    throw Broken("rank " + std::to_string(r) + " of a communicator of " + std::to_string(size_) +
                 " could not go on (out of memory?); rank " + std::to_string(rank_) + " was waiting for it " +
                 describe_call(mine_->doing.load(std::memory_order_relaxed)));
  }
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || !peer_[r]->gone()) continue;
    // A peer that has left MPI in good order is missed only if it still owes us something.
    if (peer_[r]->left() && !lacking(context, r)) continue;
    throw Died("rank " + std::to_string(r) + " (process " + std::to_string(peer_[r]->pid) + ") of a communicator of " +
               std::to_string(size_) + " has died; rank " + std::to_string(rank_) + " was waiting for it " +
               describe_call(mine_->doing.load(std::memory_order_relaxed)));
  }
  const double limit = node_.settings().stall_seconds;
  if (limit <= 0 || stall_reported_ || double(elapsed) < limit * 1e9) return;
  stall_reported_ = true;
  std::string whom;
  int named = 0;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || !lacking(context, r)) continue;
    if (++named > 4) break;
    whom += (named > 1 ? "; rank " : "rank ") + std::to_string(r) + " (process " + std::to_string(peer_[r]->pid) +
            "), " + describe_call(member_[r]->doing.load(std::memory_order_relaxed));
  }
  log_line(LogLevel::error, "rank %d of %d has waited %.0f s %s for %s%s", rank_, size_, double(elapsed) * 1e-9,
           describe_call(mine_->doing.load(std::memory_order_relaxed)).c_str(), whom.c_str(),
           named > 4 ? " and others" : "");
}

namespace {
struct CallRecord {
  collectives::Collective collective;
  reducing::Op op;
  reducing::Type type;
  std::uint8_t host;
  std::int32_t root;
  std::uint64_t bytes;
  bool operator==(const CallRecord&) const = default;
};

std::string describe(const CallRecord& c) {
  const collectives::Operation& operation = collectives::operation(c.collective);
  std::string text = std::string(operation.name) + "(" + std::to_string(c.bytes) + " bytes";
  if (operation.reduces() && !c.host) text += std::string(", ") + reducing::name(c.type) + ", " + reducing::name(c.op);
  if (operation.rooted()) text += ", root " + std::to_string(c.root);
  return text + ")";
}
}  // namespace

void Team::report_lengths(int member, std::size_t theirs, std::size_t ours) const {
  const std::string text = "rank " + std::to_string(member) + " has " + std::to_string(theirs) + " bytes where rank " +
                           std::to_string(rank_) + " expects " + std::to_string(ours) + ", " +
                           describe_call(mine_->doing.load(std::memory_order_relaxed));
  if (theirs > ours) throw Truncated(text);
  throw Broken(text);
}

void Team::compare_calls(const collectives::Call& call) {
  CallRecord mine{};
  std::memset(static_cast<void*>(&mine), 0, sizeof mine);
  mine.collective = call.collective;
  mine.op = call.fold ? call.op : reducing::Op::sum;
  mine.type = call.fold ? call.type : reducing::Type::none;
  mine.host = call.fold ? 0 : 1;
  mine.root = call.root;
  mine.bytes = call.bytes;
  const std::uint64_t seq = next_slot();
  std::memcpy(reserve_slot(seq), &mine, sizeof mine);
  publish_slot(seq, sizeof mine);
  meet_slots(seq);
  CallRecord first;
  std::memcpy(&first, slot(0, seq), sizeof first);
  for (int r = 1; r < size_; ++r) {
    CallRecord other;
    std::memcpy(&other, slot(r, seq), sizeof other);
    if (other == first) continue;
    // One rank speaks for all; the others fail as well, with the same text.
    throw Broken("rank 0 calls " + describe(first) + " but rank " + std::to_string(r) + " calls " + describe(other) +
                 " on the same communicator of " + std::to_string(size_) + " ranks");
  }
}

}  // namespace nearfield::team
