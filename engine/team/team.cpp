#include "engine/team/team.hpp"

#include <algorithm>

namespace nearfield::team {

Team::Team(Process& process, int rank, int size)
    : process_(process),
      rank_(rank),
      size_(size),
      member_(std::size_t(size)),
      base_(std::size_t(size)),
      peer_(std::size_t(size)) {}

Team::~Team() {
  state_.reset();
  if (block_allocation_) process_.arena().free(block_allocation_);
}

void Team::close(std::unique_ptr<Team> team) {
  team->state_->finish();
  ClosingTeams& all = team->process_.closing();
  Team*& closing = all.first;
  const std::lock_guard lock(all.mutex);
  for (int r = 0; r < team->size_; ++r)
    if (r != team->rank_) team->member_[r]->closed.fetch_add(1, std::memory_order_release);  // SYNC: closed
  team->next_closing_ = closing;
  closing = team.release();
  // Reads our own block alone, since peers' blocks may be gone: the count of members that have closed the team.
  for (Team** each = &closing; *each;) {
    Team* const one = *each;
    // SYNC: closed
    if (one->words(one->rank_).closed.load(std::memory_order_acquire) == std::uint32_t(one->size_ - 1)) {
      *each = one->next_closing_;
      delete one;
    } else {
      each = &one->next_closing_;
    }
  }
}

ClosingTeams::~ClosingTeams() {
  while (Team* const one = first) {
    first = one->next_closing_;
    delete one;
  }
}

void Team::orphan() {
  const std::lock_guard lock(process_.runner().mutex());  // suspended bodies call it in any thread
  user = nullptr;
}

bool Team::revoked() const {
  // SYNC: revoked
  return std::ranges::any_of(member_,
                             [](const MemberControlBlock* m) { return m->revoked.load(std::memory_order_acquire); });
}

void Team::break_off() noexcept {
  broken_off_.store(true, std::memory_order_relaxed);
  words(rank_).broken_off.store(1, std::memory_order_release);  // SYNC: broken-off
}

void Team::break_off(const char* why, const std::string& doing) {
  break_off();
  throw Broken(std::string(why) + ", " + doing);
}

void Team::inspect(FunctionRef<std::string()> doing, bool (*lacking)(void*, int), void* context) {
  if (revoked() || (user && user->abandoned())) throw Revoked("the communicator was revoked");
  for (int r = 0; r < size_; ++r) {
    if (member_[r]->broken_off.load(std::memory_order_acquire) == 0) continue;  // SYNC: broken-off
    broken_off_.store(true, std::memory_order_relaxed);
    throw Broken("rank " + std::to_string(r) + " of a communicator of " + std::to_string(size_) +
                 " could not go on (out of memory, or another call than those of others?); rank " +
                 std::to_string(rank_) + " was waiting for it " + doing());
  }
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || !peer_[r]->gone()) continue;
    // A peer that has left MPI by MPI_Finalize is an error only if we still wait for it.
    if (peer_[r]->left() && !lacking(context, r)) continue;
    {
      const std::lock_guard lock(process_.reach().mutex);
      process_.reach().part(*peer_[r]);
    }
    throw Died("rank " + std::to_string(r) + " (process " + std::to_string(peer_[r]->pid) + ") of a communicator of " +
               std::to_string(size_) + " has died; rank " + std::to_string(rank_) + " was waiting for it " + doing());
  }
}

}  // namespace nearfield::team
