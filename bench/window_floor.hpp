// The floor of one-sided operations: loads, stores and locked instructions on mapped memory, with the same contention.
//
//   put, get        copied, streamed
//   accumulate      locked-add: a word is held while a vector is added; cmpxchg: element by element
//   fetch-and-op    xadd; compare-and-swap: cmpxchg
//   fence           flags: everybody meets; pscw: those who share an epoch do
//   lock            xchg until the word was free; lock-shared: xadd
//                   (with a put: flags-copied and so on)
#pragma once
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/floor.hpp"
#include "bench/measuring.hpp"

namespace bench {

class WindowFloor {
 public:
  using Bodies = std::vector<Floor::Body>;

  WindowFloor(Floor& floor, const Cell& cell) : floor_(&floor), n_(cell.bytes), access_(cell.access()) {}

  Bodies bodies(const std::string& op) const {
    if (op == "fetch-and-op") return {{"xadd", surrounded([word = word()](double*, double*) { word.fetch_add(1); })}};
    if (op == "compare-and-swap")
      return {{"cmpxchg", surrounded([word = word(), expected = 0L](double*, double*) mutable {
                 if (word.compare_exchange_strong(expected, expected + 1)) ++expected;
               })}};
    if (accumulates(op)) return sums(op == "get-accumulate");
    if (op == "fence") return with_put("flags", &WindowFloor::fence);
    if (op == "pscw") return with_put("flags", &WindowFloor::pscw);
    if (op == "lock") return with_put("xchg", &WindowFloor::lock);
    if (op == "lock-shared") return with_put("xadd", &WindowFloor::lock_shared);
    return op == "get" ? moves(false) : moves(true);
  }

 private:
  using Copy = void (*)(std::byte*, const std::byte*, std::size_t);
  static std::byte* bytes(double* at) { return reinterpret_cast<std::byte*>(at); }
  std::byte* there(unsigned turn = 0) const { return floor_->recv_of(access_.target()) + access_.place(turn); }
  std::atomic_ref<long> word() const { return std::atomic_ref(*reinterpret_cast<long*>(there())); }
  std::atomic<long>& lock_word() const { return floor_->window_words(access_.target()).lock.bytes; }

  static void copied(std::byte* to, const std::byte* from, std::size_t n) { std::memcpy(to, from, n); }
  static void streamed(std::byte* to, const std::byte* from, std::size_t n) {
    copy_streaming(to, from, n);
    nearfield::processor::finish_streams();
  }
  std::vector<std::pair<std::string, Copy>> copies() const {
    if (n_ < 4096) return {{"copied", copied}};
    return {{"copied", copied}, {"streamed", streamed}};
  }

  Bodies moves(bool put) const {
    Bodies found;
    std::byte* const from = floor_->send_of(access_.target()) + access_.place(0);
    for (const auto& [name, copy] : copies())
      found.push_back({name, surrounded([=, copy = copy, to = there(), n = n_](double* s, double* r) {
                         if (put) copy(to, bytes(s), n);
                         else copy(bytes(r), from, n);
                         asm volatile("" ::: "memory");  // calls stay apart
                       })});
    return found;
  }

  Bodies sums(bool fetch) const {
    if (n_ % 8) return {};
    auto* const to = reinterpret_cast<double*>(there());
    const std::size_t n = n_ / 8;
    Bodies found{{"locked-add",
                  surrounded([=, word = &lock_word(), before = std::vector<double>(n)](double* s, double*) mutable {
                    acquire(*word);
                    if (fetch) std::memcpy(before.data(), to, n * 8);
                    bench::add(to, to, s, n);
                    word->store(0, std::memory_order_release);  // pairs with acquire
                  })}};
    if (n <= 64)
      found.push_back({"cmpxchg", surrounded([=](double* s, double*) {
                         for (std::size_t i = 0; i < n; ++i) std::atomic_ref(to[i]).fetch_add(s[i]);
                       })});
    return found;
  }

  // ---------------------------------------------------------------- what synchronizes

  // `way` synchronizes around a copy: `put(turn)`.
  struct Put {
    const WindowFloor* floor;
    const double* send;
    Copy copy;
    void operator()(unsigned turn = 0) const {
      if (floor->n_) copy(floor->there(turn), reinterpret_cast<const std::byte*>(send), floor->n_);
    }
  };
  Bodies with_put(const std::string& name, void (WindowFloor::*way)(const Put&, unsigned) const) const {
    Bodies found;
    for (const auto& [how, copy] : copies())
      found.push_back({n_ ? name + "-" + how : name,
                       [self = *this, way, copy = copy, turn = 0u](double* s, double* r, OwnWork& own) mutable {
                         own.write(s);
                         (self.*way)({&self, s, copy}, turn);
                         own.read(s, r + self.access_.own_half(turn++) / 8);
                       }});
    return found;
  }

  void fence(const Put& put, unsigned turn) const {
    put(turn);
    floor_->meet();
  }

  // The rank's own words say how far it has come.
  void pscw(const Put& put, unsigned) const {
    std::atomic<long>&posted = floor_->window_words(rank).posted.bytes,
    &completed = floor_->window_words(rank).completed.bytes;
    const long round = posted.load(std::memory_order_relaxed) + 1;
    posted.store(round, std::memory_order_release);  // pairs with the origins' loads
    if (access_.accesses()) {
      await(floor_->window_words(access_.target()).posted.bytes, round);
      put();
      completed.store(round, std::memory_order_release);  // pairs with the target's load
    }
    for (const int origin : origins_) await(floor_->window_words(origin).completed.bytes, round);
  }
  static void await(const std::atomic<long>& word, long round) {
    while (word.load(std::memory_order_acquire) < round) look_again();
  }

  static void acquire(std::atomic<long>& word) {
    while (word.exchange(1, std::memory_order_acquire))
      while (word.load(std::memory_order_relaxed)) look_again();
  }
  void lock(const Put& put, unsigned) const {
    acquire(lock_word());
    put();
    lock_word().store(0, std::memory_order_release);  // pairs with acquire
  }
  void lock_shared(const Put& put, unsigned) const {
    lock_word().fetch_add(1, std::memory_order_acquire);  // nobody holds it alone
    put();
    lock_word().fetch_sub(1, std::memory_order_release);
  }

  Floor* floor_;
  std::size_t n_;
  Access access_;
  std::vector<int> origins_ = access_.origins();
};

inline std::vector<Floor::Body> bodies_on_window(Floor& floor, const Cell& cell) {
  return WindowFloor(floor, cell).bodies(cell.op);
}

}  // namespace bench
