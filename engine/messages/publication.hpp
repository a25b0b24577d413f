// How a record of several lines is handed over: kinds, one of which is taken per receiver and class of lengths, by
// samples (tuning/samples.hpp).
//
//   sender                                          receiver
//   record, marked: you might ask for the lines of
//     the next one ------------------------------>  while it waits for that one it asks for as many lines as this one
//                                                     has, before they are there
//   a sample: ticks to Ring::sampled_at, record
//     marked as sampled, lines demoted or not ---->  has copied it out: if it has waited for it all the time, its
//   what this kind costs <------------------------    ticks since then, else that there is nothing to tell
//
// Ticks of different processors may differ by a constant (processor/processor.h): that is in the costs of all kinds
// alike. What cannot be a time is none. Neither side waits for the other. A record of one line is always kept: it is
// awaited, and fetched before the writer could do anything for it.
#pragma once
#include <algorithm>
#include <iterator>

#include "engine/messages/fastbox.hpp"
#include "engine/settings/settings.hpp"
#include "engine/tuning/samples.hpp"

namespace nearfield::messages {

struct Publication {
  const char *name, *needs, *about;
  bool demotes, ahead, streams;
  bool possible() const { return !demotes || processor::can_demote(); }
};
// In the order of Publishing. Those that need an instruction are the last.
inline constexpr Publication publications[] = {
    {"keep", "nothing", "its lines stay in the cache of the writer; the reader asks for them when the first has come",
     false, false, false},
    {"ahead", "nothing", "the reader asks for the lines while it waits for the first", false, true, false},
    {"stream", "nothing", "whole lines of payload go past the caches: the writer need not fetch what the reader has",
     false, false, true},
    {"demote", "CLDEMOTE", "the writer sends them to the shared cache, where the reader finds them sooner on a mesh",
     true, false, false},
    {"demote-ahead", "CLDEMOTE", "both", true, true, false},
};
inline std::size_t possible_publications() {
  return std::size_t(std::ranges::count_if(publications, [](const Publication& each) { return each.possible(); }));
}

struct PublicationRows {
  static constexpr std::size_t family = 3;
  static constexpr std::size_t kinds = std::size(publications);
  static constexpr unsigned first = 7;  // up to 128 bytes, 256 and so on; more than 1 KiB
  static constexpr std::size_t count = 5, in_own_buffers = 0;
  static constexpr unsigned watch_every(std::size_t) { return tuning::constants::samples_of_best; }
  static constexpr float clearly(std::size_t, std::size_t, std::size_t) {
    return float(tuning::constants::clearly_published);
  }
};

// What one record is published with.
struct PublicationStep {
  std::uint8_t kind = 0;
  std::uint64_t marks = 0;  // of its word
};
constexpr std::uint64_t asks_ahead(std::uint8_t kind) { return publications[kind].ahead ? ahead_of_next : 0; }
// The same for all: what a setting says.
constexpr PublicationStep forced_step(Publishing forced) {
  constexpr int first = int(Publishing::keep);
  static_assert(int(Publishing::demote_ahead) - first + 1 == std::size(publications));
  const auto kind = std::uint8_t(forced == Publishing::automatic ? 0 : int(forced) - first);
  return {kind, asks_ahead(kind)};
}

// One sender's kinds for one receiver.
class PublicationTrials {
 public:
  explicit PublicationTrials(std::size_t kinds) : samples_(kinds) {}

  PublicationStep next(std::size_t bytes, const FastboxWriter& ring) {
    const std::size_t group = Groups::class_of(bytes);
    if (group == group_ && --left_ > 0) [[likely]]
      return step_;
    return plan(group, ring);
  }

 private:
  using Samples = tuning::Samples<PublicationRows>;
  using Groups = tuning::ByLength<char, PublicationRows::first, PublicationRows::count>;
  static constexpr int least_gap = 4, longest_gap = 4096;  // records from one that may be a sample to the next

  // A sample is planned with the record before it, which tells the receiver what to do meanwhile.
  [[gnu::noinline]] PublicationStep plan(std::size_t group, const FastboxWriter& ring) {
    const std::size_t length = std::size_t{1} << (PublicationRows::first + group);  // all of a group cost alike
    const Samples::Choice planned = group == group_ ? planned_ : Samples::Choice{};
    planned_ = {};
    group_ = group;
    if (planned.sample) {
      pending_ = true;
      ++number_;
      kind_ = planned.kind;
      length_ = length;
    } else if (pending_) {
      listen(ring);
    } else {
      planned_ = samples_.next(length);
      if (planned_.sample) ring.expect_sample();
    }
    step_.kind = samples_.best(length);
    step_.marks = asks_ahead(step_.kind);
    left_ = planned_.sample ? 1 : gap_;
    if (planned.sample) return {planned.kind, step_.marks | sampled_record};
    return planned_.sample ? PublicationStep{step_.kind, asks_ahead(planned_.kind)} : step_;
  }
  // Receivers that do not wait for their messages tell nothing, and are asked less often.
  void listen(const FastboxWriter& ring) {
    const std::uint64_t reported = ring.record_sample(), ticks = reported & 0xffffffff;
    if (std::uint32_t(reported >> 32) != number_) return;
    pending_ = false;
    gap_ = ticks == not_drained ? std::min(2 * gap_, longest_gap) : least_gap;
    if (ticks != not_drained) samples_.note(kind_, length_, ticks);
  }

  Samples samples_;
  std::size_t group_ = ~std::size_t{0};
  PublicationStep step_;  // of records that are no sample
  int left_ = 0, gap_ = least_gap;
  Samples::Choice planned_;  // for the next record
  bool pending_ = false;     // the receiver has not told of the last sample
  std::uint8_t kind_ = 0;    // of that
  std::size_t length_ = 0;
  std::uint32_t number_ = 0;  // of samples so far
};

}  // namespace nearfield::messages
