#include "tests/engine/counting/counter.hpp"

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

// Nothing here is compiled for ThreadSanitizer (cmake/Tests.cmake).
namespace nearfield::testing {
namespace {

struct Line {
  std::bitset<most_counted> valid;
  std::uint64_t step = 0;  // its writer's at its last write
};

using Page = std::array<Line, 64>;

struct Counter {
  int members = 0, group = 1, package = 1;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> shared;  // memory: begin, end
  // One lock: two CPUs are seldom at the same line.
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages;
  Counted sum;
  std::array<std::uint64_t, most_counted> step{};  // of each member
};
Counter& counter() {
  static Counter& one = *new Counter;
  return one;
}
std::atomic<bool> counting{false};
thread_local int member_of_thread = -1;
// The line that this thread has last had for plain accesses, 0: none; of what is awaited every look counts.
struct Had {
  std::uintptr_t line = 0;
  bool written = false;
};
thread_local Had had;

// From the nearest member that has it.
void move(Counter& all, Line& line, int to) {
  const auto has = [&](int first, int last) {
    for (int member = first; member < std::min(last, all.members); ++member)
      if (line.valid[std::size_t(member)]) return true;
    return false;
  };
  const int group = to / all.group * all.group, package = to / all.package * all.package;
  if (line.valid.none()) ++all.sum.first;
  else if (has(group, group + all.group)) ++all.sum.near;
  else if (has(package, package + all.package)) ++all.sum.far;
  else ++all.sum.packages;
}

void access_line(Counter& all, std::uintptr_t number, bool writes) {
  const int me = member_of_thread;
  auto& page = all.pages[number / 64];
  if (!page) page = std::make_unique<Page>();
  Line& line = (*page)[number % 64];
  const bool valid = line.valid[std::size_t(me)];
  std::uint64_t& step = all.step[std::size_t(me)];
  if (!valid) {
    if (line.valid.any()) step = std::max(step, line.step + 1);
    move(all, line, me);
  }
  if (writes) {
    if (valid && line.valid.count() > 1) ++all.sum.taken;
    line.valid.reset();
    line.step = step;
  }
  line.valid.set(std::size_t(me));
}

// Whether a plain access may be left out, since the one before was to the same line.
bool repeated(std::uintptr_t begin, std::size_t bytes, bool writes) {
  const std::uintptr_t line = begin / 64;
  const bool again = line == had.line && line == (begin + bytes - 1) / 64 && (had.written || !writes);
  if (!again) had = {(begin + bytes - 1) / 64, writes};
  return again;
}

void access(const volatile void* at, std::size_t bytes, bool writes, bool awaited = false) {
  if (member_of_thread < 0 || !counting.load(std::memory_order_relaxed) || !bytes) return;
  if (awaited) had = {};
  else if (repeated(reinterpret_cast<std::uintptr_t>(at), bytes, writes)) return;
  Counter& all = counter();
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const auto range = std::ranges::upper_bound(all.shared, begin, {}, [](const auto& one) { return one.second; });
  if (range == all.shared.end() || begin < range->first) return;
  const std::lock_guard lock(all.mutex);
  for (std::uintptr_t line = begin / 64; line <= (begin + bytes - 1) / 64; ++line) access_line(all, line, writes);
}

}  // namespace

Counted operator-(const Counted& after, const Counted& before) {
  return {after.near - before.near,   after.far - before.far,     after.packages - before.packages,
          after.taken - before.taken, after.first - before.first, after.steps - before.steps};
}

void begin_counting(int members, int group, int package) {
  Counter& all = counter();
  all.members = members, all.group = std::max(1, group), all.package = std::max(1, package);
  all.shared.clear();
  all.pages.clear();
  all.sum = {};
  all.step = {};
  counting = true;
}
void count_as(int member) { member_of_thread = member; }
void count_in(const void* base, std::size_t bytes) {
  Counter& all = counter();
  const std::lock_guard lock(all.mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  all.shared.emplace_back(begin, begin + bytes);
  std::ranges::sort(all.shared);
}
Counted counted() {
  Counter& all = counter();
  const std::lock_guard lock(all.mutex);
  Counted sum = all.sum;
  sum.steps = *std::ranges::max_element(all.step);
  return sum;
}
void end_counting() { counting = false; }

}  // namespace nearfield::testing

// ---- what the compiler calls (gcc's tsan.cc), and memcpy and its like, which it does not instrument
using nearfield::testing::access;
// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** at, void*) { access(at, sizeof *at, true); }
void __tsan_vptr_read(void** at) { access(at, sizeof *at, false); }
void __tsan_read_range(void* at, unsigned long bytes) { access(at, bytes, false); }
void __tsan_write_range(void* at, unsigned long bytes) { access(at, bytes, true); }
void* __tsan_create_fiber(unsigned) { return nullptr; }
void __tsan_destroy_fiber(void*) {}
void* __tsan_get_current_fiber() { return nullptr; }
void __tsan_switch_to_fiber(void*, unsigned) {}
void __tsan_atomic_thread_fence(int) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void __tsan_atomic_signal_fence(int) { std::atomic_signal_fence(std::memory_order_seq_cst); }

#define PLAIN(bytes)                                                        \
  void __tsan_read##bytes(void* at) { access(at, bytes, false); }           \
  void __tsan_write##bytes(void* at) { access(at, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* at) { access(at, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* at) { access(at, bytes, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define FETCH(bits, name, builtin)                                                                                     \
  std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* at, std::uint##bits##_t value, int) { \
    access(at, bits / 8, true, true);                                                                                  \
    return builtin(at, value, __ATOMIC_SEQ_CST);                                                                       \
  }
#define COMPARE(bits, name)                                                                                           \
  bool __tsan_atomic##bits##_compare_exchange_##name(volatile std::uint##bits##_t* at, std::uint##bits##_t* expected, \
                                                     std::uint##bits##_t value, int, int) {                           \
    access(at, bits / 8, true, true);                                                                                 \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);               \
  }
#define ATOMIC(bits)                                                                                         \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int) {              \
    access(at, bits / 8, false, true);                                                                       \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                            \
  }                                                                                                          \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value, int) {       \
    access(at, bits / 8, true, true);                                                                        \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                           \
  }                                                                                                          \
  FETCH(bits, exchange, __atomic_exchange_n)                                                                 \
  FETCH(bits, fetch_add, __atomic_fetch_add)                                                                 \
  FETCH(bits, fetch_sub, __atomic_fetch_sub)                                                                 \
  FETCH(bits, fetch_and, __atomic_fetch_and)                                                                 \
  FETCH(bits, fetch_or, __atomic_fetch_or)                                                                   \
  FETCH(bits, fetch_xor, __atomic_fetch_xor)                                                                 \
  COMPARE(bits, strong)                                                                                      \
  COMPARE(bits, weak)                                                                                        \
  std::uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                            \
      volatile std::uint##bits##_t* at, std::uint##bits##_t expected, std::uint##bits##_t value, int, int) { \
    access(at, bits / 8, true, true);                                                                        \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);            \
    return expected;                                                                                         \
  }
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __real_memset(void*, int, std::size_t);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  access(from, bytes, false);
  access(to, bytes, true);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  access(from, bytes, false);
  access(to, bytes, true);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  access(to, bytes, true);
  return __real_memset(to, value, bytes);
}
}
// NOLINTEND(bugprone-reserved-identifier)
