// The two rings of small rooted messages under one face: slots of 4 KiB, few, and lines of 120 bytes, many.
#pragma once
#include "engine/collectives/rounds.hpp"

namespace nearfield::collectives {

struct Slots {
  static std::uint64_t next(Team& team) { return team.next_slot(); }
  static std::byte* reserve(Team& team, std::uint64_t seq) { return team.reserve_slot(seq); }
  static void publish(Team& team, std::uint64_t seq, std::size_t bytes) { team.publish_slot(seq, bytes); }
  static const std::byte* wait(Team& team, int member, std::uint64_t seq) { return team.wait_slot(member, seq); }
  static void finish(Team& team, std::uint64_t seq) { team.finish_rooted_slot(seq); }
};

struct Lines {
  static std::uint64_t next(Team& team) { return team.next_line(); }
  static std::byte* reserve(Team& team, std::uint64_t seq) { return team.reserve_line(seq); }
  static void publish(Team& team, std::uint64_t seq, std::size_t) { team.publish_line(seq); }
  static const std::byte* wait(Team& team, int member, std::uint64_t seq) { return team.wait_line(member, seq); }
  static void finish(Team& team, std::uint64_t seq) { team.finish_line(seq); }
};

}  // namespace nearfield::collectives
