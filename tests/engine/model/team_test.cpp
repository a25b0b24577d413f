// Models of what the members of a team do to each other: slots, lines, rings of copy buffers, meetings, buffer
// exchanges, work done together, sleeping. The members run engine/context.
#include <gtest/gtest.h>

#include <vector>

#include "engine/collectives/pieces/chunks.hpp"
#include "engine/context/pool.hpp"
#include "tests/engine/model/members.hpp"

namespace nearfield::testing {
namespace {

using collectives::Chunk;
using collectives::Collective;
using context::BufferUse;
using context::CollectiveContext;

// Explores `body(context, member)`; `before` is done first, without exploring.
using Body = std::function<void(CollectiveContext&, int)>;
Explored explore_team(Members& members, const Body& body, const Options& options = {}, const Body& before = {}) {
  return explore(
      members.count(),
      [&] {
        members.renew();
        if (before) run_in_turn(members.count(), [&](int i) { before(members.team(i).context(), i); });
        return [&](int i) { body(members.team(i).context(), i); };
      },
      options);
}

#define EXPECT_FOUND(explored) EXPECT_FALSE((explored).good())

// ---------------------------------------------------------------- rings of records
// An operation of everybody (root -1), or of a root. The payload of operation n is n.
struct Care {
  bool reserves = true, waits = true, finishes = true;
};
template <class Ring>
void use_record(CollectiveContext& context, Ring& ring, int me, int root, Care care) {
  const std::uint64_t seq = ring.next();
  auto must_be = [&](const std::byte* payload) { require(get(payload) == seq, "a record of another operation"); };
  if (root < 0 || root == me) {
    put(care.reserves ? ring.reserve(seq) : ring.at(me, seq), seq);
    ring.publish(seq, sizeof seq);
  }
  if (root < 0) {
    if (care.waits) ring.meet(seq);
    else ring.have_met(seq);
    for (int r = 0; r < context.size(); ++r) must_be(ring.at(r, seq));
    return;
  }
  if (root != me) must_be(care.waits ? ring.wait(root, seq) : ring.at(root, seq));
  if (care.finishes) ring.consume(seq);
}

// ---------------------------------------------------------------- slots
void use_slot(CollectiveContext& context, int me, int root, Care care = {}) {
  use_record(context, context.slots, me, root, care);
}
// As many operations as there are slots, so that the next ones use slots again.
void fill_slots(CollectiveContext& context, int me) {
  for (unsigned i = 0; i < context::Slots::entries; ++i) use_slot(context, me, 0);
}

const std::vector<std::vector<int>> mixtures{{0, 0}, {-1, 0}, {0, -1}, {0, 1}, {-1, -1}, {1, 0}};

Explored explore_slots(Members& members, const std::vector<int>& roots, const Options& options = {}) {
  const Body body = [&](CollectiveContext& context, int me) {
    for (const int root : roots) use_slot(context, me, root);
  };
  return explore_team(members, body, options, fill_slots);
}

// The root has filled its slots and goes on, the others begin to read.
Explored explore_reuse(Members& members, unsigned times, Care care = {}, const Options& options = {}) {
  const Body body = [&](CollectiveContext& context, int me) {
    for (unsigned i = 0; i < times; ++i) use_slot(context, me, 0, care);
  };
  const Body before = [](CollectiveContext& context, int me) {
    if (me == 0) fill_slots(context, me);
  };
  return explore_team(members, body, options, before);
}

TEST(Slots, AreNeverOverwrittenBeforeTheyAreRead) {
  Members two({.count = 2}), three({.count = 3});
  for (const auto& roots : mixtures) EXPECT_GOOD(explore_slots(two, roots)) << ::testing::PrintToString(roots);
  EXPECT_GT(explore_slots(two, {-1, -1}).states, 200u);
  EXPECT_GOOD(explore_slots(three, {0, 1}, {.preemptions = 2}));
  EXPECT_GOOD(explore_reuse(two, 3));
  EXPECT_GOOD(explore_reuse(three, 1));
}

TEST(Slots, TheModelNotices) {
  Members two({.count = 2});
  EXPECT_FOUND(explore_reuse(two, 2, {.reserves = false}));
  EXPECT_FOUND(explore_reuse(two, 2, {.finishes = false}));
  EXPECT_FOUND(explore_slots(two, {0, 0}, {.mutation = {.unordered = true}}));
}

// ---------------------------------------------------------------- lines
void use_line(CollectiveContext& context, int me, int root, bool reserves = true) {
  use_record(context, context.lines, me, root, {.reserves = reserves});
}

TEST(Lines, AreNeverOverwrittenBeforeTheyAreRead) {
  Members two({.count = 2}), three({.count = 3});
  // The root has filled the ring and goes on when the others have read half of it.
  auto explore_lines = [](Members& members, unsigned read, unsigned times, bool reserves = true) {
    const Body before = [&](CollectiveContext& context, int me) {
      for (unsigned i = 0; i < (me ? read : context::Lines::entries); ++i) use_line(context, me, 0);
    };
    const Body body = [&](CollectiveContext& context, int me) {
      for (unsigned i = 0; i < times; ++i) use_line(context, me, 0, reserves);
    };
    return explore_team(members, body, {}, before);
  };
  constexpr unsigned half = context::Lines::entries / 2;
  EXPECT_GOOD(explore_lines(two, half - 1, 2));
  EXPECT_GOOD(explore_lines(two, half, 3));
  EXPECT_GOOD(explore_lines(three, half, 1));
  EXPECT_FOUND(explore_lines(two, 0, 2, false));
  // From an even start, with several roots.
  const Body before = [](CollectiveContext& context, int me) {
    for (unsigned i = 0; i < context::Lines::entries; ++i) use_line(context, me, 0);
  };
  for (const std::vector<int>& roots : std::vector<std::vector<int>>{{0, 0, 0}, {0, 1, 0}, {1, 0, 1}}) {
    const Body body = [&](CollectiveContext& context, int me) {
      for (const int root : roots) use_line(context, me, root);
    };
    EXPECT_GOOD(explore_team(two, body, {}, before)) << ::testing::PrintToString(roots);
    EXPECT_FOUND(explore_team(two, body, {.mutation = {.unordered = true}}, before));
  }
}

// ---------------------------------------------------------------- rings of copy buffers
// Everybody stages and reads (root -1), or chunks go from a root to all, or from all to the root.
void use_ring(CollectiveContext& context, int me, int root, unsigned rounds,
              Collective collective = Collective::bcast) {
  auto must_be = [&](int member, std::uint64_t tick) {
    require(get(context.rounds.buffer(member, tick)) == tick, "a buffer of another round");
  };
  if (root < 0) {
    context.rounds.begin(sizeof(std::uint64_t));  // the first call takes a tick
    const std::uint64_t first = context.ticks.now() + 1;
    auto bytes = [](std::size_t) { return sizeof(std::uint64_t); };
    auto stage = [&](std::size_t k, std::byte* buffer) { put(buffer, first + k); };
    auto keep = [](std::size_t) {};
    auto read = [&](std::size_t, std::uint64_t tick) {
      for (int r = 0; r < context.size(); ++r) must_be(r, tick);
    };
    return collectives::all_by_rounds(context, sizeof(std::uint64_t), rounds, BufferUse::copied, bytes, stage, keep,
                                      read);
  }
  constexpr std::size_t length = sizeof(std::uint64_t);
  const int reader = collective == Collective::bcast ? -1 : root;
  auto write = [&](const Chunk& c) {
    put(context.rounds.my_buffer(c.tick, length, BufferUse::copied, reader), c.tick);
  };
  auto keep = [](const Chunk&) {};
  auto read = [&](const Chunk& c) {
    for (int r = 0; r < context.size(); ++r) {
      if (r == me || (reader < 0 && r != root)) continue;
      context.ticks.wait(r, c.tick);
      must_be(r, c.tick);
    }
    return std::uint64_t{0};
  };
  const collectives::Call call{.collective = collective, .bytes = rounds * length, .root = root};
  collectives::rooted_by_chunks(context, call, [](std::size_t) { return length; }, write, keep, read);
}

// From a root that does not wait until its buffers have been read.
void overrun_ring(CollectiveContext& context, int me, int root, unsigned rounds) {
  context.rounds.begin_rooted(sizeof(std::uint64_t));
  for (std::uint64_t tick = context.ticks.now() + 1; tick <= context.ticks.now() + rounds; ++tick) {
    if (root == me) {
      put(context.rounds.my_buffer(tick, sizeof tick, BufferUse::copied), tick);
      context.rounds.post(tick);
    } else {
      context.ticks.wait(root, tick);
      require(get(context.rounds.buffer(root, tick)) == tick, "a buffer of another round");
      context.ticks.consume(tick);
    }
  }
  context.ticks.advance(rounds);
  if (root == me) context.ticks.consume(context.ticks.now());
}

TEST(Ring, BuffersAreFreeWhenTheyAreFilled) {
  Members two({.count = 2}), three({.count = 3});
  const Body before = [](CollectiveContext& context, int me) { use_ring(context, me, -1, 4); };
  for (const auto& roots : mixtures) {
    const Body body = [&](CollectiveContext& context, int me) {
      for (const int root : roots) use_ring(context, me, root, 2);
    };
    EXPECT_GOOD(explore_team(two, body, {.preemptions = 2}, before)) << ::testing::PrintToString(roots);
  }
  EXPECT_GOOD(explore_team(
      two, [](CollectiveContext& context, int me) { use_ring(context, me, 0, 5); }, {.preemptions = 4}, before));
  const Body to_root = [](CollectiveContext& context, int me) { use_ring(context, me, 0, 5, Collective::gather); };
  EXPECT_GOOD(explore_team(two, to_root, {.preemptions = 2}, before));
  const Body there_and_back = [](CollectiveContext& context, int me) {
    use_ring(context, me, 0, 3, Collective::gather);
    use_ring(context, me, 1, 3, Collective::gather);
    use_ring(context, me, 0, 2);
  };
  EXPECT_GOOD(explore_team(two, there_and_back, {.preemptions = 1}, before));
  EXPECT_GOOD(explore_team(
      three, [](CollectiveContext& context, int me) { use_ring(context, me, -1, 2); }, {.preemptions = 1}, before));
}

TEST(Ring, TheModelNotices) {
  Members two({.count = 2});
  EXPECT_FOUND(explore_team(two, [](CollectiveContext& context, int me) { overrun_ring(context, me, 0, 6); }));
  const Body body = [](CollectiveContext& context, int me) { use_ring(context, me, -1, 2); };
  EXPECT_FOUND(explore_team(two, body, {.mutation = {.unordered = true}}));
}

// ---------------------------------------------------------------- meetings
// Everybody tells a number before each meeting; it stays until the next but one.
void meet(CollectiveContext& context, int me, int times) {
  for (int i = 0; i < times; ++i) {
    const std::uint64_t seq = context.slots.next();
    put(context.slots.reserve(seq), seq);
    context.slots.publish(seq, sizeof seq);
    context.slots.meet(seq);
    for (int r = 0; r < context.size(); ++r) require(get(context.slots.at(r, seq)) == seq, "not everybody has arrived");
  }
  (void)me;
}

TEST(Meetings, NobodyLeavesBeforeAllHaveArrived) {
  for (const Meeting meeting : {Meeting::flags, Meeting::gate, Meeting::tree}) {
    Members two({.count = 2, .meeting = meeting}), three({.count = 3, .meeting = meeting});
    EXPECT_GOOD(explore_team(two, [](CollectiveContext& context, int me) { meet(context, me, 3); }));
    EXPECT_GOOD(
        explore_team(three, [](CollectiveContext& context, int me) { meet(context, me, 2); }, {.preemptions = 2}));
    if (meeting == Meeting::gate) continue;  // a read-modify-write comes behind all stores
    EXPECT_FOUND(explore_team(two, [](CollectiveContext& context, int me) { meet(context, me, 1); },
                              {.mutation = {.unordered = true}}));
  }
}

TEST(Meetings, ATreeOfTwoLevels) {
  Members four({.count = 4, .meeting = Meeting::tree});
  ASSERT_EQ(four.team(0).context().tree().levels(), 2);
  EXPECT_GOOD(explore_team(four, [](CollectiveContext& context, int me) { meet(context, me, 1); }, {.preemptions = 2}));
}

TEST(Meetings, TheModelNoticesAGateThatIsNotAtomic) {
  Members two({.count = 2, .meeting = Meeting::gate});
  const Options split{.mutation = {.split_updates = true}};
  EXPECT_FOUND(explore_team(two, [](CollectiveContext& context, int me) { meet(context, me, 1); }, split));
}

// ---------------------------------------------------------------- buffer exchanges and work done together
// Parts that each member has done; every part once.
struct Parts {
  Atomic<std::uint64_t> done[4][2];
};
Parts parts;

void exchange(CollectiveContext& context, int me, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t note = std::uint64_t(me) << 8 | unsigned(i);
    std::byte* const mine = context.team().segment_of(me) + 64 * (i + 1);  // any memory that peers reach
    require(context.exchange.begin({mine, 8}, {}, note), "out of reach");
    for (int r = 0; r < context.size(); ++r) {
      require(context.exchange.note_of(r) == (std::uint64_t(r) << 8 | unsigned(i)), "an exchange of another call");
      require(context.exchange.send_of(r) == context.team().segment_of(r) + 64 * (i + 1), "a buffer of another call");
    }
    context.exchange.end();
  }
}

TEST(BufferExchanges, AreThoseOfTheCall) {
  for (const Meeting meeting : {Meeting::flags, Meeting::gate, Meeting::tree}) {
    Members two({.count = 2, .meeting = meeting}), three({.count = 3, .meeting = meeting});
    EXPECT_GOOD(explore_team(two, [](CollectiveContext& context, int me) { exchange(context, me, 4); }));
    EXPECT_GOOD(
        explore_team(three, [](CollectiveContext& context, int me) { exchange(context, me, 3); }, {.preemptions = 2}));
  }
  Members gated({.count = 2, .meeting = Meeting::gate});
  const Options split{.mutation = {.split_updates = true}};
  EXPECT_FOUND(explore_team(gated, [](CollectiveContext& context, int me) { exchange(context, me, 2); }, split));
}

void work(CollectiveContext& context, int me, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    std::byte* const mine = context.team().segment_of(me) + 64 * (i + 1);
    const bool good = context.exchange.work({mine, 8}, {}, 0, 2, [&](std::size_t part) {
      for (int r = 0; r < context.size(); ++r)
        require(context.exchange.send_of(r) == context.team().segment_of(r) + 64 * (i + 1), "a buffer of another call");
      require(get(&parts.done[i][part]) == 0, "a part is done twice");
      put(&parts.done[i][part], 1);
    });
    require(good, "out of reach");
    for (auto& each : parts.done[i]) require(get(&each) == 1, "left before all was done");
    context.exchange.end();
  }
}

