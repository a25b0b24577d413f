// A model of the board of partitioned messages: partitions of several starts, by flags and as a whole.
#include "engine/messages/board.hpp"

#include <gtest/gtest.h>

#include "tests/engine/model/explore.hpp"

namespace nearfield::testing {
namespace {

using messages::BoardView;
using messages::Partitions;

constexpr Partitions two{2, 0};  // their data are words of the model
constexpr std::uint64_t starts = 4;
alignas(256) std::byte memory[1024];
Atomic<std::uint64_t> words[2][2];  // of either half

std::uint64_t value(std::uint64_t start, std::uint64_t partition) { return start * 10 + partition; }

void send_all(const BoardView& board, bool waits_for_room) {
  for (std::uint64_t k = 1; k <= starts; ++k) {
    while (waits_for_room && !board.room(k)) pause_process();
    for (std::uint64_t i = 0; i < two.count; ++i) {
      put(&words[k % 2][i], value(k, i));
      board.put(k, i, {});
    }
    board.put_last(k);
  }
}

void receive_all(const BoardView& board, bool by_flags) {
  for (std::uint64_t k = 1; k <= starts; ++k) {
    while (!by_flags && !board.all_there(k)) pause_process();
    for (std::uint64_t i = 0; i < two.count; ++i) {
      while (by_flags && !board.there(k, i)) pause_process();
      require(get(&words[k % 2][i]) == value(k, i), "another start's data");
    }
    board.consume(k);
  }
}

Explored explore_board(bool by_flags, bool waits_for_room = true, Mutation mutation = {}) {
  EXPECT_LE(BoardView::size(two), sizeof memory);
  return explore(2,
                 [=] {
                   std::memset(memory, 0, sizeof memory);
                   for (auto& half : words)
                     for (auto& word : half) word.store(0);
                   return [=](int me) {
                     const BoardView board(memory, two);
                     if (me == 0) send_all(board, waits_for_room);
                     else receive_all(board, by_flags);
                   };
                 },
                 {.memory = Memory::language, .mutation = mutation});
}

TEST(Board, EveryStartHasItsOwnData) {
  for (const bool by_flags : {true, false}) {
    const Explored explored = explore_board(by_flags);
    EXPECT_TRUE(explored.good()) << explored.trace;
  }
}

TEST(Board, TheModelNotices) {
  for (const bool by_flags : {true, false}) {
    EXPECT_FALSE(explore_board(by_flags, true, {.no_release = true}).good());
    EXPECT_FALSE(explore_board(by_flags, true, {.no_acquire = true}).good());
    EXPECT_FALSE(explore_board(by_flags, false).good());  // does not wait for the receiver
  }
}

}  // namespace
}  // namespace nearfield::testing
