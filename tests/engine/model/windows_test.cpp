// Models of windows: the lock and its sleepers, the way from single instructions to stripe locks, post and start,
// complete and wait. The members run engine/windows.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/engine/model/members.hpp"

namespace nearfield::testing {
namespace {

using windows::Lock;
using windows::Patience;
using windows::Window;

#define EXPECT_FOUND(explored) EXPECT_FALSE((explored).good())

// What a run needs beyond its stacks, at the same places in every run.
struct Run {
  Lock lock, second_lock;
  Atomic<std::uint64_t> first, second;  // written by writers, equal whenever none is inside
  Atomic<std::uint64_t> entered, inside, done;
};
Run run;

void begin() {
  std::destroy_at(&run);
  std::construct_at(&run);
}

// What each member does, one after the other: 'w' writes, 'r' reads, under the lock.
using Plan = std::vector<const char*>;

void write_words() {
  for (auto* word : {&run.first, &run.second}) put(word, get(word) + 1);
}
void read_words() {
  const std::uint64_t first = get(&run.first);
  require(get(&run.second) == first, "a writer among readers");
}
// After all that a member does.
void check_sum(const Plan& plan) {
  if (run.done.fetch_add(1) + 1 != plan.size()) return;
  std::uint64_t writes = 0;
  for (const char* each : plan)
    for (; *each; ++each) writes += *each == 'w';
  require(get(&run.first) == writes, "a writer among writers");
}

// ---------------------------------------------------------------- the lock alone
Explored explore_lock(const Plan& plan, const Options& options = {}) {
  const auto use = [](bool exclusive) {
    const std::uint32_t ticket = run.lock.ask();
    while (!run.lock.admits(ticket, exclusive)) pause_process();
    require(run.entered.fetch_add(1, std::memory_order_relaxed) == ticket, "overtaken");
    if (exclusive) {
      write_words();
    } else {
      run.lock.enter();
      read_words();
    }
    run.lock.leave(exclusive, false);
  };
  const std::function<void(int)> body = [&plan, use](int me) {
    for (const char* each = plan[std::size_t(me)]; *each; ++each) use(*each == 'w');
    check_sum(plan);
  };
  return explore(int(plan.size()), [&] { return begin(), body; }, options);
}

TEST(Lock, ExcludesAndIsHadInTurn) {
  for (const Memory memory : {Memory::x86, Memory::language}) {
    for (const Plan& plan : {Plan{"ww", "ww"}, {"wr", "wr"}, {"rw", "wr"}, {"rr", "ww"}, {"rr", "rr"}})
      EXPECT_GOOD(explore_lock(plan, {.memory = memory})) << ::testing::PrintToString(plan);
    for (const Plan& plan : {Plan{"w", "w", "w"}, {"w", "r", "r"}, {"w", "w", "r"}, {"r", "r", "r"}})
      EXPECT_GOOD(explore_lock(plan, {.memory = memory, .preemptions = 3})) << ::testing::PrintToString(plan);
    EXPECT_GOOD(explore_lock({"wr", "rw", "rr"}, {.memory = memory, .preemptions = 1}));
    EXPECT_GOOD(explore_lock({"w", "r", "r", "w"}, {.memory = memory, .preemptions = 1}));
  }
  EXPECT_GT(explore_lock({"ww", "ww"}).states, 200u);
}

TEST(Lock, TheModelNotices) {
  EXPECT_FOUND(explore_lock({"w", "w"}, {.mutation = {.split_updates = true}}));
  EXPECT_FOUND(explore_lock({"r", "r", "w"}, {.preemptions = 4, .mutation = {.blind_compares = true}}));
  EXPECT_FOUND(explore_lock({"w", "w"}, {.mutation = {.unordered = true}}));
  for (const Plan& plan : {Plan{"w", "w"}, {"w", "r"}}) {
    EXPECT_FOUND(explore_lock(plan, {.memory = Memory::language, .mutation = {.no_release = true}}));
    EXPECT_FOUND(explore_lock(plan, {.memory = Memory::language, .mutation = {.no_acquire = true}}));
  }
}

// None leaves before all are inside.
Explored explore_together(int count, bool exclusive) {
  const std::function<void(int)> body = [=](int) {
    const std::uint32_t ticket = run.lock.ask();
    while (!run.lock.admits(ticket, exclusive)) pause_process();
    if (!exclusive) run.lock.enter();
    run.inside.fetch_add(1);
    while (run.inside.load() < std::uint64_t(count)) pause_process();
    run.lock.leave(exclusive, false);
  };
  return explore(count, [&] { return begin(), body; });
}

TEST(Lock, ReadersHaveItTogether) {
  EXPECT_GOOD(explore_together(2, false));
  EXPECT_GOOD(explore_together(3, false));
  EXPECT_FOUND(explore_together(2, true));
}

// ---------------------------------------------------------------- readers that hold other locks
// What a reader is that has come in and goes on counting as one that waits.
enum class Urgent : std::uint8_t { ceases, forgets };

// As Window::acquire_urgently does, whose patience may end at any moment, or never.
void come_in(Lock& lock, bool overtakes, Urgent urgent = Urgent::ceases) {
  if (lock.enter_free()) return;
  const std::uint32_t phase = lock.call();
  while (!lock.come_in(phase, [&](std::uint32_t) { return overtakes; })) pause_process();
  if (urgent == Urgent::forgets) lock.call();
}

// 'p': a reader that never overtakes, 'i': one that does as soon as it can.
Explored explore_urgent(const Plan& plan, const Options& options = {}, Urgent urgent = Urgent::ceases) {
  const std::function<void(int)> body = [=](int me) {
    for (const char* each = plan[std::size_t(me)]; *each; ++each) {
      const bool exclusive = *each == 'w';
      if (exclusive || *each == 'r') {
        const std::uint32_t ticket = run.lock.ask();
        while (!run.lock.admits(ticket, exclusive)) pause_process();
        if (!exclusive) run.lock.enter();
      } else {
        come_in(run.lock, *each == 'i', urgent);
      }
      if (exclusive) write_words();
      else read_words();
      run.lock.leave(exclusive, false);
    }
    check_sum(plan);
  };
  return explore(int(plan.size()), [&] { return begin(), body; }, options);
}

// Nobody who has asked is left outside, whatever comes after what.
TEST(Lock, UrgentReadersAreExcludedAndExclude) {
  for (const Memory memory : {Memory::x86, Memory::language}) {
    for (const Plan& plan : {Plan{"w", "i"}, {"w", "p"}, {"ww", "i"}, {"ww", "p"}, {"w", "ii"}, {"r", "i"}})
      EXPECT_GOOD(explore_urgent(plan, {.memory = memory})) << ::testing::PrintToString(plan);
    const int several = memory == Memory::x86 ? 3 : 1;
    for (const Plan& plan : {Plan{"r", "w", "i"}, {"r", "w", "p"}, {"w", "w", "p"}})
      EXPECT_GOOD(explore_urgent(plan, {.memory = memory, .preemptions = several})) << ::testing::PrintToString(plan);
    EXPECT_GOOD(explore_urgent({"w", "i", "p"}, {.memory = memory, .preemptions = memory == Memory::x86 ? 1 : 0}));
  }
  for (const Plan& plan : {Plan{"ww", "ri", "ip"}, {"ww", "pi", "ii"}})
    EXPECT_GOOD(explore_urgent(plan, {.preemptions = 1})) << ::testing::PrintToString(plan);
  for (const Plan& plan : {Plan{"w", "w", "i", "p"}, {"w", "r", "i", "p"}, {"w", "r", "i", "i"}})
    EXPECT_GOOD(explore_urgent(plan, {.preemptions = 1})) << ::testing::PrintToString(plan);
}

TEST(Lock, TheModelNoticesUrgentReaders) {
  EXPECT_FOUND(explore_urgent({"www", "i"}, {}, Urgent::forgets));
  EXPECT_FOUND(explore_urgent({"w", "i"}, {.mutation = {.unordered = true}}));
  EXPECT_FOUND(explore_urgent({"w", "p"}, {.mutation = {.split_updates = true}}));
  EXPECT_FOUND(explore_urgent({"r", "w", "i"}, {.preemptions = 4, .mutation = {.blind_compares = true}}));
  EXPECT_FOUND(explore_urgent({"w", "i"}, {.memory = Memory::language, .mutation = {.no_release = true}}));
  EXPECT_FOUND(explore_urgent({"w", "i"}, {.memory = Memory::language, .mutation = {.no_acquire = true}}));
}

// Two readers, each of which holds what the other one asks for, and a writer that waits for each of them.
TEST(Lock, UrgentReadersCloseNoRing) {
  const auto explored = [](bool urgent) {
    const std::function<void(int)> body = [=](int me) {
      Lock& first = me % 2 ? run.second_lock : run.lock;
      Lock& second = me % 2 ? run.lock : run.second_lock;
      if (me >= 2) {
        while (run.inside.load() < 2) pause_process();
        const std::uint32_t ticket = first.ask();
        while (!first.admits(ticket, true)) pause_process();
        return void(first.leave(true, false));
      }
      const std::uint32_t ticket = first.ask();
      while (!first.admits(ticket, false)) pause_process();
      first.enter();
      run.inside.fetch_add(1);
      while (run.inside.load() < 2) pause_process();
      if (urgent) {
        come_in(second, true);
      } else {
        const std::uint32_t other = second.ask();
        while (!second.admits(other, false)) pause_process();
        second.enter();
      }
      second.leave(false, false);
      first.leave(false, false);
    };
    return explore(4, [&] { return begin(), body; },
                   {.memory = Memory::x86, .store_buffers = false, .preemptions = urgent ? 1 : -1});
  };
  EXPECT_GOOD(explored(true));
  EXPECT_TRUE(explored(false).deadlocked);
}

// A writer that is waiting is not overtaken for ever: patience grows, and begins anew.
TEST(Lock, PatienceGrowsUntilAWriterHasBeenThere) {
  begin();
  Lock& lock = run.lock;
  lock.ask();
  lock.enter();
  const std::uint32_t writer = lock.ask(), phase = lock.call();
  Patience unexpected, late;
  std::uint64_t now = 1, grown = Patience::least;
  const auto tries = [&](Patience& patience, std::uint64_t at, std::uint32_t called) {
    return lock.come_in(called, [&](std::uint32_t so_far) { return patience.ends(so_far, at); }).has_value();
  };
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t other = lock.call();
    EXPECT_FALSE(tries(unexpected, now, other));
    EXPECT_FALSE(tries(late, now + grown / 2, phase));
    EXPECT_FALSE(tries(unexpected, now + grown - 1, other));
    EXPECT_TRUE(tries(unexpected, now += grown, other));
    EXPECT_FALSE(tries(late, now + grown / 2, phase)) << "another one has just overtaken";
    lock.leave(false, false);
    grown = std::min(2 * grown, Patience::most);
  }
  const auto never = [](std::uint32_t) { return false; };
  EXPECT_FALSE(lock.admits(writer, true));
  lock.leave(false, false);
  EXPECT_TRUE(lock.admits(writer, true));
  EXPECT_FALSE(lock.come_in(phase, [](std::uint32_t) { return true; }));
  EXPECT_TRUE(lock.leave(true, false).has_readers());
  EXPECT_TRUE(lock.come_in(phase, never));
  // The writer has been there.
  const std::uint32_t last = lock.ask();
  EXPECT_FALSE(lock.admits(last, true));
  EXPECT_FALSE(lock.come_in(lock.call(), [](std::uint32_t so_far) { return so_far != 0; }));
}

// Tickets wrap.
TEST(Lock, GoesOnAfterItsLastTicket) {
  begin();
  Lock& lock = run.lock;
  struct Words {
    Atomic<std::uint32_t> sleepers, tickets;
    Atomic<std::uint64_t> turn;
    Atomic<std::uint32_t> urgent;
  };
  static_assert(sizeof(Words) == sizeof(Lock));
  auto& words = reinterpret_cast<Words&>(lock);
  words.tickets.store(~0u);
  words.turn.store(~std::uint64_t{0});
  const std::uint32_t writer = lock.ask(), reader = lock.ask(), last = lock.ask();
  EXPECT_TRUE(lock.admits(writer, true));
  EXPECT_FALSE(lock.admits(reader, false));
  lock.leave(true, false);
  EXPECT_TRUE(lock.admits(reader, false));
  EXPECT_FALSE(lock.admits(last, true));
  lock.enter();
  EXPECT_FALSE(lock.admits(last, true));
  lock.leave(false, false);
  EXPECT_TRUE(lock.admits(last, true));
  // Urgent readers, between the first and the last tickets and phases.
  begin();
  words.urgent.store(255u << 24);
  lock.ask();
  lock.enter();
  const std::uint32_t next = lock.ask(), phase = lock.call();
  EXPECT_TRUE(lock.come_in(phase, [](std::uint32_t) { return true; }));  // turn.write is ~0
  lock.leave(false, false);
  EXPECT_FALSE(lock.admits(next, true));
  lock.leave(false, false);
  EXPECT_TRUE(lock.admits(next, true));
  const std::uint32_t again = lock.call();
  lock.leave(true, false);
  EXPECT_TRUE(lock.come_in(again, [](std::uint32_t) { return false; }));
  const std::uint32_t later = lock.ask();
  EXPECT_FALSE(lock.admits(later, true));
  lock.leave(false, false);
  EXPECT_TRUE(lock.admits(later, true));
}

// ---------------------------------------------------------------- members of a window
using Body = std::function<void(Window&, int)>;
Explored explore_window(Members& members, const Body& body, const Options& options = {}) {
  return explore(
      members.count(),
      [&] {
        begin();
        members.renew();
        return [&](int i) { body(members.window(i), i); };
      },
      options);
}

// 'u' reads while it holds another lock.
Explored explore_members(Members& members, const Plan& plan, const Options& options = {}) {
  const Body body = [&plan, &members](Window& window, int me) {
    for (const char* each = plan[std::size_t(me)]; *each; ++each) {
      members.held_locks(me) = *each == 'u';  // as if it held one elsewhere
      require(window.lock(0, *each == 'w', true), "not to be had");
      if (*each == 'w') write_words();
      else read_words();
      require(window.unlock(0), "not held");
    }
    check_sum(plan);
  };
  return explore_window(members, body, options);
}

constexpr std::size_t room = 64;

// When oversubscribed, where members sleep soon, whoever gives a lock on does so by a read-modify-write: no wake is
// missed.
TEST(Sleeping, ALockMissesNoWake) {
  Members two({.count = 2, .sleeps = true, .window_bytes = room});
  for (const Plan& plan : {Plan{"w", "w"}, {"w", "r"}, {"ww", "r"}, {"rw", "w"}, {"w", "u"}, {"ww", "u"}}) {
    const Explored explored = explore_members(two, plan, {.preemptions = 2});
    EXPECT_GOOD(explored) << ::testing::PrintToString(plan);
    EXPECT_EQ(explored.naps, 0) << explored.trace;
  }
  EXPECT_GT(explore_members(two, {"w", "w"}, {.mutation = {.no_wakes = true}}).naps, 0);
  Members three({.count = 3, .sleeps = true, .window_bytes = room});
  for (const Plan& plan : {Plan{"w", "w", "w"}, {"w", "r", "r"}, {"w", "r", "w"}, {"w", "w", "u"}, {"w", "r", "u"}}) {
    const Explored explored = explore_members(three, plan, {.store_buffers = false, .preemptions = 1});
    EXPECT_GOOD(explored) << ::testing::PrintToString(plan);
    EXPECT_EQ(explored.naps, 0) << explored.trace;
  }
}

// Elsewhere the writer looks for sleepers without a fence behind its store: a wake that is missed costs one nap.
TEST(Sleeping, AMissedWakeOfALockCostsOneNap) {
  Members two({.count = 2, .sleeps = true, .window_bytes = room});
  const Plan plan{"w", "w"};
  const Body body = [&plan, &two](Window& window, int me) {
    require(window.lock(0, true, true), "not to be had");
    write_words();
    two.process(me).policy().oversubscribed = false;
    require(window.unlock(0), "not held");
    check_sum(plan);
  };
  const Explored explored = explore_window(two, body);
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 1);
  EXPECT_EQ(explore_window(two, body, {.store_buffers = false}).naps, 0);
}