Explored explore_work(Members& members, int rounds, const Options& options = {}) {
  const Body clear = [](CollectiveContext&, int) { std::memset(static_cast<void*>(&parts), 0, sizeof parts); };
  return explore_team(members, [&](CollectiveContext& context, int me) { work(context, me, rounds); }, options, clear);
}

TEST(Together, EveryPartIsDoneOnceAndAfterAllHaveArrived) {
  Members two({.count = 2, .meeting = Meeting::gate}), three({.count = 3, .meeting = Meeting::gate});
  EXPECT_GOOD(explore_work(two, 2, {.preemptions = 3}));
  EXPECT_GOOD(explore_work(three, 1, {.preemptions = 2}));
  EXPECT_FOUND(explore_work(two, 1, {.mutation = {.blind_compares = true}}));
  EXPECT_FOUND(explore_work(two, 1, {.mutation = {.split_updates = true}}));
}

// ---------------------------------------------------------------- operations that may overlap others
struct Meets final : context::Task {
  explicit Meets(int me) : me(me) {}
  void run(CollectiveContext& context) override { meet(context, me, 1); }
  const int me;
};
// Issues as many, one in each further context, and looks until they are done; between them a meeting on the first
// context.
void overlap(CollectiveContext& context, int me, int count) {
  team::Team& team = context.team();
  Meets pending[] = {Meets(me), Meets(me)};
  for (int i = 0; i < count; ++i) team.contexts().issue(pending[i]);
  if (count > 1) meet(context, me, 1);
  for (int i = 0; i < count; ++i)
    while (!pending[i].complete())
      if (!team.process().progress().poll()) processor::pause();
  for (int i = 0; i < count; ++i) require(!pending[i].error(), "a body has failed");
}

