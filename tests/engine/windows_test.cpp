// Windows of several members: locks, epochs, and what becomes of those whose members die or lack something.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/engine/windows.hpp"

namespace nearfield {
namespace {

using team::Process;
using team::Team;
using testing::Chance;
using testing::make_window;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_out_of_memory;
using testing::run_processes;
using testing::run_windows;
using testing::shared_word;
using testing::sizes;
using testing::word;
using windows::Access;
using windows::Window;

// ---------------------------------------------------------------- locks
// In a member's memory: two words that are equal whenever no writer is there, how many readers are, and the most.
bool write_words(const Window& window, int target, Chance& chance) {
  const std::uint64_t first = word(window, target, 0), second = word(window, target, 1);
  bool alone = shared_word(window, target, 2).load() == 0 && first == second;
  word(window, target, 0) = first + 1;
  chance.delay();
  word(window, target, 1) = second + 1;
  return alone && shared_word(window, target, 2).load() == 0;
}
bool read_words(const Window& window, int target, Chance& chance) {
  shared_word(window, target, 2).fetch_add(1);
  const std::uint64_t first = word(window, target, 0);
  chance.delay();
  const bool good = word(window, target, 1) == first;
  shared_word(window, target, 2).fetch_sub(1);
  return good;
}
// How often has been written, by all together: of this member's memory.
std::uint64_t all_written(Window& window, std::uint64_t mine) {
  shared_word(window, 0, 3).fetch_add(mine);
  window.meet();
  std::uint64_t sum = 0;
  for (int m = 0; m < window.size(); ++m) sum += word(window, m);
  return sum;
}

TEST(Locks, LetReadersInOrOneWriter) {
  for (const int size : sizes)
    EXPECT_EQ(0, run_windows(size, 64,
                             [](Window& window, Process&, Chance& chance) {
                               bool good = true;
                               std::uint64_t written = 0;
                               for (int i = 0; i < 3000; ++i) {
                                 const int target = int(chance.below(2) ? 0 : chance.below(unsigned(window.size())));
                                 const bool writes = chance.below(3) == 0;
                                 good &= window.lock(target, writes, true);
                                 good &=
                                     writes ? write_words(window, target, chance) : read_words(window, target, chance);
                                 good &= window.unlock(target);
                                 written += writes;
                               }
                               return all_written(window, written) == word(window, 0, 3) && good;
                             }))
        << size;
}

// Each says that it is about to ask, some milliseconds apart from the next one, while the first member has the lock. Of
// many rounds some may be upset by the machine; without an order few would come out right.
TEST(Locks, AreHadInTheOrderOfAsking) {
  for (const int size : {4, 6}) {
    EXPECT_EQ(0, run_windows(size, 64,
                             [](Window& window, Process&, Chance&) {
                               const int rank = window.rank(), size = window.size(), rounds = 12;
                               int in_order = 0;
                               for (std::uint64_t round = 0; round < rounds; ++round) {
                                 const std::uint64_t asked = round * std::uint64_t(size) + std::uint64_t(rank);
                                 if (rank == 0) {
                                   if (!window.lock(0, true, true)) return false;
                                   word(window, 0, 1) = 0;
                                   window.meet();
                                 } else {
                                   window.meet();
                                   while (shared_word(window, 0).load() < asked) sched_yield();
                                   usleep(8000);
                                 }
                                 shared_word(window, 0).fetch_add(1);
                                 if (rank == 0) {
                                   while (shared_word(window, 0).load() < asked + std::uint64_t(size)) usleep(1000);
                                   usleep(8000);
                                   if (!window.unlock(0)) return false;
                                 } else {
                                   if (!window.lock(0, true, true)) return false;
                                   in_order += word(window, 0, 1) == std::uint64_t(rank - 1);
                                   word(window, 0, 1) = word(window, 0, 1) + 1;
                                   if (!window.unlock(0)) return false;
                                 }
                                 window.meet();
                               }
                               return rank == 0 || in_order >= rounds / 2;
                             }))
        << size;
  }
}

// Of all memory at once, by some, while others lock single targets.
TEST(Locks, OfAllExcludeWriters) {
  for (const int size : sizes)
    EXPECT_EQ(0, run_windows(size, 64,
                             [](Window& window, Process&, Chance& chance) {
                               bool good = true;
                               std::uint64_t written = 0;
                               for (int i = 0; i < 2000; ++i) {
                                 const int target = int(chance.below(unsigned(window.size())));
                                 if (chance.below(2)) {
                                   good &= window.lock_all(true);
                                   good &= read_words(window, target, chance);
                                   good &= window.unlock_all();
                                 } else {
                                   good &= window.lock(target, true, true) && write_words(window, target, chance);
                                   good &= window.unlock(target);
                                   ++written;
                                 }
                               }
                               return all_written(window, written) == word(window, 0, 3) && good;
                             }))
        << size;
}

// Two readers, each of which asks for what the other one has, while writers that hold nothing wait for both. `others`:
// the readers' first locks are of another window than their second ones.
bool ring(Window& first, Window& second, bool all) {
  const int rank = first.rank();
  if (rank < 2) {
    // The writers ask once both readers are in, and are waiting a while later.
    Window& mine = rank == 0 ? first : second;
    Window& other = rank == 0 ? second : first;
    if (!(all ? mine.lock_all(true) : mine.lock(rank, false, true))) return false;
    first.meet();
    usleep(30'000);
    if (!other.lock(1 - rank, false, true) || !other.unlock(1 - rank)) return false;
    if (!(all ? mine.unlock_all() : mine.unlock(rank))) return false;
  } else {
    Window& wanted = rank % 2 == 0 ? first : second;
    first.meet();
    if (!wanted.lock(rank % 2, true, true) || !wanted.unlock(rank % 2)) return false;
  }
  first.meet();
  return true;
}

TEST(Locks, OfReadersThatHoldOthersAreNotBehindWritersThatWait) {
  for (const int size : {4, 6, 9})
    EXPECT_EQ(0, run_members(size, 10,
                             [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                               auto one = make_window(process, bootstrap, rank, size, 64);
                               auto two = make_window(process, bootstrap, rank, size, 64);
                               if (!one || !two) return false;
                               bool good = true;
                               for (int round = 0; good && round < 5; ++round)
                                 good = ring(*one, *one, false) && ring(*one, *two, false) && ring(*one, *two, true);
                               close(std::move(two), bootstrap);
                               close(std::move(one), bootstrap);
                               return good;
                             }))
        << size;
}

// Members that hold a lock all the time, or locks of all, leave a writer its turns.
TEST(Locks, OfReadersThatHoldOthersStarveNoWriter) {
  for (const bool all : {false, true})
    for (const int size : {3, 5, 8})
      EXPECT_EQ(0, run_windows(size, 64,
                               [all](Window& window, Process&, Chance&) {
                                 const int rank = window.rank(), last = window.size() - 1;
                                 bool good = true;
                                 if (rank == last) {
                                   for (int i = 0; i < 100; ++i)
                                     good &= window.lock(last, true, true) && window.unlock(last);
                                   shared_word(window, 0).store(1);
                                 } else if (!all) {
                                   good &= window.lock(rank, false, true);
                                 }
                                 // Another reader has come before each leaves, as long as there are several.
                                 auto come = shared_word(window, 0, 1);
                                 while (rank != last && shared_word(window, 0).load() == 0) {
                                   good &= all ? window.lock_all(true) : window.lock(last, false, true);
                                   const std::uint64_t mine = come.fetch_add(1) + 1;
                                   const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
                                   while (come.load() == mine && std::chrono::steady_clock::now() < until)
                                     sched_yield();
                                   good &= all ? window.unlock_all() : window.unlock(last);
                                 }
                                 if (rank != last && !all) good &= window.unlock(rank);
                                 return good;
                               }))
          << size << all;
}

TEST(Locks, ThatDoNotFitAreRefused) {
  EXPECT_EQ(0, run_windows(2, 64, [](Window& window, Process&, Chance&) {
              const int mine = window.rank();
              bool good = !window.unlock(mine) && !window.unlock_all() && !window.complete() && !window.wait();
              good &= window.lock(mine, true, true) && !window.lock(mine, false, true) && !window.lock_all(true) &&
                      !window.fence(true, true) && !window.start({}, true) && window.access(mine) == Access::exclusive;
              good &= window.unlock(mine) && !window.accessible(mine);
              good &= window.lock_all(true) && !window.lock(mine, true, true) && window.accessible(1 - mine);
              return good && window.unlock_all() && window.idle();
            }));
}

// ---------------------------------------------------------------- fence, post and start
TEST(Epochs, WhatIsPutBeforeAFenceIsSeenAfterIt) {
  for (const int size : sizes)
    EXPECT_EQ(0, run_windows(size, 4096,
                             [](Window& window, Process&, Chance& chance) {
                               const int rank = window.rank(), size = window.size();
                               bool good = window.fence(true, true);
                               for (std::uint64_t round = 1; round <= 300; ++round) {
                                 for (int m = 0; m < size; ++m) {
                                   if (!window.accessible(m)) return false;
                                   word(window, m, std::size_t(rank)) = round;
                                 }
                                 chance.delay();
                                 good &= window.fence(true, true);
                                 for (int m = 0; m < size; ++m) good &= word(window, rank, std::size_t(m)) == round;
                                 good &= window.fence(true, true);
                               }
                               return good;
                             }))
        << size;
}

// ---------------------------------------------------------------- members that die or lack something
// Whoever waits for a lock whose holder has been killed is told who it was.
TEST(Deaths, OfAHolderEndTheWaitsForItsLock) {
  for (const int size : {2, 3, 5})
    for (const bool exclusive : {true, false})
      EXPECT_EQ(1, run_processes(size, 30,
                                 [exclusive](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                                   auto window = make_window(process, bootstrap, rank, size, 64);
                                   if (!window) return false;
                                   if (rank == 1) {
                                     if (!window->lock(0, exclusive, true)) return false;
                                     shared_word(*window, 0).store(1);
                                     usleep(100'000);
                                     raise(SIGKILL);
                                   }
                                   while (shared_word(*window, 0).load() == 0) sched_yield();
                                   const auto start = std::chrono::steady_clock::now();
                                   // Some wait as readers that hold another lock.
                                   const bool urgent = exclusive && rank >= 2;
                                   if (urgent && !window->lock(rank, false, true)) return false;
                                   try {
                                     window->lock(0, !urgent, true);
                                   } catch (const team::Died& died) {
                                     const auto took = std::chrono::steady_clock::now() - start;
                                     // Who has left while it waits would be missed as well.
                                     shared_word(*window, 0, 1).fetch_add(1);
                                     while (shared_word(*window, 0, 1).load() < std::uint64_t(size - 1)) sched_yield();
                                     window.reset();
                                     return std::string(died.what()).find("rank 1 ") != std::string::npos &&
                                            took < std::chrono::seconds(10);
                                   }
                                   return false;
                                 }))
          << size;
}

// A member without memory for its words: no window, for all alike, and the next one is made.
TEST(Refusals, WithoutMemoryForItsWordsNobodyHasAWindow) {
  for (const int size : {2, 3, 5})
    EXPECT_EQ(0, run_members(size, 30,
                             [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                               auto first = creation::create_team(process, rank, size, bootstrap),
                                    second = creation::create_team(process, rank, size, bootstrap);
                               if (!first || !second) return false;
                               std::vector<std::size_t> taken;
                               std::string why;
                               // Below what is taken, since free memory behind all else goes back to the kernel.
                               const auto spare = process.arena().allocate(64 << 10, 64);
                               if (!spare) return false;
                               if (rank == size - 1) {
                                 run_out_of_memory(process);
                                 for (std::size_t bytes = 1 << 20; bytes >= 64; bytes /= 2)
                                   while (auto offset = process.arena().allocate(bytes, 64)) taken.push_back(*offset);
                               }
                               const auto refused = Window::create(std::move(*first), testing::held_locks,
                                                                   Window::Lies::anywhere, {}, {}, why);
                               process.arena().free(*spare);
                               if (refused || why.find("memory") == std::string::npos) return false;
                               auto window = Window::create(std::move(*second), testing::held_locks,
                                                            Window::Lies::anywhere, {}, {}, why);
                               if (!window) return false;
                               const bool good = window->lock(0, true, true) && window->unlock(0);
                               testing::close(std::move(window), bootstrap);
                               for (const std::size_t offset : taken) process.arena().free(offset);
                               return good;
                             }))
        << size;
}

// Memory of one member that the others do not reach.
TEST(Refusals, WithoutReachNobodyHasAWindow) {
  for (const int size : {2, 3, 5})
    for (const bool all : {false, true})
      EXPECT_EQ(0, run_members(size, 30,
                               [all](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                                 auto team = creation::create_team(process, rank, size, bootstrap);
                                 auto offset = process.arena().allocate_zeroed(4096, 4096);
                                 if (!team || !offset) return false;
                                 std::vector<std::byte> own(4096);
                                 std::byte* const base =
                                     all || rank == size - 1 ? own.data() : process.segment().base() + *offset;
                                 std::string why;
                                 const auto window = Window::create(std::move(*team), testing::held_locks,
                                                                    Window::Lies::anywhere, {base, 4096, 1}, {}, why);
                                 return !window && why.find("reached") != std::string::npos;
                               }))
          << size;
}

TEST(Refusals, OfMemoryInSegmentsThereAreNone) {
  for (const int size : {1, 2, 5})
    EXPECT_EQ(0, run_members(size, 30,
                             [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                               auto team = creation::create_team(process, rank, size, bootstrap);
                               auto offset = process.arena().allocate_zeroed(4096, 4096);
                               if (!team || !offset) return false;
                               std::string why;
                               auto window =
                                   Window::create(std::move(*team), testing::held_locks, Window::Lies::anywhere,
                                                  {process.segment().base() + *offset, 4096, 1}, {}, why);
                               if (!window) return false;
                               const int next = (rank + 1) % size;
                               word(*window, next) = std::uint64_t(rank) + 1;
                               window->meet();
                               const bool good = word(*window, rank) == std::uint64_t((rank + size - 1) % size) + 1;
                               testing::close(std::move(window), bootstrap);
                               return good;
                             }))
        << size;
}

}  // namespace
}  // namespace nearfield
