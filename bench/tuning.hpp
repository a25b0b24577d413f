// Every algorithm of a cell in turn, for `nearfield tune`.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/measuring.hpp"
#include "tools/json.hpp"

namespace bench {

// Every algorithm that `names` has for the operation, forced in turn; a row each, with the median over blocks. Those
// that do not apply, or cannot reach the buffers, give none. "auto": what trials choose, on a communicator of its own,
// measured once they should have ended.
inline void tune(const Cell& cell, const std::vector<std::string>& names, double seconds) {
  const auto last = last_algorithm();
  if (!last) MPI_Abort(MPI_COMM_WORLD, 2);
  const Operation call = cell.operation();
  Buffers buffers(cell.longest(), false, false);
  fill(buffers.send.data(), cell.longest(), cell.type());
  const double block_us = pinned ? 1000 : 10000;
  struct Candidate {
    std::string name;
    long calls;
    std::vector<double> times;
  };
  std::vector<Candidate> candidates;
  const MPI_Comm forced = comm;
  MPI_Comm chosen;
  MPI_Comm_dup(forced, &chosen);
  OwnWork nothing;
  auto force = [&](const std::string& name) {
    comm = name == "auto" ? chosen : forced;
    if (name != "auto") hint("nearfield_algorithm", (cell.op + ":" + name).c_str());
  };
  for (const auto& name : names) {
    force(name);
    call(buffers.send.data(), buffers.recv.data(), nothing);
    int runs = name == "auto" || last() == name, all_run = 0;
    MPI_Allreduce(&runs, &all_run, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all_run) continue;
    double us = 0;
    long n = 1;
    for (; (us = run_block(cell, call, buffers, n)) * double(n) < block_us / 2 && n < 4096; n *= 4) {
    }
    if (name == "auto") run_block(cell, call, buffers, us > 1000 ? 1000 : 5000);
    candidates.push_back({name, std::max(1L, long(block_us / std::max(us, 0.01))), {}});
  }
  std::vector<double> lines;
  const double start = MPI_Wtime();
  for (int go = 1; go;) {
    lines.push_back(line_time());
    for (auto& candidate : candidates) {
      force(candidate.name);
      candidate.times.push_back(run_block(cell, call, buffers, candidate.calls));
    }
    go = MPI_Wtime() - start < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  std::ranges::sort(lines);
  for (auto& [name, calls, times] : candidates) {
    force(name);
    call(buffers.send.data(), buffers.recv.data(), nothing);
    std::sort(times.begin(), times.end());
    if (rank == 0)
      nearfield::print({{"op", cell.op},
                        {"bytes", cell.bytes},
                        {"ranks", size},
                        {"algorithm", name},
                        {"ran", last()},
                        {"line_ns", nearfield::rounded(lines[lines.size() / 2], 1)},
                        {"median", nearfield::rounded(times[times.size() / 2], 4)}});
  }
  comm = forced;
  MPI_Comm_free(&chosen);
  if (rank == 0) nearfield::print({{"op", cell.op}, {"bytes", cell.bytes}, {"done", true}});
}

}  // namespace bench
