// The two rings of small rooted messages under one face: slots of 4 KiB, few, and lines of 120 bytes, many.
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

struct Slots {
  static std::uint64_t next(Team& team) { return team.next_slot(); }
  static std::byte* reserve(Team& team, std::uint64_t seq) { return team.reserve_slot(seq); }
  static void publish(Team& team, std::uint64_t seq, std::size_t bytes) { team.publish_slot(seq, bytes); }
  static const std::byte* wait(Team& team, int member, std::uint64_t seq) { return team.wait_slot(member, seq); }
  static std::size_t bytes(const Team& team, int member, std::uint64_t seq) { return team.slot_bytes(member, seq); }
  static void finish(Team& team, std::uint64_t seq) { team.finish_rooted_slot(seq); }
};

struct Lines {
  static std::uint64_t next(Team& team) { return team.next_line(); }
  static std::byte* reserve(Team& team, std::uint64_t seq) { return team.reserve_line(seq); }
  static void publish(Team& team, std::uint64_t seq, std::size_t bytes) { team.publish_line(seq, bytes); }
  static const std::byte* wait(Team& team, int member, std::uint64_t seq) { return team.wait_line(member, seq); }
  static std::size_t bytes(const Team& team, int member, std::uint64_t seq) { return team.line_bytes(member, seq); }
  static void finish(Team& team, std::uint64_t seq) { team.finish_line(seq); }
};

// Compares the lengths that members have published with ours. Data that does not fit is reported when the call is
// through: then the rings are in order, and the members may go on after the error. Less than we expect is reported
// where the host would (Team::exact_bcast); elsewhere it goes unnoticed, as by hosts.
class Lengths {
 public:
  Lengths(const Team& team, std::size_t bytes) : team_(team), bytes_(bytes) {}
  void look(int member, std::size_t theirs) {
    if (theirs == bytes_) [[likely]]
      return;
    member_ = member;
    theirs_ = theirs;
  }
  // Right after they have met: their lines are at hand then, while our own is on its way to the others (looking at ours
  // as well, after the work, cost 15 ns of 80).
  void look_at_slots(std::uint64_t seq) {
    for (int r = 0; r < team_.size(); ++r)
      if (r != team_.rank()) look(r, team_.slot_bytes(r, seq));
  }
  void report(bool exact = false) const {
    if (member_ >= 0 && (theirs_ > bytes_ || exact)) [[unlikely]]
      team_.report_lengths(member_, theirs_, bytes_);
  }

 private:
  const Team& team_;
  const std::size_t bytes_;
  int member_ = -1;
  std::size_t theirs_ = 0;
};

}  // namespace nearfield::collectives
