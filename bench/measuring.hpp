// Blocks of calls, timed, and the rows that come of them.
#pragma once
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/buffers.hpp"
#include "bench/one_sided.hpp"
#include "bench/operations.hpp"
#include "bench/ranks.hpp"
#include "engine/collectives/operations.hpp"
#include "tools/json.hpp"

namespace bench {

enum Mode { plain, nearfield, bare };
inline constexpr const char* mode_names[] = {"plain", "nearfield", "floor"};

struct Cell {
  std::string op, buffers;
  std::size_t bytes;
  std::string window = {}, target = {};  // of what is one-sided

  bool reduction() const {
    const auto found = nearfield::collectives::collective_named(blocking_form(op));
    return accumulates(op) || (found && nearfield::collectives::operation(*found).reduces());
  }
  MPI_Datatype type() const { return !reduction() ? MPI_BYTE : bytes % 8 ? MPI_INT : MPI_DOUBLE; }
  int count() const { return int(!reduction() ? bytes : bytes / (bytes % 8 ? 4 : 8)); }
  Access access() const { return {op, target, bytes}; }
  std::size_t longest() const {
    return one_sided(op) ? access().span() : std::max<std::size_t>(bytes * blocks_in_buffer(op), 64);
  }
  Traffic traffic() const { return one_sided(op) ? access().traffic() : traffic_of(op, bytes); }
  // Of what is not one-sided.
  Operation operation() const { return bench::operation(op, count(), type()); }
  OwnWork own_work() const { return {traffic(), buffers, blocking_form(op) == "bcast", ranks_in_turn(op)}; }
};

struct Block {
  Mode mode;
  double line;  // nanoseconds one way, while it ran
  double microseconds;
};

// Who carries calls of `comm` from now on.
inline void switch_to(Mode mode) { hint("nearfield", mode == plain ? "off" : "on"); }

// The algorithm of the last call, where Nearfield is loaded.
inline const char* (*last_algorithm())() {
  return reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "nearfield_last_algorithm"));
}

// After a call that Nearfield carried.
inline std::string algorithm_of(const Cell& cell) {
  return one_sided(cell.op) ? "window" : point_to_point(cell.op) ? "messages" : last_algorithm()();
}

// Microseconds of a call: the slowest rank's time less what ranks do with their buffers themselves, of which the
// longest counts, since the others wait for it; at least a nanosecond, since that difference has noise. All traffic
// goes through the communicator in its present mode: ranks that wait in a plain host burn whole time slices, which must
// not be charged to Nearfield.
inline double of_a_call(double seconds, long calls, double own_seconds) {
  const double mine[2] = {seconds / double(calls), own_seconds};
  double all[2];
  MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, comm);
  return std::max((all[0] - all[1]) * 1e6, 1e-3);
}

inline double run_block(const Cell& cell, const Operation& call, Buffers& buffers, long calls) {
  OwnWork own = cell.own_work();
  MPI_Barrier(comm);
  const double start = MPI_Wtime();
  if (buffers.places > 1) {
    for (long i = 0; i < calls; ++i) {
      const std::size_t place = buffers.step();
      call(buffers.send.data() + place, buffers.recv.data() + place, own);
    }
  } else {
    for (long i = 0; i < calls; ++i) call(buffers.send.data(), buffers.recv.data(), own);
  }
  const double elapsed = MPI_Wtime() - start;
  if (one_sided(cell.op)) MPI_Barrier(comm);  // others may still need this rank in MPI
  return of_a_call(elapsed, calls, own.alone(buffers.send.data(), buffers.recv.data(), calls));
}

// Microseconds of a block; ranks that share CPUs start it time slices apart.
inline double length_of_block() { return pinned ? 3000 : 30000; }

// Runs ever longer blocks until one takes `enough` microseconds, and returns microseconds of a call.
template <class Run>
double warmed_up(double enough, Run run) {
  long n = 1;
  double each;
  for (;; n *= 4) {
    each = run(n);
    if (each * double(n) > enough || n >= 4096) break;  // both are equal on all ranks
  }
  // Once more, lest one interruption make all blocks too short.
  return pinned ? std::min(each, run(n)) : each;
}

