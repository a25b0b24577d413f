// The sources that every wait of the process polls, whatever it waits for.
//
//   messages   in every poll: a peer may lack room for its sends to us, or wait for our part of a transfer
//   bodies     in every poll: suspended bodies of operations that may overlap others (fibers/runner.hpp)
//   the host   now and then; while it has something under way that needs this rank, as often as the host itself would
//
// All waits use this list: those in teams, for messages, for the host, and during the creation of a team.
#pragma once
#include <atomic>
#include <cstddef>

#include "engine/waiting/wake_word.hpp"

namespace nearfield::waiting {

// Whether Nearfield has created this thread. Such a thread progresses messages and bodies, but may not call the host.
inline thread_local bool own_thread = false;

// Something that every wait progresses.
struct Source {
  // Does what can be done now. Returns whether anything moved.
  virtual bool poll() = 0;
  // Whether something is under way, so that peers may wait for our next step without telling us: naps are short.
  virtual bool busy() { return false; }
  // Called when this thread is about to sleep on that word, so that blocked peers ring it; nullptr: it is awake again.
  virtual void asleep_on(WakeWord* /*word*/) {}

 protected:
  ~Source() = default;
};

// The host, as waits see it.
struct Foreign {
  virtual void step() = 0;
  // Returns whether it has anything under way. If so, every round of a wait calls step(), and all sleeps are short.
  virtual bool needs_us() = 0;

 protected:
  ~Foreign() = default;
};

// A thread that progresses all sources while no thread of the program waits (messages/progress_thread.hpp).
struct Background {
  virtual void wake() = 0;       // called when something has begun
  virtual void wait_ends() = 0;  // called when no thread of the program waits any more

 protected:
  ~Background() = default;
};

class Progress {
 public:
  static constexpr std::size_t most = 4;
  // pre: no other thread waits, and there are fewer than `most` sources.
  void add(Source& source) { source_[count_++] = &source; }
  void remove(Source& source) {
    for (std::size_t i = 0; i < count_; ++i)
      if (source_[i] == &source) {
        source_[i] = source_[--count_];
        return;
      }
  }
  void set_host(Foreign* host) { host_ = host; }

  // Does one step of the host and of all sources. Returns whether a source moved.
  bool turn() {
    step_host();
    return poll();
  }
  bool poll() {
    bool moved = false;
    for (std::size_t i = 0; i < count_; ++i) moved |= source_[i]->poll();
    return moved;
  }
  void step_host() {
    if (host_) host_->step();
  }
  bool host_needs_us() { return host_ && host_->needs_us(); }
  bool busy() {
    for (std::size_t i = 0; i < count_; ++i)
      if (source_[i]->busy()) return true;
    return false;
  }
  void asleep_on(WakeWord* word) {
    for (std::size_t i = 0; i < count_; ++i) source_[i]->asleep_on(word);
  }

  // ---- the thread in the background; nullptr: there is none
  void set_background(Background* thread) {
    background_.store(thread, std::memory_order_release);  // SYNC: background
  }
  void wake_background() {
    if (Background* const thread = background_.load(std::memory_order_acquire)) [[unlikely]]  // SYNC: background
      thread->wake();
  }
  bool attended() const { return attending_.load(std::memory_order_seq_cst) > 0; }  // SYNC: attending
  // Scope of a wait, in which this thread progresses all sources, so the thread in the background need not.
  class Attending {
   public:
    explicit Attending(Progress& progress)
        : progress_(progress), background_(progress.background_.load(std::memory_order_acquire)) {  // SYNC: background
      if (background_) [[unlikely]]
        progress_.attending_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Attending() {
      if (!background_) [[likely]]
        return;
      // SYNC: attending
      if (progress_.attending_.fetch_sub(1, std::memory_order_seq_cst) == 1) background_->wait_ends();
    }
    Attending(const Attending&) = delete;

   private:
    Progress& progress_;
    Background* const background_;
  };

 private:
  std::atomic<Background*> background_{nullptr};
  std::atomic<int> attending_{0};  // threads
  Source* source_[most] = {};
  std::size_t count_ = 0;
  Foreign* host_ = nullptr;
};

}  // namespace nearfield::waiting