// ---------------------------------------------------------------- atomicity
// Adds the first word of an element, as a kernel does.
void add_words(void* const* outs, std::size_t, const void* const* ins, std::size_t, std::size_t) {
  std::uint64_t operand;
  std::memcpy(&operand, ins[1], sizeof operand);
  put(outs[0], get(ins[0]) + operand);
}

// What each member adds to one word: 's' by an instruction if it may, 'l' under locks.
Explored explore_adding(Members& members, const Plan& plan, const Options& options = {}) {
  const Body body = [&plan](Window& window, int me) {
    std::byte* const at = window.memory(0).base;
    const std::uint64_t one[2] = {1, 0};
    const auto* const from = reinterpret_cast<const std::byte*>(one);
    std::uint64_t sum = 0;
    for (const char* each = plan[std::size_t(me)]; *each; ++each)
      window.accumulate(0, at, from, nullptr, 1,
                        {add_words, reducing::Op::sum, reducing::Type::u64, false, *each == 's' ? 8u : 16u});
    if (run.done.fetch_add(1) + 1 != plan.size()) return;
    for (const char* each : plan) sum += std::strlen(each);
    require(get(at) == sum, "an update is lost");
  };
  return explore_window(members, body, options);
}

TEST(Accumulates, NoneIsLostWhenAWindowGoesOverToLocks) {
  Members two({.count = 2, .window_bytes = room}), three({.count = 3, .window_bytes = room});
  for (const Memory memory : {Memory::x86, Memory::language}) {
    for (const Plan& plan : {Plan{"s", "l"}, {"ss", "l"}, {"s", "ls"}, {"l", "l"}})
      EXPECT_GOOD(explore_adding(two, plan, {.memory = memory})) << ::testing::PrintToString(plan);
    for (const Plan& plan : {Plan{"s", "s", "l"}, {"s", "l", "l"}})
      EXPECT_GOOD(explore_adding(three, plan, {.memory = memory, .preemptions = 1})) << ::testing::PrintToString(plan);
  }
}

