#include "tools/simulation/caches.hpp"

#include <gtest/gtest.h>

namespace nearfield::simulation {
namespace {

// Four cores, two to a last-level cache, two groups to a socket; L2 of 8 lines in sets of 2, L1 of 4 in sets of 2.
Machine small() {
  Machine machine;
  machine.l1 = 4 * 64;
  machine.l1_ways = 2;
  machine.l2 = 8 * 64;
  machine.l2_ways = 2;
  machine.cache = 64 * 64;
  machine.cache_ways = 16;
  machine.cores = 2;
  machine.cpus = 4;
  machine.sockets = 2;
  return machine;
}

TEST(Sets, ReplaceTheLeastRecentlyUsed) {
  Sets sets(4 * 64, 2, false);  // two sets
  EXPECT_EQ(sets.insert(0), Sets::none);
  EXPECT_EQ(sets.insert(2), Sets::none);
  EXPECT_TRUE(sets.use(0));
  EXPECT_EQ(sets.insert(4), 2u);
  EXPECT_TRUE(sets.use(0));
  EXPECT_FALSE(sets.use(2));
  EXPECT_TRUE(sets.remove(4));
  EXPECT_FALSE(sets.remove(4));
  EXPECT_EQ(sets.insert(6), Sets::none);
}

// As many lines as a hashed cache has stay in it, wherever they begin, but for few.
TEST(Sets, HashedOnesAreFilledEvenly) {
  for (const LineId start : {0u, 4096u, 1000000u}) {
    Sets sets(1 << 20, 16, true);
    constexpr LineId lines = (1 << 20) / 64 * 3 / 4;
    for (LineId line = 0; line < lines; ++line) sets.insert(start + line);
    unsigned there = 0;
    for (LineId line = 0; line < lines; ++line) there += sets.use(start + line);
    EXPECT_GT(there, lines * 9 / 10) << start;
  }
}

TEST(Caches, TellWhereALineCameFrom) {
  Caches caches(small(), 4, 1000);
  caches.read(0, 5);
  EXPECT_EQ(caches.counts().memory, 1u);
  caches.read(0, 5);
  EXPECT_EQ(caches.counts().l1_misses, 1u);
  caches.read(1, 5);  // the neighbour's last-level cache is the same
  EXPECT_EQ(caches.counts().near, 1u);
  caches.read(2, 5);
  EXPECT_EQ(caches.counts().far, 1u);
  EXPECT_EQ(caches.counts().sockets, 1u);
  EXPECT_EQ(caches.counts().l2_misses, 3u);
}

TEST(Caches, AWriterTakesTheLineFromAllOthers) {
  Caches caches(small(), 4, 1000);
  for (int core = 0; core < 4; ++core) caches.read(core, 7);
  const auto before = caches.counts();
  caches.write(3, 7);
  EXPECT_EQ(caches.counts().invalidations, before.invalidations + 1);
  EXPECT_EQ(caches.counts().l2_misses, before.l2_misses);  // it had the line
  caches.write(3, 7);
  EXPECT_EQ(caches.counts().invalidations, before.invalidations + 1);
  caches.read(0, 7);
  EXPECT_EQ(caches.counts().far, before.far + 1);
}

TEST(Caches, AStreamingStoreLeavesNothingBehind) {
  Caches caches(small(), 4, 1000);
  caches.write(0, 9);
  caches.stream(2, 9);
  EXPECT_EQ(caches.counts().written, 1u);
  const auto before = caches.counts();
  caches.read(2, 9);
  EXPECT_EQ(caches.counts().memory, before.memory + 1);
}

TEST(Caches, KnowWhatIsAConflict) {
  Caches caches(small(), 4, 100000);
  // Four lines that share one set of two: they would all fit, placed elsewhere.
  for (int round = 0; round < 50; ++round)
    for (const LineId line : {0u, 4000u, 8000u, 12000u}) caches.read(0, line);
  EXPECT_GT(caches.counts().conflicts, 50u);
  Caches spread(small(), 4, 100000);
  for (int round = 0; round < 50; ++round)
    for (const LineId line : {0u, 4001u, 8002u, 12003u}) spread.read(0, line);
  EXPECT_EQ(spread.counts().conflicts, 0u);
  EXPECT_EQ(spread.counts().l2_misses, 4u);
}

TEST(Caches, WhoAllAskWaitsInTurn) {
  Machine machine = small();
  machine.cores = 1;
  Caches one(machine, 4, 1000), many(machine, 4, 1000);
  for (LineId line = 0; line < 300; ++line) {
    one.write(0, line);
    many.write(int(line % 3), line);
  }
  one.meet();
  many.meet();
  const double start_one = one.now(0), start_many = many.now(0);
  for (LineId line = 280; line < 300; ++line) {
    for (int core = 1; core < 4; ++core) {
      one.read(core, line);
      many.read(core, line);
    }
  }
  EXPECT_GT(one.now(3) - start_one, many.now(3) - start_many);
}

}  // namespace
}  // namespace nearfield::simulation