TEST(ContextPool, MeetWhateverElseGoesOn) {
  Members two({.count = 2});
  const Body one = [](CollectiveContext& context, int me) { overlap(context, me, 1); };
  EXPECT_GOOD(explore_team(two, one, {.preemptions = 2}));
  EXPECT_GOOD(
      explore_team(two, [](CollectiveContext& context, int me) { overlap(context, me, 2); }, {.preemptions = 1}));
  EXPECT_FOUND(explore_team(two, one, {.preemptions = 2, .mutation = {.unordered = true}}));
}

// ---------------------------------------------------------------- memory of the language
// All of the above where loads may return older values: what is read must have been released and acquired. Each is
// found where stores release nothing, and where loads acquire nothing.
TEST(Language, WhatMembersReadIsPublished) {
  struct Case {
    const char* name;
    Members::Setup setup;
    Body body, before;
  };
  const Body rooted = [](CollectiveContext& context, int me) {
    for (int i = 0; i < 2; ++i) use_slot(context, me, 0);
  };
  const Body slots = [](CollectiveContext& context, int me) {
    for (const int root : {-1, 0}) use_slot(context, me, root);
  };
  const Body even = [](CollectiveContext& context, int me) {
    for (unsigned i = 0; i < context::Lines::entries; ++i) use_line(context, me, 0);
  };
  const Body lines = [](CollectiveContext& context, int me) {
    for (int i = 0; i < 2; ++i) use_line(context, me, 0);
  };
  const Body staged = [](CollectiveContext& context, int me) { use_ring(context, me, -1, 4); };
  const Body rounds = [](CollectiveContext& context, int me) { use_ring(context, me, -1, 2); };
  const Body chunks = [](CollectiveContext& context, int me) { use_ring(context, me, 0, 2); };
  const Body meeting = [](CollectiveContext& context, int me) { meet(context, me, 2); };
  const Case cases[] = {
      {"slots", {.count = 2}, slots, {}},
      {"slots again", {.count = 2}, rooted, fill_slots},
      {"lines", {.count = 2}, lines, even},
      {"rounds", {.count = 2}, rounds, staged},
      {"chunks", {.count = 2}, chunks, staged},
      {"flags", {.count = 2, .meeting = Meeting::flags}, meeting, {}},
      {"gate", {.count = 2, .meeting = Meeting::gate}, meeting, {}},
      {"tree", {.count = 2, .meeting = Meeting::tree}, meeting, {}},
  };
  for (const Case& each : cases) {
    Members members(each.setup);
    auto found = [&](Mutation mutation) {
      const Options options{.memory = Memory::language, .mutation = mutation};
      return explore_team(members, each.body, options, each.before);
    };
    const Explored explored = found({});
    EXPECT_TRUE(explored.good()) << each.name << ": " << explored.trace;
    EXPECT_FALSE(found({.no_release = true}).good()) << each.name;
    EXPECT_FALSE(found({.no_acquire = true}).good()) << each.name;
  }
  Members gated({.count = 2, .meeting = Meeting::gate});
  EXPECT_GOOD(explore_team(gated, [](CollectiveContext& context, int me) { exchange(context, me, 2); },
                           {.memory = Memory::language}));
  EXPECT_GOOD(explore_work(gated, 1, {.memory = Memory::language, .preemptions = 2}));
  EXPECT_FOUND(
      explore_work(gated, 1, {.memory = Memory::language, .preemptions = 2, .mutation = {.no_release = true}}));
}

