// Hands out copy buffers: those first that have not been used for longest.
//
// A store to a line that another core's private cache holds waits for that core; once the line has moved to the shared
// cache it costs a sixth (docs/dev/decisions.md). So memory that one core writes after others have read it is taken
// here: buffers rotate over a span of about twice the private cache, so that each is unused for as long as possible
// before it is written again. A process has one span for all its peers.
//
// The first take allocates the memory, since a process that sends nothing needs none. If that fails, no later one
// tries.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/memory/arena.hpp"
#include "engine/memory/collapsing.hpp"

namespace nearfield::memory {

class CopyBuffers {
 public:
  static constexpr std::size_t unit = 1024;  // bytes; lengths are rounded up to it
  static constexpr std::size_t huge_page = 2 << 20;

  // Takes `span` bytes of the arena, which must outlive this; they become huge pages, as `collapsing` allows, once they
  // have been used for long.
  CopyBuffers(Segment& segment, Arena& arena, std::size_t span, Allowance& collapsing);
  ~CopyBuffers();
  CopyBuffers(const CopyBuffers&) = delete;

  static constexpr std::size_t bytes_for(std::size_t span) { return span / unit * unit; }

  std::size_t span() const { return units_ * unit; }
  // Returns the offset in the segment of `bytes` bytes, a multiple of `unit`; 0: there is no room, or fewer than
  // `spared` bytes would be left. The first call makes the pages. Any thread.
  std::size_t take(std::size_t bytes, std::size_t spared = 0) noexcept;
  void put_back(std::size_t offset, std::size_t bytes) noexcept;
  // Gives the memory back, unless some of it is held. The next take makes it again.
  void rest() noexcept;
  std::size_t free_bytes() const { return free_.load(std::memory_order_relaxed) * unit; }

  // An object that keeps buffers beyond their use. Holders are called, and change what they keep, under
  // holders_mutex().
  class Holder {
   public:
    virtual void put_back_read() = 0;  // puts back those that all readers have read

   protected:
    ~Holder() = default;

   private:
    friend CopyBuffers;
    Holder* next_ = nullptr;
    bool is_holder_ = false;
  };
  std::mutex& holders_mutex() { return holders_mutex_; }
  void add(Holder& holder) noexcept;  // no effect if it has been added
  void remove(Holder& holder) noexcept;
  void ask_holders();

 private:
  struct Lock;
  bool make() noexcept;  // returns whether there is memory
  void make_huge() noexcept;
  // Returns the last unit held of [begin, begin + count), relative to `begin`; `count` when none is.
  std::size_t last_held(std::size_t begin, std::size_t count) const;
  void mark(std::size_t begin, std::size_t count, bool held);

  Segment& segment_;
  Arena& arena_;
  Allowance& collapsing_;
  const std::size_t units_;
  std::size_t begin_ = 0;           // 0: no memory; under the lock
  std::atomic<bool> there_{false};  // begin_ != 0, to be read without the lock
  std::atomic<bool> huge_{false};   // set as well if it can never have huge pages
  std::atomic<unsigned> turns_{0};  // rotations since the last attempt to make huge pages
  std::mutex making_;
  bool refused_ = false;  // under making_
  std::size_t cursor_ = 0;
  std::atomic<std::size_t> free_{0};
  std::atomic_flag locked_;
  std::vector<std::uint64_t> held_;  // a bit for each unit
  std::mutex holders_mutex_;
  Holder* holders_ = nullptr;  // chained, since taking a buffer must not need memory
};

// Returns over how many bytes buffers should rotate: twice the private cache of a core, as long as all cores of a
// shared cache leave half of it to the program. `sharing`: cores of one shared cache; 0: unknown.
constexpr std::size_t span_for(std::size_t private_cache, std::size_t shared_cache, std::size_t sharing) {
  constexpr std::size_t least = 256 << 10;
  const std::size_t wanted = 2 * private_cache, most = shared_cache / 2 / (sharing ? sharing : 1);
  const std::size_t span = wanted < most ? wanted : most;
  return span > least ? span : least;
}

}  // namespace nearfield::memory
