// Statistics per operation: the calls that we served, those that the host served, and why (law 5 of
// docs/dev/architecture.md). They are counted if a report at the end is requested (mpi/shim/statistics/report.hpp), and
// as soon as a tool requests a performance variable (mpi/shim/tools); from then on counting() stays true.
// mpi/statistics.def explains each number. Threads count concurrently, in no order. Calls that began before counting()
// add no time.
#pragma once
#include <atomic>
#include <cstdint>

#include "engine/base/function_ref.hpp"
#include "engine/collectives/call.hpp"
#include "engine/messages/messenger.hpp"
#include "mpi/shim/process/threads/per_thread.hpp"
#include "mpi/shim/statistics/counters.hpp"

namespace nearfield::mpi {

const char* name(Reason reason);

inline constinit std::atomic<bool> counts_are_kept{false};
inline bool counting() { return counts_are_kept.load(std::memory_order_relaxed); }
void begin_counting();
Tally& tally(collectives::Collective collective);
// Counts a call that we have served since `start` (0: since before counting). pre: counting().
void count_call(collectives::Collective collective, std::uint64_t bytes, std::uint64_t start);

// Name of the algorithm of this thread's last collective; "messages"; or the pointer `by_host` if the host served it.
inline constexpr const char by_host[] = "host";
extern const PerThread<const char*, threads::at::last_algorithm> last_algorithm;
// Set when a part of this thread's call goes to the host; mpi/shim/recording clears it before a call.
extern const PerThread<bool, threads::at::went_to_host> went_to_host;

inline constinit HostCalls host_calls[std::size_t(Function::count)] = {};
void each_host_function(FunctionRef<void(Function, const HostCalls&)> visit);  // visits those that have been called
struct HostTotals {
  std::uint64_t calls = 0, nanoseconds = 0;
};
HostTotals host_totals();
// Number of messages that the host has served.
inline constinit std::atomic<std::uint64_t> host_messages{0};
inline void count_host_message() {
  *went_to_host = true;
  if (counting()) [[unlikely]]
    host_messages.fetch_add(1, std::memory_order_relaxed);
}
inline constinit OneSidedCounts one_sided_counts = {};
inline void count_window(WhoseWindow whose) {
  one_sided_counts.windows[std::size_t(whose)].fetch_add(1, std::memory_order_relaxed);
}
inline void count_one_sided(std::atomic<std::uint64_t>& kind, std::uint64_t bytes) {
  if (!counting()) [[likely]]
    return;
  kind.fetch_add(1, std::memory_order_relaxed);
  one_sided_counts.bytes.fetch_add(bytes, std::memory_order_relaxed);
}
// Returns the messenger's counts, which it keeps always, from MPI_Init on; after MPI_Finalize, its last counts.
messages::Counts message_counts();
void keep_message_counts();  // called before the messenger is destroyed

}  // namespace nearfield::mpi
