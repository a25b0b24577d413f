#include "engine/team/team.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

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

// The first reason counts, since members read it from then on.
void Team::break_off(const char* why, Break kind) noexcept {
  MemberControlBlock& own = words(rank_);
  const std::lock_guard lock(breaking_);
  broken_off_.store(true, std::memory_order_relaxed);
  if (own.broken_off.load(std::memory_order_relaxed) != Break::unbroken) return;
  std::snprintf(own.why, sizeof own.why, "%s", why);
  own.broken_off.store(kind, std::memory_order_release);  // SYNC: broken-off
}

void Team::break_off(const char* why, const std::string& doing) {
  break_off(why);
  throw Broken(std::string(why) + ", " + doing);
}

void Team::report_break(const std::string& doing) {
  std::string text = "the communicator was given up when a rank could not go on";
  for (int r = 0; r < size_; ++r) {
    const MemberControlBlock& other = *member_[r];
    const std::uint32_t kind = other.broken_off.load(std::memory_order_acquire);  // SYNC: broken-off
    if (kind == Break::unbroken) continue;
    const std::string why(other.why, strnlen(other.why, sizeof other.why));
    if (kind == Break::by_lengths) throw UnequalLengths(why);
    text = "rank " + std::to_string(r) + " of a communicator of " + std::to_string(size_) + " could not continue (" +
           why + ")";
    if (r != rank_) break;
  }
  throw Broken(text + ", rank " + std::to_string(rank_) + " was " + doing);
}

void Team::inspect(FunctionRef<std::string()> doing, FunctionRef<bool(int)> lacks) {
  if (revoked() || (user && user->abandoned())) throw Revoked("the communicator was revoked");
  for (const MemberControlBlock* const member : member_) {
    if (member->broken_off.load(std::memory_order_acquire) == Break::unbroken) continue;  // SYNC: broken-off
    broken_off_.store(true, std::memory_order_relaxed);
    report_break(doing());
  }
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || !peer_[r]->gone()) continue;
    // A peer that has left MPI by MPI_Finalize is an error only if we still wait for it.
    if (peer_[r]->left() && !lacks(r)) continue;
    {
      const std::lock_guard lock(process_.reach().mutex);
      process_.reach().part(*peer_[r]);
    }
    throw Died("rank " + std::to_string(r) + " (process " + std::to_string(peer_[r]->pid) + ") of a communicator of " +
               std::to_string(size_) + " has ended; rank " + std::to_string(rank_) + " was waiting for it " + doing());
  }
}

}  // namespace nearfield::team
