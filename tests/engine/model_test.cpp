// Exhaustive models of the engine's protocols: slots, rings of buffers, work done together, sleeping. Each is written
// as the code is (engine/team/team.cpp, engine/collectives/rounds.hpp), and each has a mutation that must be found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tests/engine/interleaving.hpp"

namespace nearfield::testing {
namespace {

constexpr int most = 3;  // processes

// ---------------------------------------------------------------- slots
// Operations are rooted (0..2: the root) or everybody's (-1). The payload of operation n is n.
// `ahead`: how far before its own operation a writer wants its readers to be, when it has to look at all.
template <int depth, bool reserves, int ahead = depth>
struct Slots {
  struct Slot {
    std::int16_t seq, payload;
  };
  struct Local {
    std::int16_t seq, safe, pc, other, least;
  };
  std::int16_t p, operations;
  std::int16_t kind[8];
  Slot slot[most][depth];
  std::int16_t slot_done[most];
  Local local[most];
  bool failed;
  std::uint8_t pad;

  Step step(int me) {
    Local& l = local[me];
    if (l.seq == operations) return Step::finished;
    const auto seq = std::int16_t(l.seq + 1);
    const int root = kind[l.seq];
    const bool writes = root < 0 || root == me;
    Slot& mine = slot[me][seq % depth];
    switch (l.pc) {
      case 0:  // reserve
        if (!writes) return advance(l, 4);
        if (!reserves || seq <= depth || seq - depth <= l.safe) return advance(l, 2);
        l.least = 1000;
        return advance(l, 1);
      case 1:  // looks at one reader after another
        if (l.other != me) {
          if (slot_done[l.other] < seq - ahead) return Step::blocked;
          l.least = std::min(l.least, slot_done[l.other]);
        }
        if (++l.other < p) return Step::moved;
        l.safe = l.least;
        return advance(l, 2);
      case 2: mine.payload = seq; return advance(l, 3);
      case 3: mine.seq = seq; return advance(l, root < 0 ? 4 : 6);
      case 4: {  // waits for the root, or for one after another
        const int from = root < 0 ? l.other : root;
        if (slot[from][seq % depth].seq < seq) return Step::blocked;
        l.pc = 5;
        return Step::moved;
      }
      case 5: {  // reads
        const int from = root < 0 ? l.other : root;
        if (slot[from][seq % depth].payload != seq) failed = true;
        if (root >= 0) return advance(l, 6);
        if (++l.other < p) {
          l.pc = 4;
          return Step::moved;
        }
        l.safe = std::max(l.safe, std::int16_t(seq - 1));
        l.seq = seq;
        return advance(l, 0);
      }
      default:
        slot_done[me] = seq;
        l.seq = seq;
        return advance(l, 0);
    }
  }
  static Step advance(Local& l, int pc) {
    l.pc = std::int16_t(pc);
    l.other = 0;
    return Step::moved;
  }
};

template <int depth, bool reserves, int ahead = depth>
Explored slots(int p, const std::vector<int>& kinds) {
  Slots<depth, reserves, ahead> protocol;
  std::memset(static_cast<void*>(&protocol), 0, sizeof protocol);
  protocol.p = std::int16_t(p);
  protocol.operations = std::int16_t(kinds.size());
  std::copy(kinds.begin(), kinds.end(), protocol.kind);
  return explore(protocol, p);
}

// Every sequence of `length` operations of p members.
template <class Check>
void each_sequence(int p, int length, Check check) {
  int all = 1;
  for (int i = 0; i < length; ++i) all *= p + 1;
  for (int code = 0; code < all; ++code) {
    std::vector<int> kinds;
    for (int i = 0, rest = code; i < length; ++i, rest /= p + 1) kinds.push_back(rest % (p + 1) - 1);
    check(kinds);
  }
}

TEST(Slots, AreNeverOverwrittenBeforeTheyAreRead) {
  each_sequence(2, 6, [](const std::vector<int>& kinds) {
    const Explored result = slots<2, true>(2, kinds);
    EXPECT_TRUE(result.good()) << ::testing::PrintToString(kinds) << " trace " << result.trace;
  });
  each_sequence(3, 4, [](const std::vector<int>& kinds) {
    const Explored result = slots<2, true>(3, kinds);
    EXPECT_TRUE(result.good()) << ::testing::PrintToString(kinds) << " trace " << result.trace;
  });
}

// The deep ring of lines: rooted operations only, and a writer that looks waits for half a ring.
TEST(Lines, AreNeverOverwrittenBeforeTheyAreRead) {
  each_sequence(2, 7, [](const std::vector<int>& kinds) {
    if (std::ranges::find(kinds, -1) != kinds.end()) return;
    const Explored result = slots<4, true, 2>(2, kinds);
    EXPECT_TRUE(result.good()) << ::testing::PrintToString(kinds) << " trace " << result.trace;
  });
  EXPECT_TRUE((slots<2, true, 1>(3, {0, 1, 2, 0}).good()));
}

TEST(Slots, NeedTheReservation) { EXPECT_TRUE((slots<2, false>(2, {0, 0, 0}).failed)); }

// ---------------------------------------------------------------- rings of copy buffers
// Operations: everybody stages and reads `rounds` rounds (root -1), or a pipeline of as many chunks from a root.
template <int depth>
struct Ring {
  struct Local {
    std::int16_t op, tick, safe, rooted, round, pc, other;
  };
  std::int16_t p, operations;
  std::int16_t root[4], rounds[4];
  std::int16_t buffer[most][depth], posted[most], consumed[most];
  Local local[most];
  bool failed;
  std::uint8_t pad;

