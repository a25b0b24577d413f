// A group of the C API: its team for collectives, its context for messages.
//
//   every member                              published to the others
//   1. creation::create_team                  (creation/create.cpp draws it)
//   2. allocates its ArrivalControlBlock
//   3. exchanges a Card                       offset of that block, ids of its process sets that contain all members,
//                                             a random number
//   4. takes the first set that all members have; if there is none, they make one
//
// Threads: a collective call holds `calls_` while it is started, a blocking one until it returns. Messages need no lock
// of the group.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/api/arrivals.hpp"
#include "engine/api/failed.hpp"
#include "engine/api/state.hpp"
#include "engine/api/types.hpp"
#include "engine/choosing/queued_call.hpp"
#include "engine/messages/edges.hpp"

namespace nearfield::api {

class StartedCall;

class ProcessGroup final : public team::TeamUser {
 public:
  // Collective. Throws Failed, on all members.
  static std::unique_ptr<ProcessGroup> join(int rank, int size, team::Bootstrap& bootstrap);
  ~ProcessGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }
  void set_timeout(std::uint64_t nanoseconds) { timeout_.store(nanoseconds, std::memory_order_relaxed); }
  std::uint64_t timeout() const { return timeout_.load(std::memory_order_relaxed); }
  // Returns whether started calls are not finished and the group is not broken.
  bool busy() const { return started_.load(std::memory_order_relaxed) > 0 && !broken(); }

  // These throw Failed and what the engine's waits throw. `started`: gets the call; nullptr: the call blocks.
  // collective() returns the algorithm of a complete call; "": none.
  const char* collective(const CollectiveCall& what, StartedCall** started);
  using FillIn = FunctionRef<void(messages::Edges& edges)>;
  void exchange(FillIn fill_in, StartedCall** started);
  void send(const void* data, std::size_t bytes, int target, int tag, StartedCall** started);
  void receive(void* room, std::size_t bytes, int source, int tag, nf_message* message, StartedCall** started);

  // Waits until done(). `awaited(member)`: returns whether that member's death ends the wait. False: `limit` ns have
  // passed; 0: the group's timeout.
  bool wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, std::uint64_t limit, const char* doing);
  // Breaks the group: later calls in it fail for the reason `why`.
  void break_off(const std::exception_ptr& why);
  // The same, and rethrows it.
  [[noreturn]] void give_up(const std::exception_ptr& why);
  [[noreturn]] void give_up_late(std::uint64_t call, const std::string& doing);
  int rank_of(int member) const;                                           // `member` of the set; -1: not in the group
  bool broken() const { return broken_.load(std::memory_order_acquire); }  // SYNC: group-broken
  // Throws Failed if the group is broken, or if this process is a child that the member has forked.
  void look_before_call() const;

  team::Process& process() const { return team_->process(); }
  team::Team& team() const { return *team_; }
  messages::Messenger& messenger() const { return *set_->messenger; }
  Arrivals& arrivals() { return *arrivals_; }
  void count_started(int more) { started_.fetch_add(more, std::memory_order_relaxed); }

 private:
  struct Card;
  ProcessGroup(int rank, int size) : rank_(rank), size_(size) {}
  void meet(team::Bootstrap& bootstrap);
  void find_members();
  const char* run_here(const CollectiveCall& what);
  const char* run_in_context(const collectives::Call& call);
  void begin_progress_thread();
  bool abandoned() const override;
  void left() override {}
  // Message contexts: the program's messages have context_, blocking collectives the next number, overlapping ones the
  // one after that.
  messages::Partners partners(bool overlapping) const {
    return {messenger(), members_, rank_, context_ + (overlapping ? 2 : 1)};
  }
  void fill_in(messages::Request& request, bool sends, void* data, std::size_t bytes, int partner, int tag) const;

  const int rank_, size_;
  std::unique_ptr<team::Team> team_;
  std::unique_ptr<choosing::Chooser> chooser_ = std::make_unique<choosing::Chooser>();
  choosing::FurtherChoosers further_;
  std::optional<Arrivals> arrivals_;
  std::size_t arrival_block_ = 0;
  ProcessSet* set_ = nullptr;
  std::vector<int> members_;  // rank to member of the set
  std::uint64_t context_ = 0;
  std::mutex calls_;
  std::atomic<std::uint64_t> timeout_{0};
  std::atomic<int> started_{0};
  // Number of the collective call that waits; 0: none. `blocked_since_`: ns at which abandoned() first saw it.
  std::atomic<std::uint64_t> blocked_in_{0};
  mutable std::atomic<std::uint64_t> blocked_since_{0};
  std::atomic<bool> broken_{false};
  std::mutex breaking_;
  std::string why_broken_;
};

}  // namespace nearfield::api
