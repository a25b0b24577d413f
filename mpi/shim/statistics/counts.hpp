// Statistics per operation: what we carried, what the host did, and why it was the host (law 5 of
// docs/architecture.md). They are kept when a report at the end is asked for (mpi/shim/statistics/report.hpp), and from
// when a tool asks for a performance variable (mpi/shim/tools). What each number means: mpi/statistics.def. Threads
// count at the same time, in no order; whoever counts looks at counting() first, which never turns off again. A call
// that began before it was on has no time.
#pragma once
#include <atomic>
#include <cstdint>

#include "engine/base/function_ref.hpp"
#include "engine/collectives/call.hpp"
#include "engine/messages/messenger.hpp"
#include "mpi/numbers.hpp"
#include "mpi/shim/process/threads/per_thread.hpp"

namespace nearfield::mpi {

enum class Reason : std::uint8_t {
#define REASON(identifier, ...) identifier,
#include "mpi/statistics.def"
  count
};
const char* name(Reason reason);

struct Tally {
  std::atomic<std::uint64_t> calls, bytes, nanoseconds;
  std::atomic<std::uint64_t> host[std::size_t(Reason::count)];
};

extern std::atomic<bool> counts_are_kept;
inline bool counting() { return counts_are_kept.load(std::memory_order_relaxed); }
void begin_counting();
Tally& tally(collectives::Collective collective);
// A call of ours that began at `start` (0: before we counted) and has ended; pre: counting().
void count_call(collectives::Collective collective, std::uint64_t bytes, std::uint64_t start);

// What served this thread's last collective: an algorithm's name, "messages", or `by_host` itself.
inline constexpr const char by_host[] = "host";
extern const PerThread<const char*, threads::at::last_algorithm> last_algorithm;
// Something of this thread's call has been given to the host; who looks clears it before (mpi/shim/recording).
extern const PerThread<bool, threads::at::went_to_host> went_to_host;

// Calls of a function that the host serves always, by its number.
struct HostCalls {
  std::atomic<std::uint64_t> calls, nanoseconds;
};
extern HostCalls host_calls[std::size_t(Function::count)];
void each_host_function(FunctionRef<void(Function, const HostCalls&)> visit);  // that has been called
struct HostTotals {
  std::uint64_t calls = 0, nanoseconds = 0;
};
HostTotals host_totals();
// Messages that went to the host.
extern std::atomic<std::uint64_t> host_messages;
inline void count_host_message() {
  *went_to_host = true;
  if (counting()) [[unlikely]]
    host_messages.fetch_add(1, std::memory_order_relaxed);
}
// Windows that were made, and what is done with those of ours.
enum class WhoseWindow : std::uint8_t { ours, communicator, reach, dynamic, count };
struct OneSidedCounts {
  std::atomic<std::uint64_t> windows[std::size_t(WhoseWindow::count)];
  std::atomic<std::uint64_t> moves, accumulates, bytes;
};
extern OneSidedCounts one_sided_counts;
inline void count_window(WhoseWindow whose) {
  one_sided_counts.windows[std::size_t(whose)].fetch_add(1, std::memory_order_relaxed);
}
inline void count_one_sided(std::atomic<std::uint64_t>& kind, std::uint64_t bytes) {
  if (!counting()) [[likely]]
    return;
  kind.fetch_add(1, std::memory_order_relaxed);
  one_sided_counts.bytes.fetch_add(bytes, std::memory_order_relaxed);
}
// What the messenger has counted, always and from MPI_Init on; after MPI_Finalize, what it had counted then.
messages::Counts message_counts();
void keep_message_counts();  // before the messenger is taken away

}  // namespace nearfield::mpi
