// One interface to the two rings of small rooted messages: few slots of 4 KiB, and many lines of 120 bytes.
#pragma once
#include "engine/collectives/pieces/lengths.hpp"
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

// `no_length` is published where members below have different lengths.
struct Slots {
  static constexpr std::size_t payload = context::slot_payload, no_length = context::no_length;
  static std::uint64_t next(CollectiveContext& context) { return context.next_slot(); }
  static std::byte* reserve(CollectiveContext& context, std::uint64_t seq) { return context.reserve_slot(seq); }
  static void publish(CollectiveContext& context, std::uint64_t seq, std::size_t bytes) {
    context.publish_slot(seq, bytes);
  }
  static const std::byte* wait(CollectiveContext& context, int member, std::uint64_t seq) {
    return context.wait_slot(member, seq);
  }
  static std::size_t bytes(const CollectiveContext& context, int member, std::uint64_t seq) {
    return context.slot_bytes(member, seq);
  }
  static void finish(CollectiveContext& context, std::uint64_t seq) { context.finish_rooted_slot(seq); }
  static bool ready(CollectiveContext& context, const Call&) { return context.slot_ready(); }
};

struct Lines {
  static constexpr std::size_t payload = context::line_payload, no_length = 255;
  static std::uint64_t next(CollectiveContext& context) { return context.next_line(); }
  static std::byte* reserve(CollectiveContext& context, std::uint64_t seq) { return context.reserve_line(seq); }
  static void publish(CollectiveContext& context, std::uint64_t seq, std::size_t bytes) {
    context.publish_line(seq, bytes);
  }
  static const std::byte* wait(CollectiveContext& context, int member, std::uint64_t seq) {
    return context.wait_line(member, seq);
  }
  static std::size_t bytes(const CollectiveContext& context, int member, std::uint64_t seq) {
    return context.line_bytes(member, seq);
  }
  static void finish(CollectiveContext& context, std::uint64_t seq) { context.finish_line(seq); }
  static bool ready(CollectiveContext& context, const Call&) { return context.line_ready(); }
};

// For algorithms along a tree, which use either ring, depending on the call.
inline bool rings_ready(CollectiveContext& context, const Call& call) {
  return Lines::ready(context, call) && Slots::ready(context, call);
}

}  // namespace nearfield::collectives
