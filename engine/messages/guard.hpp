// The messenger's lock, as it is held by one call.
#pragma once
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

struct Messenger::Guard {
  explicit Guard(Messenger& messenger) : lock_(messenger.lock_, std::defer_lock), threaded_(messenger.threaded_) {
    if (threaded_) lock_.lock();
  }
  Guard(Messenger& messenger, std::try_to_lock_t)
      : lock_(messenger.lock_, std::defer_lock), threaded_(messenger.threaded_) {
    if (threaded_) owns_ = lock_.try_lock();
  }
  // The caller holds the lock, and keeps it.
  enum Held { held };
  Guard(Messenger& messenger, Held) : lock_(messenger.lock_, std::defer_lock), threaded_(false) {}
  bool owns() const { return owns_; }
  // While bytes are copied: the request in question is marked busy and nobody else touches it.
  void let_go() {
    if (threaded_) lock_.unlock();
  }
  void take() {
    if (threaded_) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
  bool threaded_, owns_ = true;
};

// While a step is a stand-in's: it may not ask elsewhere.
struct Messenger::StandingIn {
  explicit StandingIn(Messenger& messenger) : messenger(messenger) { messenger.standing_in_ = true; }
  ~StandingIn() { messenger.standing_in_ = false; }
  Messenger& messenger;
};

}  // namespace nearfield::messages
