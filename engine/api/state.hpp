// All that libnearfield-engine.so remembers of the process: one object. It is never destroyed, since threads and
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

// Processes that have met, and the messenger between them. Every group is within one of these sets. A set stays for
// good, for groups of the same processes that come later.
struct ProcessSet {
  std::uint64_t id = 0;  // equal on its members, different from those of other sets
  std::unique_ptr<team::Team> team;
  std::unique_ptr<messages::Messenger> messenger;
};

struct LibraryState {
  Globals engine;
  std::atomic<bool> forked{false};  // state.cpp: this process is a child of the one that joined
  std::mutex joining;               // held by who joins or closes
  team::Process* process = nullptr;
  std::vector<std::unique_ptr<ProcessSet>> sets;
  messages::ProgressThread* progress_thread = nullptr;  // process_group.cpp; none, unless NEARFIELD_PROGRESS=thread
  // nf_set_look(); `interrupted`: it has ended a wait of a call that has not returned yet
  std::atomic<void (*)(void*, int*)> look{nullptr};
  std::atomic<void*> look_context{nullptr};
  std::atomic<bool> interrupted{false};
};
LibraryState& state() noexcept;

// This process's part of the engine, made at the first call. Throws Failed. pre: `joining` is held.
team::Process& process();

// Calls the program's look. Throws Failed where that ends the wait.
void look_around();

// Of a wait: whether it is over, at most every so often. `limit`: ns from its start, 0: none.
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
