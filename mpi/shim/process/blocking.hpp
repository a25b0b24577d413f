// Calls that go to the host and may block there. Meanwhile the progress thread progresses Nearfield's messages
// (host_scope.hpp, law 3 of docs/dev/architecture.md). The calls are counted. A HostCall lives exactly as long as the
// host's call; several threads may have one each, and they nest.
#pragma once
#include "engine/waiting/wait.hpp"
#include "mpi/shim/process/at_host.hpp"
#include "mpi/shim/process/host_scope.hpp"
#include "mpi/shim/statistics/counts.hpp"
#include "mpi/traits.hpp"

namespace nearfield::mpi {

// Scope of one call.
class HostCall {
 public:
  explicit HostCall(Function function)
      : calls_(host_calls[unsigned(function)]),
        start_(counting() ? waiting::nanoseconds() : 0),
        scope_(traits_of(function).moves_data, !traits_of(function).meets_nobody) {
    *went_to_host = true;
  }
  ~HostCall() {
    if (!start_) [[likely]]
      return;
    calls_.calls.fetch_add(1, std::memory_order_relaxed);
    calls_.nanoseconds.fetch_add(waiting::nanoseconds() - start_, std::memory_order_relaxed);
  }
  HostCall(const HostCall&) = delete;

 private:
  HostCalls& calls_;
  const std::uint64_t start_;
  const HostScope scope_;
};

template <Function number, class... Arguments>
int blocking_at_host(Arguments... arguments) {
  const HostCall blocks(number);
  return at_host<number>(arguments...);
}

// Returns an entry that calls the host's function inside a HostCall; nullptr: the function is not one that may block.
void* blocking_function(Function number);

}  // namespace nearfield::mpi
