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

// Every algorithm that `names` has for the operation, forced in turn, each on a communicator of its own; a row each,
// with the median over blocks. Those that do not apply, or cannot reach the buffers, give none. "auto": what trials
// choose, measured once they should have ended.
inline void tune(const Cell& cell, const std::vector<std::string>& names, double seconds) {
  const auto last = last_algorithm();
  if (!last) MPI_Abort(MPI_COMM_WORLD, 2);
  const Operation call = cell.operation();
  Buffers buffers(cell.longest(), false, false);
  fill(buffers.send.data(), cell.longest(), cell.type());
  struct Candidate {
    std::string name;
    MPI_Comm comm;
    long calls = 0;
    std::vector<double> times{};
  };
  std::vector<Candidate> candidates;
  const MPI_Comm all = comm;
  OwnWork nothing;
  for (const auto& name : names) {
    MPI_Comm_dup(all, &comm);
    Candidate& candidate = candidates.emplace_back(name, comm);
    if (name != "auto") hint("nearfield_algorithm", (cell.op + ":" + name).c_str());
    call(buffers.send.data(), buffers.recv.data(), nothing);
    int runs = name == "auto" || last() == name, all_run = 0;
    MPI_Allreduce(&runs, &all_run, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all_run) {
      MPI_Comm_free(&candidate.comm);
      candidates.pop_back();
      continue;
    }
    const auto run = [&](long calls) { return run_block(cell, call, buffers, calls); };
    const double us = warmed_up(length_of_block() / 2, run);
    if (name == "auto") run(us > 1000 ? 1000 : 5000);
    candidate.calls = std::max(1L, long(length_of_block() / std::max(us, 0.01)));
  }
  comm = all;
  std::vector<double> lines;
  const double start = MPI_Wtime();
  for (int go = !candidates.empty(); go;) {
    // Each is the first of a round in turn: that one pays for what ranks have done since the last round.
    std::ranges::rotate(candidates, candidates.begin() + 1);
    lines.push_back(line_time());
    for (auto& candidate : candidates) {
      comm = candidate.comm;
      candidate.times.push_back(run_block(cell, call, buffers, candidate.calls));
    }
    comm = all;
    go = MPI_Wtime() - start < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, comm);
  }
  std::ranges::sort(lines);
  for (auto& [name, own, calls, times] : candidates) {
    comm = own;
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
    MPI_Comm_free(&own);
  }
  comm = all;
  if (rank == 0) nearfield::print({{"op", cell.op}, {"bytes", cell.bytes}, {"done", true}});
}

}  // namespace bench
