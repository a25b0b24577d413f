// What the engine is compiled with in models, before anything else: atomics, pauses, the clocks and the futex are the
// explorer's (explore.hpp). Nothing else of the engine differs.
#pragma once
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#define NEARFIELD_MODEL 1

namespace nearfield::testing {

enum class Access : std::uint8_t { load, store, add, exchange, compare };
// One access to a word of `size` bytes; what was there. compare: stores `value` if the word is `expected`.
std::uint64_t access(Access kind, void* word, unsigned size, std::uint64_t value, std::uint64_t expected,
                     std::memory_order order);
void pause_process();
int read_clock(clockid_t clock, timespec* time);
long system_call(long number, std::initializer_list<long> arguments);
template <class... Arguments>
long system_call(long number, Arguments... arguments) {
  return system_call(number, {(long)arguments...});
}

template <class T>
class ModelAtomic {
 public:
  static constexpr bool is_always_lock_free = true;
  ModelAtomic() = default;
  constexpr ModelAtomic(T value) : value_(value) {}
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const { return ask(Access::load, T{}, T{}, order); }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) { ask(Access::store, value, T{}, order); }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    return ask(Access::exchange, value, T{}, order);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) {
    return ask(Access::add, value, T{}, order);
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) { return fetch_add(T(-value), order); }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) {
    const T was = ask(Access::compare, value, expected, order);
    const bool good = std::memcmp(&was, &expected, sizeof was) == 0;
    expected = was;
    return good;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order = std::memory_order_seq_cst,
                             std::memory_order other = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value, order, other);
  }

 private:
  static std::uint64_t widen(T value) {
    std::uint64_t wide = 0;
    std::memcpy(&wide, &value, sizeof value);
    return wide;
  }
  T ask(Access kind, T value, T expected, std::memory_order order) const {
    const std::uint64_t was = access(kind, const_cast<T*>(&value_), sizeof(T), widen(value), widen(expected), order);
    T narrow;
    std::memcpy(&narrow, &was, sizeof narrow);
    return narrow;
  }
  T value_{};
};

}  // namespace nearfield::testing

namespace nearfield::processor {
inline void pause() { testing::pause_process(); }
inline std::uint64_t ticks() { return 1; }
inline bool can_demote() { return false; }
}  // namespace nearfield::processor

#define clock_gettime(clock, time) ::nearfield::testing::read_clock(clock, time)
#define syscall(...) ::nearfield::testing::system_call(__VA_ARGS__)
