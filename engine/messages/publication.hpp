// How a record of several lines gets into the cache of its reader. The kind depends on its length and the processor.
//
// A record of one line is always of the kind "keep": the reader polls that line, and so fetches it at once.
#pragma once
#include <cstdint>
#include <iterator>

#include "engine/messages/blocks.hpp"
#include "engine/processor/processor.h"
#include "engine/settings/settings.hpp"

namespace nearfield::messages {

struct Publication {
  const char *name, *needs, *about;
  bool demotes, ahead;
  bool possible() const { return !demotes || processor::can_demote(); }
  std::uint64_t marks() const { return ahead ? ahead_of_next : 0; }  // marks in the record's word
};
// In the order of Publishing.
inline constexpr Publication publications[] = {
    {"keep", "nothing", "its lines stay in the cache of the writer; the reader asks for them when the first has come",
     false, false},
    {"ahead", "nothing", "the reader asks for up to three more lines while it waits for the first", false, true},
    {"demote", "CLDEMOTE", "the writer sends them to the shared cache, where the reader finds them sooner on a mesh",
     true, false},
};

// The kind for each length, which is the same for all receivers.
class Publications {
 public:
  // `oversubscribed`: ranks that share CPUs share caches, too.
  Publications(Publishing forced, bool oversubscribed) {
    static_assert(int(Publishing::demote) == std::size(publications));
    const auto take = [](Publishing kind) { return &publications[int(kind) - int(Publishing::keep)]; };
    if (forced != Publishing::automatic) short_ = long_ = take(forced);
    else if (oversubscribed) short_ = long_ = take(Publishing::keep);
    else if (processor::can_demote()) short_ = long_ = take(Publishing::demote);
    else short_ = take(Publishing::ahead), long_ = take(Publishing::keep);
  }
  // `payload`: bytes.
  const Publication& of(std::size_t payload) const {
    if (payload <= room_beside) return publications[0];
    return record_length(payload) - 64 <= most_ahead ? *short_ : *long_;
  }

 private:
  const Publication *short_, *long_;  // of records all of whose lines a reader can prefetch, and of longer ones
};

}  // namespace nearfield::messages
