// The loops of other benchmarks, whose figures people compare. Buffers are never touched; barriers come before each
// sample, and a tenth of its calls that nobody times.
//
//   imb       calls right behind each other, so that a root is ahead of the others by what the library lets it:
//             IMB with -sync off, and before it had that option; the slowest rank's time
//   imb-sync  a barrier after each call of a collective, which is not timed: IMB by default
//   osu       the same, but the mean over ranks, and other numbers of calls: the OSU micro-benchmarks
//
// Messages are timed over all calls of a sample in each of them. The non-blocking form of a collective is waited for at
// once: the pure time of IMB-NBC.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/steady.hpp"

namespace bench {

struct StandardLoop {
  const char* name;
  bool meets;       // after each call of a collective
  MPI_Op of_ranks;  // their times of a call; a sum becomes the mean
  long (*calls)(const Cell& cell);
};

// As many as move 40 MiB, 1000 at most.
inline long calls_of_imb(const Cell& cell) {
  return std::clamp<long>(long((40u << 20) / std::max<std::size_t>(cell.bytes, 1)), 1, 1000);
}
// Fewer beyond 8 KiB; ten times as many messages.
inline long calls_of_osu(const Cell& cell) {
  return (cell.bytes > 8192 ? 100 : 1000) * (point_to_point(cell.op) ? 10 : 1);
}

inline const StandardLoop* standard_loop(const std::string& name) {
  static const StandardLoop loops[] = {{"imb", false, MPI_MAX, calls_of_imb},
                                       {"imb-sync", true, MPI_MAX, calls_of_imb},
                                       {"osu", true, MPI_SUM, calls_of_osu}};
  const auto* const found = std::ranges::find(loops, name, &StandardLoop::name);
  return found == std::end(loops) ? nullptr : found;
}

// Seconds of this rank in `calls` calls.
inline double run_calls(const StandardLoop& loop, const Cell& cell, Side& side, long calls) {
  OwnWork nothing;
  double *const send = side.buffers->send.data(), *const recv = side.buffers->recv.data();
  double seconds = 0;
  if (loop.meets && !point_to_point(cell.op)) {
    for (long i = 0; i < calls; ++i) {
      const double start = MPI_Wtime();
      side.call(send, recv, nothing);
      seconds += MPI_Wtime() - start;
      MPI_Barrier(comm);
    }
    return seconds;
  }
  const double start = MPI_Wtime();
  for (long i = 0; i < calls; ++i) side.call(send, recv, nothing);
  return MPI_Wtime() - start;
}

// Microseconds of a call.
inline double run_sample(const StandardLoop& loop, const Cell& cell, Side& side, long calls) {
  run_calls(loop, cell, side, (calls + 9) / 10);
  for (int i = 0; i < 2; ++i) MPI_Barrier(comm);
  const double mine = run_calls(loop, cell, side, calls) / double(calls);
  double all = 0;
  // Ranks that take no part in messages would lower a mean.
  const MPI_Op combined = point_to_point(cell.op) ? MPI_MAX : loop.of_ranks;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, combined, comm);
  return std::max((combined == MPI_SUM ? all / size : all) * 1e6, 1e-3);
}

inline constexpr double longest_sample = 1e6;  // microseconds; a plain host may need time slices for each call

inline void measure_as(const StandardLoop& loop, const Cell& cell, double seconds, bool loaded) {
  Sides sides(cell, loaded);
  long calls[3] = {0, 0, 0};
  for (const Mode mode : {plain, nearfield})
    calls[mode] = std::clamp(long(longest_sample / std::max(sides.each[mode], 0.01)), 1L, loop.calls(cell));
  MPI_Bcast(calls, 3, MPI_LONG, 0, MPI_COMM_WORLD);
  const auto blocks = take_turns(
      sides.turns(), seconds, [](Mode, double) { return false; },
      [&](Mode mode) { return run_sample(loop, cell, sides[mode], calls[mode]) / parts_of_a_call(cell.op); });
  const std::string algorithms[] = {"host", sides.algorithm(), ""};
  if (rank == 0) print_blocks(cell, blocks, calls, algorithms, loop.name, 0);
}

}  // namespace bench
