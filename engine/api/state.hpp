// The state that libnearfield-engine.so keeps for the process: one object. It is never destroyed, since threads and
// handlers of exit() outlive main.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/globals.hpp"
#include "engine/messages/progress_thread.hpp"

namespace nearfield::api {

// Processes that share memory, and their messenger. Every group lies within a set. Sets are kept for later groups of
// the same processes.
struct ProcessSet {
  std::uint64_t id = 0;  // equal on its members, different from those of other sets
  std::unique_ptr<team::Team> team;
  std::unique_ptr<messages::Messenger> messenger;
};

struct LibraryState {
  Globals engine;
  std::atomic<bool> forked{false};  // state.cpp: this process is a child of the one that joined
  std::mutex joining;               // held while a group is joined or closed
  team::Process* process = nullptr;
  std::vector<std::unique_ptr<ProcessSet>> sets;
  messages::ProgressThread* progress_thread = nullptr;  // process_group.cpp; none, unless NEARFIELD_PROGRESS=thread
  // The function and argument of nf_set_look(). `interrupted`: look() has ended a wait whose call has not returned yet.
  std::atomic<void (*)(void*, int*)> look{nullptr};
  std::atomic<void*> look_context{nullptr};
  std::atomic<bool> interrupted{false};
};
LibraryState& state() noexcept;

// This process's part of the engine, made at the first call. Throws Failed. pre: `joining` is held.
team::Process& process();

// Calls the program's `look`. Throws Failed if that ends the wait.
void look_around();

// Checks now and then whether a wait has to end. `limit`: ns from its start; 0: none.
class Watch {
 public:
  explicit Watch(std::uint64_t limit) : limit_(limit) {}
  // True: the limit has passed. Throws Failed: the wait is to end.
  bool late();

 private:
  const std::uint64_t limit_;
  std::uint64_t started_ = 0, looked_ = 0;
  unsigned calls_ = 0;
};

}  // namespace nearfield::api
