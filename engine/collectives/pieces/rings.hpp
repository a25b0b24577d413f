// The two rings of small rooted messages under one face: slots of 4 KiB, few, and lines of 120 bytes, many.
#pragma once
#include "engine/collectives/pieces/lengths.hpp"
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

struct Slots {
  static constexpr std::size_t payload = team::slot_payload, longest_told = ~std::size_t{0};
  static std::uint64_t next(Track& track) { return track.next_slot(); }
  static std::byte* reserve(Track& track, std::uint64_t seq) { return track.reserve_slot(seq); }
  static void publish(Track& track, std::uint64_t seq, std::size_t bytes) { track.publish_slot(seq, bytes); }
  static const std::byte* wait(Track& track, int member, std::uint64_t seq) { return track.wait_slot(member, seq); }
  static std::size_t bytes(const Track& track, int member, std::uint64_t seq) { return track.slot_bytes(member, seq); }
  static void finish(Track& track, std::uint64_t seq) { track.finish_rooted_slot(seq); }
  static bool ready(Track& track, const Call&) { return track.slot_ready(); }
};

struct Lines {
  static constexpr std::size_t payload = team::line_payload, longest_told = 255;
  static std::uint64_t next(Track& track) { return track.next_line(); }
  static std::byte* reserve(Track& track, std::uint64_t seq) { return track.reserve_line(seq); }
  static void publish(Track& track, std::uint64_t seq, std::size_t bytes) { track.publish_line(seq, bytes); }
  static const std::byte* wait(Track& track, int member, std::uint64_t seq) { return track.wait_line(member, seq); }
  static std::size_t bytes(const Track& track, int member, std::uint64_t seq) { return track.line_bytes(member, seq); }
  static void finish(Track& track, std::uint64_t seq) { track.finish_line(seq); }
  static bool ready(Track& track, const Call&) { return track.line_ready(); }
};

// Along a tree, in which inner members wait for those below them, as in hosts. Which ring it is depends on the call.
inline bool rings_ready(Track& track, const Call& call) {
  return Lines::ready(track, call) && Slots::ready(track, call);
}

}  // namespace nearfield::collectives
