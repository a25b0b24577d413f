// The two rings of small rooted messages under one face: slots of 4 KiB, few, and lines of 120 bytes, many.
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

struct Slots {
  static std::uint64_t next(Track& track) { return track.next_slot(); }
  static std::byte* reserve(Track& track, std::uint64_t seq) { return track.reserve_slot(seq); }
  static void publish(Track& track, std::uint64_t seq, std::size_t bytes) { track.publish_slot(seq, bytes); }
  static const std::byte* wait(Track& track, int member, std::uint64_t seq) { return track.wait_slot(member, seq); }
  static std::size_t bytes(const Track& track, int member, std::uint64_t seq) { return track.slot_bytes(member, seq); }
  static void finish(Track& track, std::uint64_t seq) { track.finish_rooted_slot(seq); }
};

struct Lines {
  static std::uint64_t next(Track& track) { return track.next_line(); }
  static std::byte* reserve(Track& track, std::uint64_t seq) { return track.reserve_line(seq); }
  static void publish(Track& track, std::uint64_t seq, std::size_t bytes) { track.publish_line(seq, bytes); }
  static const std::byte* wait(Track& track, int member, std::uint64_t seq) { return track.wait_line(member, seq); }
  static std::size_t bytes(const Track& track, int member, std::uint64_t seq) { return track.line_bytes(member, seq); }
  static void finish(Track& track, std::uint64_t seq) { track.finish_line(seq); }
};

// Compares the lengths that members have published with ours. Data that does not fit is reported when the call is
// through: then the rings are in order, and the members may go on after the error. Less than we expect is reported
// where the host would (team::Team::exact_bcast); elsewhere it goes unnoticed, as by hosts.
class Lengths {
 public:
  Lengths(const Track& track, std::size_t bytes) : track_(track), bytes_(bytes) {}
  void look(int member, std::size_t theirs) {
    if (theirs == bytes_) [[likely]]
      return;
    member_ = member;
    theirs_ = theirs;
  }
  // Right after they have met: their lines are at hand then, while our own is on its way to the others (looking at ours
  // as well, after the work, cost 15 ns of 80).
  void look_at_slots(std::uint64_t seq) {
    for (int r = 0; r < track_.size(); ++r)
      if (r != track_.rank()) look(r, track_.slot_bytes(r, seq));
  }
  void report(bool exact = false) const {
    if (member_ >= 0 && (theirs_ > bytes_ || exact)) [[unlikely]]
      track_.report_lengths(member_, theirs_, bytes_);
  }

 private:
  const Track& track_;
  const std::size_t bytes_;
  int member_ = -1;
  std::size_t theirs_ = 0;
};

}  // namespace nearfield::collectives
