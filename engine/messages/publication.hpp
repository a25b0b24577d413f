// How a record of several lines is handed on once it is written: kinds, one of which is taken per receiver and class of
// lengths, by samples (tuning/samples.hpp).
//
//   sender                                         receiver
//   of some records: reads the ticks, writes it,
//     publishes it as sampled, reads the ticks
//   hands its lines on --------------------------> sees that it is sampled: reads the ticks, copies it out
//   ticks of both: what this kind costs <--------- Ring::record_sample = number of samples, ticks
//
// Neither side waits for the other, nor compares its ticks with the other's. What the kinds differ in is the time in
// which the receiver gets the lines behind the first. A record of one line is always kept: it is awaited, and fetched
// before the writer could do anything for it.
#pragma once
#include <iterator>

#include "engine/messages/fastbox.hpp"
#include "engine/settings/settings.hpp"
#include "engine/tuning/samples.hpp"

namespace nearfield::messages {

struct Publication {
  const char *name, *needs, *about;
  bool (*possible)();
  void (*hand_on)(std::byte* lines, std::size_t bytes);
};
inline constexpr Publication publications[] = {
    {"keep", "nothing", "the lines stay in the cache of the writer, out of which the reader fetches them",
     [] { return true; }, [](std::byte*, std::size_t) {}},
    {"demote", "CLDEMOTE", "the writer sends them to the shared cache, where the reader finds them sooner on a mesh",
     processor::can_demote,
     [](std::byte* lines, std::size_t bytes) {
       for (std::size_t at = 0; at < bytes; at += 64) processor::demote(lines + at);
     }},
};
// The kind that a setting forces.
constexpr std::uint8_t publication_of(Publishing forced) {
  return forced == Publishing::automatic ? 0 : std::uint8_t(int(forced) - int(Publishing::keep));
}
static_assert(publication_of(Publishing::demote) == std::size(publications) - 1);

struct PublicationRows {
  static constexpr std::size_t kinds = std::size(publications);
  static constexpr unsigned first = 6;  // up to 64 bytes, 128 and so on; more than 1 KiB
  static constexpr std::size_t count = 6;
  static constexpr unsigned watch_every(std::size_t) { return tuning::constants::samples_of_best; }
  static constexpr float clearly(std::size_t, std::size_t, std::size_t) {
    return float(tuning::constants::clearly_stores);
  }
};

// One sender's kinds for one receiver.
class PublicationTrials {
 public:
  using Choice = tuning::Samples<PublicationRows>::Choice;

  Choice next(std::size_t bytes, const FastboxWriter& ring) {
    constexpr unsigned asked = 4;  // one in so many may be a sample: it costs two lines more
    if (++uses_ % asked != 0) return {samples_.best(bytes), false};
    if (!pending_) return samples_.next(bytes);
    const std::uint64_t told = ring.record_sample();
    if (std::uint32_t(told >> 32) == number_) {
      pending_ = false;
      samples_.note(kind_, bytes_, ticks_ + (told & 0xffffffff));
    }
    return {samples_.best(bytes), false};
  }
  // Writing a sample has taken so many ticks.
  void wrote(Choice choice, std::size_t bytes, std::uint64_t ticks) {
    pending_ = true;
    ++number_;
    kind_ = choice.kind;
    bytes_ = bytes;
    ticks_ = ticks;
  }

 private:
  tuning::Samples<PublicationRows> samples_;
  unsigned uses_ = 0;
  bool pending_ = false;  // the receiver has not told its part
  std::uint8_t kind_ = 0;
  std::uint32_t number_ = 0;  // of samples so far
  std::uint64_t bytes_ = 0, ticks_ = 0;
};

}  // namespace nearfield::messages