TEST(Accumulates, TheModelNotices) {
  Members two({.count = 2, .window_bytes = room});
  for (const Memory memory : {Memory::x86, Memory::language}) {
    // Who is in an instruction has said so too late.
    EXPECT_FOUND(explore_adding(two, {"s", "l"}, {.memory = memory, .mutation = {.no_barriers = true}}));
    EXPECT_FOUND(explore_adding(two, {"s", "l"}, {.memory = memory, .mutation = {.split_updates = true}}));
  }
  // It is the store buffer alone.
  EXPECT_GOOD(explore_adding(two, {"s", "l"}, {.store_buffers = false, .mutation = {.no_barriers = true}}));
  EXPECT_FOUND(explore_adding(two, {"l", "l"}, {.memory = Memory::language, .mutation = {.no_release = true}}));
  EXPECT_FOUND(explore_adding(two, {"l", "l"}, {.memory = Memory::language, .mutation = {.no_acquire = true}}));
}

// ---------------------------------------------------------------- post, start, complete, wait
// The first member exposes its word to all others, `rounds` times; each of them writes its own one.
Explored explore_exposing(Members& members, int rounds, const Options& options = {}) {
  const Body body = [&members, rounds](Window& window, int me) {
    std::vector<int> others;
    for (int m = 1; m < members.count(); ++m) others.push_back(m);
    const int first[] = {0};
    std::byte* const words = window.memory(0).base;
    for (std::uint64_t round = 1; round <= std::uint64_t(rounds); ++round) {
      if (me == 0) {
        require(window.post(others, true), "exposed already");
        require(window.wait(), "not exposed");
        for (const int m : others) require(get(words + 8 * m) == round, "complete, and not there");
      } else {
        require(window.start(first, true), "started already");
        require(get(words + 8 * me) == round - 1, "written too early");
        put(words + 8 * me, round);
        require(window.complete(), "not started");
      }
    }
  };
  return explore_window(members, body, options);
}

TEST(Exposing, WhatIsCompleteIsThere) {
  Members two({.count = 2, .window_bytes = room}), three({.count = 3, .window_bytes = room});
  for (const Memory memory : {Memory::x86, Memory::language}) {
    EXPECT_GOOD(explore_exposing(two, 2, {.memory = memory}));
    EXPECT_GOOD(explore_exposing(three, 2, {.memory = memory, .preemptions = 2}));
  }
  EXPECT_FOUND(explore_exposing(two, 1, {.mutation = {.unordered = true}}));
  EXPECT_FOUND(explore_exposing(two, 1, {.memory = Memory::language, .mutation = {.no_release = true}}));
  EXPECT_FOUND(explore_exposing(two, 1, {.memory = Memory::language, .mutation = {.no_acquire = true}}));
}

TEST(Exposing, OversubscribedRanksMissNoWake) {
  Members two({.count = 2, .sleeps = true, .window_bytes = room});
  const Explored explored = explore_exposing(two, 2);
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 0) << explored.trace;
  EXPECT_GT(explore_exposing(two, 1, {.mutation = {.no_wakes = true}}).naps, 0);
}

}  // namespace
}  // namespace nearfield::testing