// A line for each mode that has blocks, with all of them: which states the machine was in shows when all jobs have
// ended (nearfield/states.py). `loop`: whose (standard_loops.hpp); `begins_anew`: after so many calls, or never (0).
inline void print_blocks(const Cell& cell, const std::vector<Block>& blocks, const long* calls,
                         const std::string* algorithms, const std::string& loop, long begins_anew) {
  for (const Mode mode : {plain, nearfield, bare}) {
    nearfield::Json measured = nearfield::Json::array();
    for (const Block& block : blocks)
      if (block.mode == mode)
        measured.push_back({nearfield::rounded(block.line, 1), nearfield::rounded(block.microseconds, 4)});
    if (measured.empty()) continue;
    nearfield::Json row{{"op", cell.op},
                        {"bytes", cell.bytes},
                        {"ranks", size},
                        {"mode", mode_names[mode]},
                        {"algorithm", algorithms[mode]},
                        {"buffers", cell.buffers},
                        {"loop", loop},
                        {"short", begins_anew},
                        {"calls", calls[mode]},
                        {"blocks", measured}};
    if (one_sided(cell.op)) row.update({{"window", cell.window}, {"target", cell.target}});
    nearfield::print(row);
  }
}

// What the operation gives on known data: the bytes of all ranks' receive buffers after one call.
inline std::vector<double> result_of(const Cell& cell, const Operation& call, double* send, double* recv) {
  OwnWork nothing;
  const std::size_t doubles = (cell.longest() + 7) / 8;
  std::fill_n(recv, doubles, 0.0);
  fill(send, cell.longest(), cell.type());
  if (one_sided(cell.op)) MPI_Barrier(comm);  // others write there, and read
  call(send, recv, nothing);
  if (one_sided(cell.op)) MPI_Barrier(comm);
  const double* const result = blocking_form(cell.op) == "bcast" ? send : recv;
  return {result, result + doubles};
}

// Ends the job unless both are the same on all ranks.
inline void must_agree(const Cell& cell, const std::vector<double>& a, const std::vector<double>& b, const char* who) {
  int same = !std::memcmp(a.data(), b.data(), cell.longest()), all_same = 0;
  MPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (all_same) return;
  if (rank == 0) std::fprintf(stderr, "%s of %zu bytes: host and %s differ\n", cell.op.c_str(), cell.bytes, who);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

// A mode's operation, on the buffers that a program would have: Nearfield's come from malloc, hence from the shared
// heap where that is loaded, the plain host's from where the C library takes large blocks. (On the heap's huge pages a
// host that copies by process_vm_readv is up to 2.4 times faster than its users know it.) The same data in all places.
// A window is where others send to, or get from.
class Side {
 public:
  Side(const Cell& cell, Mode mode) : cell_(cell) {
    const bool as_without_heap = mode == plain;
    if (!one_sided(cell.op)) {
      buffers.emplace(cell.longest(), cell.buffers == "cold", as_without_heap);
      call = cell.operation();
    } else {
      switch_to(mode);
      auto window = std::make_unique<const Window>(mode == plain ? hosts_own : offered, cell.window, cell.longest(),
                                                   as_without_heap);
      local_.emplace(cell.longest() / 8, as_without_heap);
      const bool gets = cell.op == "get";
      buffers.emplace(cell.longest(), gets ? window->base() : local_->data(), gets ? local_->data() : window->base());
      call = window_operation(cell.op, std::move(window), cell.access(), cell.count(), cell.type());
    }
    for (std::size_t place = 0; place < buffers->places; ++place)
      fill(buffers->send.data() + place * buffers->stride, cell.longest(), cell.type());
  }
  Side(const Side&) = delete;

  std::vector<double> result() { return result_of(cell_, call, buffers->send.data(), buffers->recv.data()); }
  double run(long calls) { return run_block(cell_, call, *buffers, calls); }
  // What serves it now, after trials.
  std::string algorithm() {
    OwnWork nothing;
    call(buffers->send.data(), buffers->recv.data(), nothing);
    return algorithm_of(cell_);
  }

 private:
  Cell cell_;
  std::optional<Array> local_;

 public:
  std::optional<Buffers> buffers;
  Operation call;
};

}  // namespace bench
