// What every wait of the process keeps going, whatever it waits for itself: a registry of sources.
//
//   messages   always. A peer may have run out of room for what it sends us, or wait for our part of a transfer
//   contexts     bodies of operations that may overlap others
//   the host   now and then, and as often as the host itself would while something of the host's needs this rank
//
// One list for all waits: of teams, of messages, for the host, and while teams are made.
#pragma once
#include <atomic>
#include <cstddef>

#include "engine/waiting/wake_word.hpp"

namespace nearfield::waiting {

// Whether this thread is one of ours. Such threads keep ours going, but may not call the host.
inline thread_local bool own_thread = false;

// Something that is kept going.
struct Source {
  // Does what can be done now; whether anything moved.
  virtual bool poll() = 0;
  // Whether something is under way, so that peers may wait for our next step without telling us: naps are short.
  virtual bool busy() { return false; }
  // This thread is about to sleep on that word, nullptr: awake again. Who is blocked on us rings there.
  virtual void asleep_on(WakeWord* /*word*/) {}

 protected:
  ~Source() = default;
};

// The host, as waits see it.
struct Foreign {
  virtual void step() = 0;
  // Whether it has anything under way: then every round of a wait is a step, and nobody sleeps for long.
  virtual bool needs_us() = 0;

 protected:
  ~Foreign() = default;
};

// A thread that keeps everything of ours going while no other one waits (messages/progress_thread.hpp).
struct Background {
  virtual void wake() = 0;       // something has begun
  virtual void wait_ends() = 0;  // of whoever kept everything going so far

 protected:
  ~Background() = default;
};

class Progress {
 public:
  static constexpr std::size_t most = 4;
  // Not while another thread waits. pre: fewer than `most` are there.
  void add(Source& source) { source_[count_++] = &source; }
  void remove(Source& source) {
    for (std::size_t i = 0; i < count_; ++i)
      if (source_[i] == &source) {
        source_[i] = source_[--count_];
        return;
      }
  }
  void set_host(Foreign* host) { host_ = host; }

  // One step of everything; whether anything of ours moved.
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
  // While it is alive this thread keeps everything going, and the one in the background need not.
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
