// A team: the members of one communicator, all on this node.
//
// control_block.hpp names the writers of shared words. A team says who its members are; the state of its calls is in
// its contexts (engine/context).
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/team/control_block.hpp"
#include "engine/team/process.hpp"

namespace nearfield::creation {
class TeamCreation;
}

namespace nearfield::context {
class CollectiveContext;
class ContextPool;
}  // namespace nearfield::context

namespace nearfield::team {

// State of the team's calls (engine/context).
struct TeamState {
  virtual ~TeamState() = default;
  // Completes suspended bodies, since the team is being closed.
  virtual void finish() = 0;
};

// Whom a team serves.
struct TeamUser {
  virtual bool abandoned() const = 0;  // called in long waits; true: the wait is to end
  virtual void left() = 0;             // called when the last operation that was under way at orphan() is complete

 protected:
  ~TeamUser() = default;
};

// Thrown out of a wait; the shim turns it into an MPI error.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A member has died.
struct Died : Broken {
  using Broken::Broken;
};
// A member has revoked the team.
struct Revoked : Broken {
  using Broken::Broken;
};
// Members of a call have different lengths.
struct UnequalLengths : Broken {
  using Broken::Broken;
};
inline Break kind_of(const std::exception& broken) {
  return dynamic_cast<const UnequalLengths*>(&broken) ? Break::by_lengths : Break::by_failure;
}

// No member has done anything: all callers turn to the host, or do the call by pieces (choosing/queued_call.hpp).
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Communication among the members of a communicator while they prepare to share memory. Every member calls the same
// functions in the same order. The shim implements it by the host or by an existing team, the C API by a function of
// the program, the engine's tests by a shared page.
struct Bootstrap {
  virtual ~Bootstrap() = default;
  virtual bool allgather(const void* mine, void* all, std::size_t bytes) = 0;
  virtual std::uint32_t all_and(std::uint32_t bits) = 0;  // bitwise and over the members
  virtual void idle() = 0;                                // called while others are waited for
};

// Allocates room for the members' answers. A member without it could not even refuse, so this tries twice.
template <class T>
std::vector<T> room_for(int size) try {
  return std::vector<T>(std::size_t(size));
} catch (const std::bad_alloc&) {
  return std::vector<T>(std::size_t(size));
}

class Team {
 public:
  // Local: others may still be inside their last call. Once all members have closed the team, the next close() of this
  // process, of any team, frees the block. pre: no context is reserved.
  static void close(std::unique_ptr<Team> team);
  ~Team();

  int rank() const { return rank_; }
  int size() const { return size_; }
  Process& process() const { return process_; }
  const Plan& plan() const { return *plan_; }
  const Shape& shape() const { return shape_; }
  std::byte* segment_of(int member) const { return base_[member]; }
  Peer* peer(int member) const { return peer_[member]; }  // nullptr for ourselves
  std::span<std::byte* const> segments() const { return base_; }
  std::span<Peer* const> peers() const { return peer_; }
  MemberControlBlock& words(int member) const { return *member_[member]; }
  std::uint32_t mappers() const { return mappers_; }  // mask of the memory mappers that all members have
  // Configuration that the first member keeps for the others (Services::begin_configuration).
  std::byte* shared_configuration() const { return shared_configuration_; }

  // The context of blocking calls, and those of calls that may overlap others.
  context::CollectiveContext& context() const { return *context_; }
  context::ContextPool& contexts() const { return *contexts_; }

  bool enabled = true;
  // A bit for each operation in which a member that gets less than it expects has no error. Set by the shim.
  std::uint32_t takes_less = 0;

  // True after a member has failed in the middle of a call: all calls of all members end with an error.
  bool broken_off() const { return broken_off_.load(std::memory_order_relaxed); }
  // Local. We cannot do our part of a call that others are in, or may be: they end with an error, at once or in their
  // next call, whose text has `why`. Throws Broken. `doing`: describes our call.
  [[noreturn]] void break_off(const char* why, const std::string& doing);
  void break_off(const char* why, Break kind = Break::by_failure) noexcept;  // the same without throwing
  // pre: broken_off(). Throws what the first member that has failed says.
  [[noreturn]] void report_break(const std::string& doing);
  // Local. Ends all waits of all members in this team by Revoked; others notice within some 50 ms.
  void revoke() { words(rank_).revoked.store(1, std::memory_order_release); }  // SYNC: revoked
  bool revoked() const;
  TeamUser* user = nullptr;
  // Called when the user goes while operations are under way or planned: from then on no wait asks it.
  void orphan();
  // Throws if a wait is in vain. `lacks(member)`: returns whether we wait for that member. `doing`: describes our call.
  void inspect(FunctionRef<std::string()> doing, FunctionRef<bool(int)> lacks);

 private:
  Team(Process& process, int rank, int size);
  friend class creation::TeamCreation;  // fills it in
  friend ClosingTeams;

  Process& process_;
  Shape shape_;
  const int rank_, size_;
  const Plan* plan_ = nullptr;
  std::byte* shared_configuration_ = nullptr;
  std::uint32_t mappers_ = 0;
  std::vector<MemberControlBlock*> member_;
  std::vector<std::byte*> base_;         // segment of each member
  std::vector<Peer*> peer_;              // nullptr for ourselves
  std::atomic<bool> broken_off_{false};  // any of our threads sets it
  std::mutex breaking_;
  std::size_t block_offset_ = 0, block_allocation_ = 0;
  std::unique_ptr<TeamState> state_;
  context::CollectiveContext* context_ = nullptr;  // both belong to state_
  context::ContextPool* contexts_ = nullptr;
  Team* next_closing_ = nullptr;
};

}  // namespace nearfield::team