  Step step(int me) {
    Local& l = local[me];
    if (l.op == operations) return Step::finished;
    return root[l.op] < 0 ? exchange(me, l) : pipeline(me, l);
  }

  Step exchange(int me, Local& l) {
    const auto tick = std::int16_t(l.tick + 1 + l.round);
    switch (l.pc) {
      case 0:  // begin_rounds
        if (!l.rooted) return to(l, 1);
        if (l.other != me && consumed[l.other] < l.tick) return Step::blocked;
        if (++l.other < p) return Step::moved;
        l.rooted = 0;
        return to(l, 1);
      case 1: buffer[me][tick % depth] = tick; return to(l, 2);
      case 2: posted[me] = tick; return to(l, 3);
      case 3:  // meet
        if (posted[l.other] < tick) return Step::blocked;
        if (++l.other < p) return Step::moved;
        l.safe = std::max(l.safe, std::int16_t(tick - 2));
        return to(l, l.round + 1 < rounds[l.op] ? 4 : 6);
      case 4: buffer[me][(tick + 1) % depth] = std::int16_t(tick + 1); return to(l, 5);
      case 5: posted[me] = std::int16_t(tick + 1); return to(l, 6);
      case 6:  // read
        if (buffer[l.other][tick % depth] != tick) failed = true;
        if (++l.other < p) return Step::moved;
        if (++l.round < rounds[l.op]) return to(l, 3);
        return to(l, 7);
      default: consumed[me] = std::int16_t(l.tick + rounds[l.op]); return next(l);
    }
  }

  Step pipeline(int me, Local& l) {
    const auto tick = std::int16_t(l.tick + 1 + l.round);
    const int from = root[l.op];
    l.rooted = 1;
    switch (l.pc) {
      case 0:
        if (me != from) return to(l, 4);
        if (tick <= depth || tick - depth <= l.safe) return to(l, 2);
        return to(l, 1);
      case 1:  // wait_all_consumed
        if (l.other != me && consumed[l.other] < tick - depth) return Step::blocked;
        if (++l.other < p) return Step::moved;
        l.safe = std::max(l.safe, std::int16_t(tick - depth));
        return to(l, 2);
      case 2: buffer[me][tick % depth] = tick; return to(l, 3);
      case 3: posted[me] = tick; return ++l.round < rounds[l.op] ? to(l, 0) : to(l, 7);
      case 4:
        if (posted[from] < tick) return Step::blocked;
        return to(l, 5);
      case 5:
        if (buffer[from][tick % depth] != tick) failed = true;
        return to(l, 6);
      case 6: consumed[me] = tick; return ++l.round < rounds[l.op] ? to(l, 0) : next(l);
      default: consumed[me] = std::int16_t(l.tick + rounds[l.op]); return next(l);
    }
  }