// ---------------------------------------------------------------- sleeping
// The waker looks for sleepers without a fence behind its flag, so that x86 may miss a wake: it costs a nap, not more.
// Who completes a gate does so by a read-modify-write: there no wake is missed.
TEST(Sleeping, AMissedWakeCostsOneNap) {
  Members two({.count = 2, .sleeps = true});
  const Body once = [](CollectiveContext& context, int me) { use_slot(context, me, 0); };
  const Explored explored = explore_team(two, once);
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 1);
  EXPECT_EQ(explore_team(two, once, {.store_buffers = false}).naps, 0);
  EXPECT_GT(explore_team(two, once, {.store_buffers = false, .mutation = {.no_wakes = true}}).naps, 0);
  Members three({.count = 3, .sleeps = true});
  const Explored many = explore_team(three, once, {.preemptions = 3});
  EXPECT_GOOD(many);
  EXPECT_LE(many.naps, 2);  // one of each sleeper
}

TEST(Sleeping, AGateMissesNoWake) {
  Members two({.count = 2, .meeting = Meeting::gate, .sleeps = true});
  const Body body = [](CollectiveContext& context, int me) { meet(context, me, 2); };
  const Explored explored = explore_team(two, body);
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 0);
  EXPECT_GT(explore_team(two, body, {.mutation = {.no_wakes = true}}).naps, 0);
  Members three({.count = 3, .meeting = Meeting::gate, .sleeps = true});
  const Explored many =
      explore_team(three, [](CollectiveContext& context, int me) { meet(context, me, 1); }, {.preemptions = 3});
  EXPECT_GOOD(many);
  EXPECT_EQ(many.naps, 0);
}

TEST(Sleeping, WorkDoneTogetherMissesNoWake) {
  Members two({.count = 2, .meeting = Meeting::gate, .sleeps = true});
  const Explored explored = explore_work(two, 1);
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 0);
}

}  // namespace
}  // namespace nearfield::testing
