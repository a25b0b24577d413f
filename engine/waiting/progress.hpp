// What every wait of the process keeps going, whatever it waits for itself:
//
//   messages   always. A peer may have run out of room for what it sends us, or wait for our part of a transfer
//   the host   now and then, and as often as the host itself would while something of the host's needs this rank
//
// One list for all waits: of teams, of messages, for the host, and while teams are made.
#pragma once
#include <cstdint>

#include "engine/base/atomic.hpp"

namespace nearfield::waiting {

// Messages, as other waits see them; messages::Messenger is the one there is.
struct Messages {
  // Takes in what has come and does what can be done now; whether anything was.
  virtual bool poll() = 0;
  // Whether something of ours is under way, so that peers may wait for our next step without telling us.
  virtual bool busy() = 0;
  // This thread is about to sleep on that futex word, nullptr: awake again. Who is blocked on us rings there.
  virtual void asleep_on(Atomic<std::uint32_t>* word) = 0;

 protected:
  ~Messages() = default;
};

struct Progress {
  Messages* messages = nullptr;                    // set by the messenger
  void (*host)() = [] {};                          // set by the shim: one step of the host
  bool (*host_needs_us)() = [] { return false; };  // set by the shim: whether the host has anything under way

  // One step of everything; whether a message moved.
  bool turn() {
    host();
    return messages && messages->poll();
  }
};

}  // namespace nearfield::waiting
