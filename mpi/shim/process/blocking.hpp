// Calls that go to the host and may block there: a stand-in progresses our messages meanwhile (stand_in.hpp, law 3 of
// docs/architecture.md), and the calls are counted. A HostCall lives exactly as long as the host's call; several
// threads may have one each, and they nest.
#pragma once
#include "engine/waiting/wait.hpp"
#include "mpi/numbers.hpp"
#include "mpi/shim/process/stand_in.hpp"
#include "mpi/shim/statistics/counts.hpp"

namespace nearfield::mpi {

// Scope of one call.
class HostCall {
 public:
  explicit HostCall(HostCalls& calls)
      : calls_(calls),
        start_(counting() ? waiting::nanoseconds() : 0),
        stand_in_(calls.moves_data, calls.meets_others) {
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
  const StandInScope stand_in_;
};

// Returns our entry for a function that calls the host's own with a stand-in; nullptr: it is none of those.
void* blocking_function(Function number);

}  // namespace nearfield::mpi