  static Step to(Local& l, int pc) {
    l.pc = std::int16_t(pc);
    l.other = 0;
    return Step::moved;
  }
  Step next(Local& l) {
    l.tick = std::int16_t(l.tick + rounds[l.op]);
    ++l.op;
    l.round = 0;
    return to(l, 0);
  }
};

template <int depth>
Explored ring(int p, const std::vector<int>& roots, int rounds) {
  Ring<depth> protocol;
  std::memset(static_cast<void*>(&protocol), 0, sizeof protocol);
  protocol.p = std::int16_t(p);
  protocol.operations = std::int16_t(roots.size());
  for (std::size_t i = 0; i < roots.size(); ++i) {
    protocol.root[i] = std::int16_t(roots[i]);
    protocol.rounds[i] = std::int16_t(rounds + int(i) % 2);
  }
  return explore(protocol, p);
}

TEST(Ring, BuffersAreFreeWhenTheyAreFilled) {
  each_sequence(2, 3, [](const std::vector<int>& roots) {
    for (const int rounds : {1, 3}) {
      const Explored result = ring<4>(2, roots, rounds);
      EXPECT_TRUE(result.good()) << ::testing::PrintToString(roots) << " trace " << result.trace;
    }
  });
  each_sequence(3, 2, [](const std::vector<int>& roots) {
    const Explored result = ring<4>(3, roots, 2);
    EXPECT_TRUE(result.good()) << ::testing::PrintToString(roots) << " trace " << result.trace;
  });
}

TEST(Ring, NeedsThreeBuffers) {
  EXPECT_TRUE(ring<3>(2, {-1, -1}, 3).good());
  EXPECT_TRUE(ring<2>(2, {-1, -1}, 3).failed);
}

// ---------------------------------------------------------------- work done together
// Before a round every member writes its exposure; whoever does a part reads all of them.
template <int exposures, bool checks_round>
struct Together {
  static constexpr int parts = 2;
  struct Local {
    std::int16_t round, pc, seen_round, seen_part;
  };
  std::int16_t p, rounds;
  std::int16_t gate, open_round, open_part, done;
  std::int16_t exposure[most][exposures];
  std::int16_t times[4][parts];
  Local local[most];
  bool failed;
  std::uint8_t pad;

  Step step(int me) {
    Local& l = local[me];
    if (l.round == rounds) return Step::finished;
    const auto round = std::int16_t(l.round + 1);
    const bool mine = !checks_round || open_round == round;
    switch (l.pc) {
      case 0: exposure[me][round % exposures] = round; return to(l, 1);
      case 1: return to(l, ++gate == round * p ? 2 : 3);
      case 2:
        open_round = round;
        open_part = 0;
        return to(l, 3);
      case 3:
        l.seen_round = open_round;
        l.seen_part = open_part;
        return to(l, (!checks_round || l.seen_round == round) && l.seen_part < parts ? 4 : 6);
      case 4:  // compare and swap
        if (open_round != l.seen_round || open_part != l.seen_part) return to(l, 3);
        ++open_part;
        return to(l, 5);
      case 5:
        for (int r = 0; r < p; ++r) failed |= exposure[r][round % exposures] != round;
        failed |= times[round][l.seen_part]++ != 0;
        return to(l, 7);
      case 7: ++done; return to(l, 3);
      default:
        if (done >= round * parts) {
          for (const auto count : times[round]) failed |= count != 1;
          l.round = round;
          return to(l, 0);
        }
        return mine && open_part < parts ? to(l, 3) : Step::blocked;
    }
  }
  static Step to(Local& l, int pc) {
    l.pc = std::int16_t(pc);
    return Step::moved;
  }
};

template <int exposures, bool checks_round>
Explored together(int p, int rounds) {
  Together<exposures, checks_round> protocol;
  std::memset(static_cast<void*>(&protocol), 0, sizeof protocol);
  protocol.p = std::int16_t(p);
  protocol.rounds = std::int16_t(rounds);
  return explore(protocol, p);
}

TEST(Together, EveryPartIsDoneOnceAndAfterAllHaveArrived) {
  for (const int p : {2, 3}) {
    const Explored result = together<2, true>(p, 3);
    EXPECT_TRUE(result.good()) << "p " << p << " trace " << result.trace;
    EXPECT_GT(result.states, 100u);
  }
}

TEST(Together, NeedsTheRoundInTheWordOfParts) { EXPECT_FALSE((together<2, false>(2, 2).good())); }

// One exposure would do here, where nobody writes the next before all parts are done; meetings need two.
template <int exposures>
struct Exposed {
  struct Local {
    std::int16_t round, pc, other;
  };
  std::int16_t p, rounds;
  std::int16_t exposure[most][exposures], posted[most];
  Local local[most];
  bool failed;
  std::uint8_t pad;

