#include "mpi/shim/statistics/counts.hpp"

#include <iterator>

#include "engine/base/made.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

void each_host_function(FunctionRef<void(Function, const HostCalls&)> visit) {
  for (std::size_t number = 0; number < std::size(host_calls); ++number)
    if (host_calls[number].calls.load(std::memory_order_relaxed)) visit(Function(number), host_calls[number]);
}

HostTotals host_totals() {
  HostTotals all;
  each_host_function([&](Function, const HostCalls& calls) {
    all.calls += calls.calls.load(std::memory_order_relaxed);
    all.nanoseconds += calls.nanoseconds.load(std::memory_order_relaxed);
  });
  return all;
}

void begin_counting() { counts_are_kept.store(true, std::memory_order_relaxed); }

messages::Counts message_counts() {
  const messages::Messenger* const messenger = the_messenger;
  return messenger ? messenger->counts() : made<messages::Counts>();
}

void keep_message_counts() { made<messages::Counts>() = message_counts(); }

const char* name(Reason reason) {
  static constexpr const char* names[] = {
#define REASON(identifier, name, meaning) name,
#include "mpi/statistics.def"
  };
  return names[std::size_t(reason)];
}

Tally& tally(collectives::Collective collective) {
  static constinit Tally tallies[collectives::operation_count] = {};
  return tallies[std::size_t(collective)];
}

void count_call(collectives::Collective collective, std::uint64_t bytes, std::uint64_t start) {
  Tally& t = tally(collective);
  t.calls.fetch_add(1, std::memory_order_relaxed);
  t.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (start) t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
}

}  // namespace nearfield::mpi
