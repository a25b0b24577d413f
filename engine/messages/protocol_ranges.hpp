// Protocols that a message may use, by its length, for the messenger and `nearfield explain`.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/settings/settings.hpp"
#include "engine/tuning/constants.hpp"

namespace nearfield::messages {

// Bytes up to which a message travels with its record, and up to which it goes through copy buffers wherever it lies.
struct Limits {
  std::uint64_t in_record, copied_always;
};

// Bytes up to which copying a message costs less than polling a second line.
inline constexpr std::uint64_t short_copy = 1024;

// `own`: bytes of a private cache.
inline Limits limits(const Settings& settings, bool oversubscribed, double own) {
  const bool automatic = settings.protocol == Protocol::automatic;
  // Ranks that share CPUs share private caches. Their rings are in the cache, so records are fast; longer messages are
  // best copied once, since copy buffers need a turn of both ranks for every few of them. For other ranks, one copy of
  // a message that is short beside a private cache costs the program more, when it writes to its buffer again, than a
  // second copy would.
  const bool by_buffers = (automatic && !oversubscribed) || settings.protocol == Protocol::copy_buffers;
  return {by_buffers ? std::min<std::uint64_t>(settings.eager_bytes, short_copy) : settings.eager_bytes,
          settings.protocol == Protocol::copy_buffers ? ~std::uint64_t{0}
          : !automatic                                ? 0
          : oversubscribed                            ? settings.eager_bytes
                                                      : std::uint64_t(own * tuning::constants::copied_always)};
}

struct ProtocolRange {
  const char *name, *needs, *about;
  // Bytes that may take it, by the limits.
  std::uint64_t (*from)(const Limits& limits);
  std::uint64_t (*to)(const Limits& limits);
};
inline constexpr ProtocolRange protocol_ranges[] = {
    {"record", "nothing", "copied into the ring of the pair, and out of it; complete when the call returns",
     [](const Limits&) { return std::uint64_t{0}; }, [](const Limits& l) { return l.in_record; }},
    {"buffers", "nothing", "through copy buffers of the sender, filled and read at the same time",
     [](const Limits& l) { return l.in_record + 1; }, [](const Limits&) { return ~std::uint64_t{0}; }},
    {"direct", "reach of an array", "one copy from array to array, in blocks that both sides claim",
     [](const Limits& l) { return std::max(l.in_record, l.copied_always) + 1; },
     [](const Limits&) { return ~std::uint64_t{0}; }},
    {"calls", "CMA", "one copy by calls of the kernel, in blocks that both sides claim",
     [](const Limits& l) { return std::max(l.in_record, l.copied_always) + 1; },
     [](const Limits&) { return ~std::uint64_t{0}; }},
};

}  // namespace nearfield::messages
