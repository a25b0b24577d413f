// The rows of mpi/statistics.def as tables: each number's name, meaning and reader. Reports at the end (report.hpp) and
// performance variables (mpi/shim/tools/performance_variables.cpp) go through them.
#pragma once
#include <cstdint>
#include <span>

#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/statistics/counts.hpp"

namespace nearfield::mpi::statistics {

enum class Counted : std::uint8_t { always, on_request };

struct Number {
  const char* name;
  int of_class;  // MPI_T_PVAR_CLASS_...
  Counted counted;
  const char* meaning;

  bool is_timer() const { return of_class == MPI_T_PVAR_CLASS_TIMER; }
};

// `read` returns nanoseconds for a timer.
template <class... Subject>
struct Row : Number {
  std::uint64_t (*read)(Subject...);
};

using OfOperation = Row<const Tally&>;
using OfFunction = Row<const HostCalls&>;
using OfComponent = Row<team::Process&, memory::Component>;
using OfProcess = Row<>;

std::span<const OfOperation> of_operation();
std::span<const OfFunction> of_function();
std::span<const OfComponent> of_component();
std::span<const OfProcess> of_process();

}  // namespace nearfield::mpi::statistics
