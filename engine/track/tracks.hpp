// Operations that may overlap others: the further tracks of a team.
//
//   member     issue     the next number n, the same on all members, since all issue the same calls in the same order:
//                        track n % further is its own, nobody has to be asked
//              body      runs on a stack of its own until it has to wait; goes on in whatever else this process does
//              complete  when the body has ended; the next operation of the track begins
//
// The words of further tracks are made by the first operation that is issued. A member tells where its own lie
// (MemberWords::tracks), and the body of that operation waits until all have told.
#pragma once
#include <atomic>
#include <exception>

#include "engine/track/runner.hpp"
#include "engine/track/track.hpp"

namespace nearfield::team {

inline constexpr unsigned further = 2;  // tracks beside the first

// One call. It has to stay until it is complete.
class Pending {
 public:
  bool complete() const { return completed_.load(std::memory_order_acquire); }  // pairs with Tracks' lanes
  // Once it is complete: why it failed, nullptr where it did not.
  const std::exception_ptr& error() const { return error_; }

 protected:
  Pending() = default;
  ~Pending() = default;
  // The body: all members' of one number run the same.
  virtual void run(Track& track) = 0;

 private:
  friend class Tracks;
  std::atomic<bool> completed_{false};
  std::exception_ptr error_;
  Pending* next_ = nullptr;
};

class Tracks {
 public:
  explicit Tracks(Team& team) : team_(team) {}
  ~Tracks();
  Tracks(const Tracks&) = delete;

  // Local: begins the next operation, or has it wait for the one before it in its track. Throws std::bad_alloc; then it
  // was not issued, and the members are no longer in step (Team::break_off).
  void issue(Pending& pending);
  // Until nothing that we have issued is under way. Bounded, since bodies look for dead members.
  void finish();

 private:
  struct Further final : Lane {
    Further(Team& team, unsigned number) : track(team, number) {}
    void run() override;
    void tell_awaited() override { track.tell_awaited(); }
    Track track;
    Tracks* tracks = nullptr;
    bool joined = false;
    Pending *first = nullptr, *last = nullptr;
  };
  void make();
  void join(Further& lane);

  Team& team_;
  std::uint64_t issued_ = 0;
  std::size_t words_ = 0;  // offset in our segment, 0: none yet
  std::unique_ptr<Further> lane_[further];
};

}  // namespace nearfield::team
