// Put and get of windows, by several threads at a time, while kinds of stores are tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/engine/windows.hpp"

namespace nearfield {
namespace {

using testing::Chance;
using testing::run_windows;
using testing::sizes;
using windows::Window;

constexpr std::size_t most = 40000, threads = 2;

std::byte value(int member, std::size_t thread, int round, std::size_t i) {
  return std::byte((std::size_t(member) * 31 + thread * 17 + std::size_t(round) * 7 + i) & 0xff);
}

// Each thread of each member has a room of its own in the next member's memory.
bool put_and_get(Window& window, std::size_t thread, int rounds) {
  Chance chance(unsigned(window.rank()) * 8 + unsigned(thread));
  const int target = (window.rank() + 1) % window.size();
  std::vector<std::byte> data(most), back(most + 1);
  bool good = true;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t bytes = 1 + chance.below(chance.below(4) ? most - 64 : 300), from = chance.below(64);
    std::byte* const at = window.memory(target).base + thread * most + from;
    for (std::size_t i = 0; i < bytes; ++i) data[i] = value(window.rank(), thread, round, i);
    window.put(target, at, data.data(), bytes);
    Window::flush();
    std::ranges::fill(back, std::byte{0});
    window.get(target, at, back.data(), bytes);
    good &= std::equal(data.begin(), data.begin() + std::ptrdiff_t(bytes), back.begin()) && back[bytes] == std::byte{0};
  }
  return good;
}

TEST(Moving, BytesArriveWhicheverStoresAreTried) {
  for (const int size : sizes)
    EXPECT_EQ(0, run_windows(size, threads * most,
                             [](Window& window, team::Process&, Chance&) {
                               window.several_threads = true;
                               bool good[threads];
                               {
                                 std::vector<std::jthread> all;
                                 for (std::size_t t = 0; t < threads; ++t)
                                   all.emplace_back([&, t] { good[t] = put_and_get(window, t, 100); });
                               }
                               window.meet();
                               return good[0] && good[1];
                             }))
        << size;
}

}  // namespace
}  // namespace nearfield