  // A call that ends right after its meeting: the shortest distance between two exposures.
  Step step(int me) {
    Local& l = local[me];
    if (l.round == rounds) return Step::finished;
    const auto round = std::int16_t(l.round + 1);
    switch (l.pc) {
      case 0: exposure[me][round % exposures] = round; return to(l, 1);
      case 1: posted[me] = round; return to(l, 2);
      case 2:
        if (posted[l.other] < round) return Step::blocked;
        return ++l.other < p ? Step::moved : to(l, 3);
      default:
        failed |= exposure[l.other][round % exposures] != round;
        if (++l.other < p) return Step::moved;
        l.round = round;
        return to(l, 0);
    }
  }
  static Step to(Local& l, int pc) {
    l.pc = std::int16_t(pc);
    l.other = 0;
    return Step::moved;
  }
};

template <int exposures>
Explored exposed(int p, int rounds) {
  Exposed<exposures> protocol;
  std::memset(static_cast<void*>(&protocol), 0, sizeof protocol);
  protocol.p = std::int16_t(p);
  protocol.rounds = std::int16_t(rounds);
  return explore(protocol, p);
}

TEST(Exposures, TwoSuffice) {
  EXPECT_TRUE(exposed<2>(2, 4).good());
  EXPECT_TRUE(exposed<2>(3, 4).good());
  EXPECT_TRUE(exposed<1>(2, 3).failed);
}

// ---------------------------------------------------------------- sleeping
// One waker, the others sleep until its flag is set; no sleep has a time limit here, so a missed wake is a deadlock.
template <bool announces_first>
struct Sleep {
  struct Local {
    std::int16_t pc, rung;
  };
  std::int16_t p, flag, sleepers, bell;
  Local local[most];
  bool failed;
  std::uint8_t pad;

  Step step(int me) {
    Local& l = local[me];
    if (l.pc == 9) return Step::finished;
    if (me == 0) {
      switch (l.pc) {
        case 0: flag = 1; return to(l, 1);
        case 1: return to(l, sleepers ? 2 : 9);
        default: ++bell; return to(l, 9);  // and wakes: whoever sleeps compares the bell again
      }
    }
    switch (l.pc) {
      case 0: l.rung = bell; return to(l, 1);
      case 1:
        if (announces_first) {
          ++sleepers;
          return to(l, 2);
        }
        return to(l, flag ? 9 : 2);
      case 2:
        if (announces_first) return to(l, flag ? 4 : 3);
        ++sleepers;
        return to(l, 3);
      case 3: return bell != l.rung ? to(l, 4) : Step::blocked;  // futex wait
      default: --sleepers; return to(l, flag ? 9 : 0);
    }
  }
  static Step to(Local& l, int pc) {
    l.pc = std::int16_t(pc);
    return Step::moved;
  }
};

template <bool announces_first>
Explored sleeping(int p) {
  Sleep<announces_first> protocol;
  std::memset(static_cast<void*>(&protocol), 0, sizeof protocol);
  protocol.p = std::int16_t(p);
  return explore(protocol, p);
}

TEST(Sleeping, NoWakeIsMissed) {
  EXPECT_TRUE(sleeping<true>(2).good());
  EXPECT_TRUE(sleeping<true>(3).good());
  EXPECT_TRUE(sleeping<false>(2).deadlocked);
}

}  // namespace
}  // namespace nearfield::testing
