// What a benchmark of some hundred calls sees: loops on a new communicator each, timed from the first call on, so that
// whatever a library tries or learns is part of it. (The communicator has met before, in a barrier. What is learnt
// about messages is kept by peers, not by communicators: of those only the first loop of a job is one from the
// beginning.)
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "bench/measuring.hpp"

namespace bench {

// Microseconds of a call; `algorithm` becomes that of the last call.
inline double run_loop(const Cell& cell, Side& side, Mode mode, long calls, std::string& algorithm) {
  const MPI_Comm lasting = comm;
  MPI_Comm_dup(lasting, &comm);
  switch_to(mode);
  MPI_Barrier(comm);
  const double us = side.run(calls) / parts_of_a_call(cell.op);
  if (mode == nearfield && last_algorithm()) algorithm = side.algorithm();
  MPI_Comm_free(&comm);
  comm = lasting;
  return us;
}

// In turn until `seconds` have passed; at least once each, and for messages no more. Nothing one-sided: a window lasts.
inline void measure_loops(const Cell& cell, double seconds, bool loaded, long calls) {
  Side sides[2]{{cell, plain}, {cell, nearfield}};
  std::vector<Block> blocks;
  std::string algorithms[] = {"host", "host", ""};
  const double start = MPI_Wtime();
  for (int go = 1; go;) {
    for (const Mode mode : {plain, nearfield}) {
      if (mode == nearfield && !loaded) continue;
      const double before = line_time();
      const double us = run_loop(cell, sides[mode], mode, calls, algorithms[mode]);
      blocks.push_back({mode, (before + line_time()) / 2, us});
    }
    go = MPI_Wtime() - start < seconds && !point_to_point(cell.op);
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  const long of_all[] = {calls, calls, 0};
  if (rank == 0) print_blocks(cell, blocks, of_all, algorithms, "own", calls);
}

}  // namespace bench
