#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/copying/copy.hpp"
#include "engine/copying/handover.hpp"
#include "engine/copying/landing.hpp"

namespace nearfield::copying {
namespace {

class EveryStore : public ::testing::TestWithParam<Store> {};

TEST_P(EveryStore, CopiesExactlyWhatItShould) {
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n <= 300; ++n) lengths.push_back(n);
  for (const std::size_t n : {4095, 4096, 4097, 5000, 65536, 100001}) lengths.push_back(n);
  for (const std::size_t bytes : lengths) {
    for (const std::size_t to : {0, 1, 31, 63}) {
      for (const std::size_t from : {0, 5, 33}) {
        std::vector<std::byte> source(bytes + from), target(bytes + to + 64, std::byte{0x77});
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 31 + 1);
        copy(target.data() + to, source.data() + from, bytes, GetParam());
        for (std::size_t i = 0; i < target.size(); ++i) {
          const bool inside = i >= to && i < to + bytes;
          ASSERT_EQ(target[i], inside ? source[from + i - to] : std::byte{0x77}) << bytes << " bytes, byte " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Copy, EveryStore, ::testing::Values(Store::temporal, Store::claiming, Store::streaming));

// Nothing beside the target changes, whatever part is streamed.
TEST(Copy, HybridsCopyExactlyWhatTheyShould) {
  for (const Stores stores :
       {all_temporal, all_streaming, Stores{100, 8}, Stores{4096, 8}, Stores{0, 4}, Stores{200, 1}}) {
    for (const std::size_t bytes : {0, 1, 63, 64, 255, 256, 257, 320, 511, 1000, 4096, 5001, 70000}) {
      for (const std::size_t to : {0, 1, 63}) {
        std::vector<std::byte> source(bytes + 5), target(bytes + to + 64, std::byte{0x77});
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 31 + 1);
        copy_hybrid(target.data() + to, source.data() + 5, bytes, stores);
        fence();
        for (std::size_t i = 0; i < target.size(); ++i) {
          const bool inside = i >= to && i < to + bytes;
          ASSERT_EQ(target[i], inside ? source[5 + i - to] : std::byte{0x77}) << bytes << " bytes, byte " << i;
        }
      }
    }
  }
}

TEST(Copy, HybridsStreamTheirPart) {
  std::vector<std::byte> a(1 << 16), b(1 << 16);
  constexpr std::size_t lines = (1 << 16) / 64;
  auto streamed = [&](Stores stores, std::size_t bytes) {
    const auto before = streamed_lines();
    copy_hybrid(a.data(), b.data(), bytes, stores);
    fence();
    return streamed_lines() - before;
  };
  EXPECT_EQ(streamed(all_temporal, a.size()), 0u);
  EXPECT_NEAR(double(streamed(all_streaming, a.size())), lines, 2);
  EXPECT_NEAR(double(streamed({1 << 15, 8}, a.size())), lines / 2, 2);
  EXPECT_NEAR(double(streamed({0, 2}, a.size())), lines / 4, 8);
  EXPECT_EQ(streamed(all_streaming, least_streamed - 1), 0u);
  EXPECT_GE(streamed(all_streaming, 1024), 15u);
}

TEST(Copy, StreamingReallyStreams) {
  std::vector<std::byte> a(1 << 20), b(1 << 20);
  const auto before = streamed_lines();
  copy(a.data(), b.data(), a.size(), Store::temporal);
  EXPECT_EQ(streamed_lines(), before);
  copy(a.data(), b.data(), a.size(), Store::streaming);
  EXPECT_GE(streamed_lines(), before + (1 << 20) / 64 - 2);
}

// One call of `bytes` bytes, whose samples cost so many ticks by kind; the kind that was taken.
unsigned hand_over(Handover& handover, std::size_t bytes, const std::array<unsigned, 4>& ticks) {
  const auto choice = handover.next(bytes);
  if (choice.sample) handover.note(choice.kind, bytes, ticks[choice.kind]);
  return choice.kind;
}

TEST(Handover, FindsTheCheapestKindAndFollowsAChange) {
  constexpr std::size_t bytes = 8192;
  constexpr std::array<unsigned, 4> near{900, 1400, 600, 2400}, far{6000, 3000, 2800, 1500};
  Handover handover;
  for (int i = 0; i < 200; ++i) hand_over(handover, bytes, near);
  EXPECT_EQ(handover.best(bytes), 2);
  unsigned others = 0;
  for (int i = 0; i < 1280; ++i) others += hand_over(handover, bytes, near) != 2;
  EXPECT_GE(others, 5u);
  EXPECT_LE(others, 15u);
  for (int i = 0; i < 1000; ++i) hand_over(handover, bytes, far);
  EXPECT_EQ(handover.best(bytes), 3);
  EXPECT_EQ(hand_over(handover, bytes, far), 3u);
  for (int i = 0; i < 1000; ++i) hand_over(handover, bytes, near);
  EXPECT_EQ(handover.best(bytes), 2);
}

TEST(Handover, BeginsWithWhatWasBestForOthersAndSpreadsItsTries) {
  constexpr std::size_t bytes = 16384;
  constexpr std::array<unsigned, 4> costs{900, 500, 800, 2400};
  Handover first, second;
  for (int i = 0; i < 200; ++i) hand_over(first, bytes, costs);
  ASSERT_EQ(first.best(bytes), 1);
  EXPECT_EQ(second.best(bytes), 1);
  unsigned others = 0;
  for (int i = 0; i < 100; ++i) others += hand_over(second, bytes, costs) != 1;
  EXPECT_LE(others, 15u);
  EXPECT_GE(others, 6u);
}

// A calibration says with what to begin.
TEST(Handover, BeginsWithWhatIsExpected) {
  for (const unsigned kind : {3u, 0u}) {
    Handover::expect(std::uint8_t(kind));
    Handover handover;
    for (const std::size_t bytes : {1400, 16384, 1 << 20}) {
      EXPECT_EQ(handover.best(bytes), kind) << bytes;
      EXPECT_EQ(handover.next(bytes).kind, kind) << bytes;
    }
  }
}

// Vector stores are cheap where streaming ones have left lines in no cache, and dear where they have come last
// themselves: what one sample among streamed buffers shows would make them the best kind again and again.
TEST(Handover, CountsWhatAKindLeavesBehindInShortBuffers) {
  constexpr std::size_t bytes = 1400, span = 2 << 20, room = 1472;
  constexpr unsigned streaming = 3;
  Handover handover;
  std::vector<unsigned> last(span / room, streaming);
  unsigned streamed = 0;
  for (unsigned i = 0; i < 40'000; ++i) {
    const std::size_t place = i % last.size();
    const auto choice = handover.next(bytes, place * room);
    const unsigned ticks = choice.kind == streaming ? 1700 : last[place] == streaming ? 1200 : 2600;
    if (choice.sample) handover.note(choice.kind, bytes, ticks);
    last[place] = choice.kind;
    streamed += i >= 30'000 && choice.kind == streaming;
  }
  EXPECT_GE(streamed, 9'600u);
}

// The store that puts of `bytes` bytes end with, where they cost so many ticks by store.
Store settled_put(Putting& putting, std::size_t bytes, const std::array<unsigned, 3>& ticks) {
  for (int i = 0; i < 1500; ++i)
    if (const auto choice = putting.next(bytes); choice.sample) putting.note(choice.kind, bytes, ticks[choice.kind]);
  return put_stores[putting.best(bytes)];
}

TEST(Putting, StreamsShortDataOnlyWhereThatIsMuchFaster) {
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{16384}}) {
    Putting putting;
    EXPECT_EQ(settled_put(putting, bytes, {4900, 5800, 2300}), Store::temporal) << bytes;
    EXPECT_EQ(settled_put(putting, bytes, {23000, 26000, 5600}), Store::streaming) << bytes;
    EXPECT_EQ(settled_put(putting, bytes, {4900, 5800, 2300}), Store::temporal) << bytes;
    EXPECT_EQ(settled_put(putting, bytes, {4900, 3000, 2300}), Store::claiming) << bytes;
  }
}

TEST(Putting, StreamsLongDataWhereThatIsFaster) {
  for (const std::size_t bytes : {std::size_t{32768}, std::size_t{4} << 20}) {
    Putting putting;
    EXPECT_EQ(settled_put(putting, bytes, {10000, 12000, 8000}), Store::streaming) << bytes;
    EXPECT_EQ(settled_put(putting, bytes, {10000, 12000, 11000}), Store::temporal) << bytes;
  }
}

}  // namespace
}  // namespace nearfield::copying
