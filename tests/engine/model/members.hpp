// Teams and messengers whose members are fibers of one process: made by the engine's own code, before exploring begins.
#pragma once
#include <memory>
#include <vector>

#include "engine/messages/messenger.hpp"
#include "engine/team/team.hpp"
#include "engine/windows/window.hpp"
#include "tests/engine/model/explore.hpp"

namespace nearfield::testing {

// Nodes stay for all runs; everything in their segments is made anew.
class Members {
 public:
  struct Setup {
    int count = 2;
    Meeting meeting = Meeting::flags;
    bool sleeps = false;  // members sleep at once where they have to wait; otherwise they only look
    bool messages = false;
    std::size_t window_bytes = 0;  // of each member's memory in a window of the team; 0: there is none
    Protocol protocol = Protocol::automatic;
  };
  explicit Members(Setup setup);
  ~Members();

  int count() const { return setup_.count; }
  team::Process& process(int member) { return *process_[member]; }
  team::Team& team(int member) { return team_[member] ? *team_[member] : window(member).team(); }
  windows::Window& window(int member) { return *window_[member]; }  // has the team
  windows::HeldLocks& held_locks(int member) { return held_locks_[std::size_t(member)]; }
  messages::Messenger& messenger(int member) { return *messenger_[member]; }
  // Makes teams (and messengers or windows) as after MPI_Init.
  void renew();
  // Whether members that would sleep only look: where nothing is explored.
  void only_look(bool only);

 private:
  const Setup setup_;
  const std::unique_ptr<windows::HeldLocks[]> held_locks_;
  std::vector<std::unique_ptr<team::Process>> process_;
  std::vector<std::unique_ptr<team::Team>> team_;
  std::vector<std::unique_ptr<messages::Messenger>> messenger_;
  std::vector<std::unique_ptr<windows::Window>> window_;
};

}  // namespace nearfield::testing
