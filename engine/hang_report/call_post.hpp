// The MPI calls that a process is in. It publishes them to the others of its node for the hang report (reporter.hpp).
// Posts lie in the header of its segment (team::ProcessHeader), one for each thread of the program.
//
//   a call begins     call = number << 16 | function << 1 | 1
//   it ends           call = ... | 0
//   it waits long, or
//   goes to the host  publishes what it waits for (CallState), under `version`
//
// Only the owner writes, and others read only for a hang report, so a call costs two stores into a line that its core
// has.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nearfield::hang_report {

inline constexpr unsigned posts = 4;  // most threads of a process that have a post

enum class AwaitedKind : std::uint8_t { none, send, receive, probe, collective };

// One thing that a call waits for.
struct Item {
  AwaitedKind kind = AwaitedKind::none;
  bool alike = true;                                              // `bytes` must be the same on all ranks
  std::uint16_t function = 0;                                     // the function that has begun it
  std::int32_t member = none;                                     // partner, as an index of the node's processes
  std::int32_t peer = none;                                       // partner, as a rank of the communicator
  std::int32_t tag = none, root = none;                           // root: a rank, `itself` or `no_root`
  static constexpr std::int32_t itself = -1001, no_root = -1002;  // for intercommunicators
  std::int32_t size = 0;                                          // of the communicator, 0: unknown
  std::uint64_t context = 0;  // of the communicator, equal on all of its ranks, 0: unknown
  std::uint64_t bytes = unknown;
  char communicator[24] = {};  // its name, "": none
  static constexpr std::int32_t none = -1000;
  static constexpr std::int32_t any = -1;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
};

inline constexpr std::size_t most_items = 3, most_awaited = 16;

struct CallState {
  std::uint64_t call = 0;     // CallPost::call that this state belongs to
  std::uint64_t since = 0;    // CLOCK_MONOTONIC, ns, 0: unknown
  std::uint32_t pending = 0;  // number of operations that it waits for; `items` of them are in `item`
  std::uint16_t items = 0;
  std::uint8_t in_host = 0;
  std::uint8_t lost = 0;  // 1: messages have come that nothing receives; lost_* describe the oldest
  std::int32_t lost_member = 0, lost_tag = 0;
  std::uint64_t lost_context = 0;
  std::uint16_t awaited = 0;  // number of members that it waits for; the first most_awaited are in awaited_member
  std::int16_t awaited_member[most_awaited] = {};
  std::uint8_t contention = 0;  // 1: others have wanted its CPUs since the wait began
  bool has_site = false;        // the fields behind `item` are filled in
  Item item[most_items];
  char object[304];  // file that the call lies in, "": not looked up yet
  std::uint64_t offset;
  char symbol[72];
  char script[96];  // file and line in an interpreter

  CallState() { forget_site(); }
  void forget_site() { *object = *symbol = *script = '\0', offset = 0; }
  // Returns the bytes that are posted: every call that goes to the host is posted, so states without a site are kept
  // short.
  std::size_t used_bytes() const;
};
static_assert(std::is_trivially_copyable_v<CallState>);
inline constexpr std::size_t state_words = (sizeof(CallState) + 7) / 8;

inline std::size_t CallState::used_bytes() const {
  return has_site ? sizeof(CallState) : offsetof(CallState, item) + items * sizeof(Item);
}

struct alignas(128) CallPost {
  std::atomic<std::uint64_t> call;  // owner
  // Owner: odd while it writes.
  alignas(128) std::atomic<std::uint32_t> version;
  std::atomic<std::uint64_t> words[state_words];

  void publish(const CallState& state) {
    static_assert(offsetof(CallState, item) % 8 == 0 && sizeof(Item) % 8 == 0 && sizeof(CallState) % 8 == 0);
    const std::size_t used = state.used_bytes() / 8;
    const std::uint32_t now = version.load(std::memory_order_relaxed);
    version.store(now + 1, std::memory_order_relaxed);
    // A reader that loads one of these words sees the odd version afterwards.
    for (std::size_t i = 0; i < used; ++i) {
      std::uint64_t word;
      std::memcpy(&word, reinterpret_cast<const char*>(&state) + i * 8, sizeof word);
      words[i].store(word, std::memory_order_release);  // SYNC: state-words
    }
    version.store(now + 2, std::memory_order_release);  // SYNC: state-version
  }

  // False: it is being written, or belongs to another call than `about`.
  bool read(CallState& state, std::uint64_t about) const {
    std::uint64_t raw[state_words];
    const std::uint32_t before = version.load(std::memory_order_acquire);  // SYNC: state-version
    for (std::size_t i = 0; i < state_words; ++i)
      raw[i] = words[i].load(std::memory_order_acquire);  // SYNC: state-words
    if (before % 2 || version.load(std::memory_order_relaxed) != before) return false;
    std::memcpy(static_cast<void*>(&state), raw, sizeof state);
    if (!state.has_site) state.forget_site();
    return before && state.call == about;
  }
};

constexpr bool inside(std::uint64_t call) { return call & 1; }
constexpr unsigned function_of(std::uint64_t call) { return unsigned(call >> 1 & 0x7fff); }
constexpr std::uint64_t next_call(std::uint64_t before, unsigned function) {
  return ((before | 0xffff) + 1) | function << 1 | 1;
}

// In the header of every segment.
struct CallBoard {
  CallPost post[posts];
  std::atomic<std::int32_t> rank;    // owner: rank in MPI_COMM_WORLD, plus one
  std::atomic<std::int32_t> unseen;  // owner: threads that have called MPI and have no post
  // Used in the first member's: time of the last hang report (CLOCK_MONOTONIC, ns). Any member, by compare-and-swap
  // before it writes a report, so that one writes it for all.
  alignas(128) std::atomic<std::uint64_t> called;
  // Used in the first member's: time at which a signal last asked for a report. Any member; waits post all details
  // then.
  std::atomic<std::uint64_t> asked;
};

}  // namespace nearfield::hang_report
