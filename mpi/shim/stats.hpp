// Statistics per operation, kept when NEARFIELD_STATS is on, printed at MPI_Finalize.
#pragma once
#include <atomic>
#include <cstdint>

#include "engine/collectives/call.hpp"

namespace nearfield::mpi {

enum class Reason : std::uint8_t { communicator, off, argument, type, op, algorithm, memory, count };
const char* name(Reason reason);

struct Tally {
  std::atomic<std::uint64_t> calls, bytes, nanoseconds;
  std::atomic<std::uint64_t> host[std::size_t(Reason::count)];
};

extern bool stats_on;
Tally& tally(collectives::Collective collective);
// Messages that went to the host.
extern std::atomic<std::uint64_t> host_messages;
inline void count_host_message() {
  if (stats_on) [[unlikely]]
    host_messages.fetch_add(1, std::memory_order_relaxed);
}
void print_stats(int rank, int size);

}  // namespace nearfield::mpi
