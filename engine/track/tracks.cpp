#include "engine/track/tracks.hpp"

#include <sched.h>

namespace nearfield::team {
namespace {

// What a member tells of: its words of each further track, and at the first member what all write.
struct FurtherWords {
  TrackWords track[further];
  TrackGate gate[further];
};

FurtherWords& words_at(const Team& team, int member, std::uint64_t offset) {
  return *reinterpret_cast<FurtherWords*>(team.segment_of(member) + offset);
}

}  // namespace

Tracks::~Tracks() {
  if (words_) team_.node().arena().free(words_);
}

// Our own part. What fails leaves nothing behind but words that the next attempt uses.
void Tracks::make() {
  for (unsigned i = 0; i < further; ++i) {
    if (lane_[i]) continue;
    auto lane = std::make_unique<Further>(team_, i + 1);
    lane->tracks = this;
    lane->track.prepare();
    lane->track.join_tree();
    lane_[i] = std::move(lane);
  }
  if (words_) return;
  auto offset = team_.node().arena().allocate_zeroed(sizeof(FurtherWords), 4096);
  if (!offset) throw std::bad_alloc();
  words_ = *offset;
  new (&words_at(team_, team_.rank(), words_)) FurtherWords{};
  team_.words(team_.rank()).tracks.store(words_, std::memory_order_release);  // pairs with join
}

void Tracks::issue(Pending& pending) {
  Runner& runner = team_.node().runner;
  const std::lock_guard lock(runner.mutex());
  if (!words_) make();
  Further& lane = *lane_[issued_ % further];
  pending.next_ = nullptr;
  if (lane.fiber) {
    lane.last->next_ = &pending;
    lane.last = &pending;
  } else {
    lane.first = lane.last = &pending;
    runner.start(lane);
  }
  ++issued_;
}

void Tracks::finish() {
  Node& node = team_.node();
  auto under_way = [&] {
    const std::lock_guard lock(node.runner.mutex());
    for (const auto& lane : lane_)
      if (lane && lane->fiber) return true;
    return false;
  };
  // Without the host: this may be inside one of its calls.
  while (under_way()) {
    if (!node.progress.poll()) sched_yield();
  }
}

// On the lane's stack: where everybody's words of this track lie.
void Tracks::join(Further& lane) {
  lane.track.suspend_by(lane.fiber);
  const Team& team = team_;
  lane.track.place_words(team.rank(), &words_at(team, team.rank(), words_).track[lane.track.number() - 1]);
  for (int r = 0; r < team.size(); ++r) {
    std::uint64_t offset = 0;
    auto told = [&] { return (offset = team.words(r).tracks.load(std::memory_order_acquire)) != 0; };
    lane.track.wait_until(told, [r](int m) { return m == r; });
    FurtherWords& theirs = words_at(team, r, offset);
    lane.track.place_words(r, &theirs.track[lane.track.number() - 1]);
    if (r == 0) lane.track.place_gate(&theirs.gate[lane.track.number() - 1]);
  }
  lane.joined = true;
}

void Tracks::Further::run() {
  while (first) {
    Pending& pending = *first;
    try {
      track.suspend_by(fiber);
      if (!joined) tracks->join(*this);
      pending.run(track);
    } catch (...) {
      pending.error_ = std::current_exception();
    }
    track.leave();
    first = pending.next_;
    pending.completed_.store(true, std::memory_order_release);  // pairs with complete(); it may be gone from here on
  }
  last = nullptr;
}

}  // namespace nearfield::team
