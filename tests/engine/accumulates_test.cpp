// Accumulates of several members on one memory: by instructions, under locks, and while a window goes from the one to
// the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/reducing/fold.hpp"
#include "tests/engine/windows.hpp"

namespace nearfield {
namespace {

using reducing::Op;
using reducing::Type;
using team::Process;
using testing::Chance;
using testing::make_window;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_windows;
using testing::sizes;
using testing::word;
using windows::Window;

Window::Operation sum_of(Type type) {
  return {reducing::fold(Op::sum, type), Op::sum, type, false, std::uint32_t(reducing::size_of(type))};
}

template <class T>
void add(Window& window, int target, std::uint64_t offset, const std::vector<T>& values, T* fetched, Type type) {
  window.accumulate(target, window.memory(target).base + offset, reinterpret_cast<const std::byte*>(values.data()),
                    reinterpret_cast<std::byte*>(fetched), values.size(), sum_of(type));
}

// Fetch-and-add of one word of the first member: what each has fetched goes behind it, in the first member's memory.
constexpr std::uint64_t most_fetched = testing::rounds_of(4096);
bool is_permutation(const Window& window, std::uint64_t each) {
  std::vector<std::uint64_t> all;
  for (int m = 0; m < window.size(); ++m)
    for (std::uint64_t i = 0; i < each; ++i) all.emplace_back(word(window, m, 512 + i));
  std::ranges::sort(all);
  for (std::uint64_t i = 0; i < all.size(); ++i)
    if (all[i] != i) return false;
  return word(window, 0) == all.size();
}
std::uint64_t fetch_and_add(Window& window, std::uint64_t by = 1) {
  const std::vector<std::uint64_t> value{by};
  std::uint64_t before = 0;
  add(window, 0, 0, value, &before, Type::u64);
  return before;
}

TEST(Accumulates, WordsFetchEachValueOnce) {
  for (const int size : sizes)
    EXPECT_EQ(0, run_windows(size, 4096 + 8 * most_fetched,
                             [](Window& window, Process&, Chance& chance) {
                               if (!window.lock_all(true)) return false;
                               for (std::uint64_t i = 0; i < most_fetched; ++i) {
                                 word(window, window.rank(), 512 + i) = fetch_and_add(window);
                                 chance.delay();
                               }
                               window.unlock_all();
                               window.meet();
                               return is_permutation(window, most_fetched);
                             }))
        << size;
}

// Many elements at once, over the ends of stripes: each member adds to ranges that the others know.
constexpr std::uint64_t area = 3 * windows::stripe_bytes + 64;
template <class T>
struct Ranges {
  std::uint64_t offset, count;
  std::vector<T> expected;
  Ranges(std::uint64_t at, std::uint64_t bytes) : offset(at), count((bytes - at) / sizeof(T)), expected(count) {}
  // Values that all types hold exactly.
  template <class Use>
  void draw(int size, int rounds, Use use) {
    for (int m = 0; m < size; ++m) {
      Chance chance(unsigned(m) * 31 + unsigned(offset));
      for (int i = 0; i < rounds; ++i) {
        const std::uint64_t first = chance.below(unsigned(count)), n = 1 + chance.below(unsigned(count - first));
        use(m, first, n, T(1 + chance.below(3)));
      }
    }
  }
};

template <class T>
bool add_ranges(Window& window, Type type, std::uint64_t offset) {
  const int rounds = testing::rounds_of(60);
  std::memset(window.memory(window.rank()).base, 0, area);
  window.meet();
  Ranges<T> ranges(offset, area);
  ranges.draw(window.size(), rounds, [&](int member, std::uint64_t first, std::uint64_t n, T value) {
    for (std::uint64_t i = 0; i < n; ++i) ranges.expected[first + i] = T(ranges.expected[first + i] + value);
    if (member == window.rank())
      add(window, 0, offset + first * sizeof(T), std::vector<T>(n, value), static_cast<T*>(nullptr), type);
  });
  window.meet();
  const bool good = std::memcmp(window.memory(0).base + offset, ranges.expected.data(), ranges.count * sizeof(T)) == 0;
  window.meet();
  return good;
}

TEST(Accumulates, LongOnesLoseNothing) {
  struct Pair {  // complex double
    double real, imaginary;
    Pair(double value = 0) : real(value), imaginary(value) {}
    Pair operator+(Pair other) const { return real + other.real; }
  };
  for (const int size : sizes)
    EXPECT_EQ(0, run_windows(size, area,
                             [](Window& window, Process&, Chance&) {
                               if (!window.lock_all(true)) return false;
                               bool good = true;
                               for (const std::uint64_t off : {0, 1, 4, 13}) {
                                 good &= add_ranges<std::uint8_t>(window, Type::u8, off);
                                 good &= add_ranges<std::uint16_t>(window, Type::u16, off);
                                 good &= add_ranges<std::uint32_t>(window, Type::u32, off);
                                 good &= add_ranges<std::uint64_t>(window, Type::u64, off);
                                 good &= add_ranges<double>(window, Type::f64, off);
                                 good &= add_ranges<Pair>(window, Type::c64, off);
                               }
                               window.unlock_all();
                               return good;
                             }))
        << size;
}

// Words by instructions, until somebody, in the middle, needs locks: many windows, each of which goes over once.
TEST(Accumulates, GoOverToLocksAndLoseNothing) {
  constexpr std::uint64_t each = 400;
  for (const int size : {2, 3, 4, 5, 9})
    EXPECT_EQ(0, run_members(size, testing::seconds,
                             [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                               bool good = true;
                               for (unsigned round = 0; round < unsigned(testing::rounds_of(40)) && good; ++round) {
                                 auto window = make_window(process, bootstrap, rank, size, 4096 + 8 * most_fetched);
                                 if (!window) return false;
                                 Chance all(round), chance(round * 16 + unsigned(rank));
                                 const int first = int(all.below(unsigned(size)));
                                 const std::uint64_t when = all.below(each);
                                 if (!window->lock_all(true)) return false;
                                 for (std::uint64_t i = 0; i < each; ++i) {
                                   std::uint64_t before = 0;
                                   if (rank == first && i >= when && i % 3 == 0) {
                                     std::vector<std::uint64_t> ones(20, 1), fetched(20);
                                     add(*window, 0, 0, ones, fetched.data(),
                                         Type::u64);  // the word, and others behind it
                                     before = fetched[0];
                                   } else {
                                     before = fetch_and_add(*window);
                                   }
                                   word(*window, rank, 512 + i) = before;
                                   if (chance.below(64) == 0) chance.delay();
                                 }
                                 window->unlock_all();
                                 window->meet();
                                 good &= is_permutation(*window, each);
                                 testing::close(std::move(window), bootstrap);
                               }
                               return good;
                             }))
        << size;
}

}  // namespace
}  // namespace nearfield
