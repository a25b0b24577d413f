#include "mpi/shim/collectives/vector/exchanging.hpp"

#include "engine/base/out_of_memory.hpp"

namespace nearfield::mpi {

int all_pairs_over_nodes(Collective collective, const char* function, MPI_Comm comm, hierarchy::Hierarchy& hierarchy,
                         Communicator* c, AllPairs& operation, FunctionRef<int()> host_call, FunctionRef<int()> begin) {
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  if (!operation.prepare()) return to_host(collective, Reason::argument, host_call);
  return guarded(comm, function, [&]() -> int {
    std::optional<Exchange> ready;
    bool lacking = false;
    operation.c = c;
    if (c) try {
        ready.emplace(*c, context_of_collectives(*c));
        if (!ready->describe(operation)) return to_host(collective, Reason::argument, host_call);
      } catch (const OutOfMemory&) {
        refuse(*c, context_of_collectives(*c), operation);
        lacking = true;
      }
    if (const int code = begin(); code != MPI_SUCCESS) {
      if (c && !lacking) refuse(*c, context_of_collectives(*c), operation);
      return code;
    }
    const int code = c && !lacking ? ready->run() : MPI_SUCCESS;
    hierarchy.wait(0);
    if (lacking) throw OutOfMemory();
    if (open_windows.load(std::memory_order_relaxed)) hierarchy.home().progress().step_host();
    count_exchange(collective, c ? ready->bytes() : 0, start);
    return report(comm, code);
  });
}

}  // namespace nearfield::mpi
