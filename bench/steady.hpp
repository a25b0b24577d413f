// What calls cost once everything has settled: host and Nearfield, and the floor where it is asked for, in turn.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/floor.hpp"
#include "bench/measuring.hpp"
#include "bench/window_floor.hpp"

namespace bench {

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

// The bodies of the floor in memory of their own, and which is the quickest while the machine is in a state.
class FloorOfCell {
 public:
  explicit FloorOfCell(const Cell& cell) : cell_(cell), bytes_(Floor::bytes(cell.longest())) {
    if (cell.buffers == "cold" || !(memory_ = share(bytes_))) return;
    floor_.emplace(memory_, cell.longest(), cell.type() == MPI_INT);
    bodies_ = one_sided(cell.op) ? bodies_on_window(*floor_, cell) : floor_->bodies(cell.op, cell.bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    buffers_ = std::make_unique<Buffers>(cell.longest(), floor_->send(), floor_->recv());
  }
  FloorOfCell(const FloorOfCell&) = delete;
  ~FloorOfCell() {
    if (memory_) munmap(memory_, bytes_);
  }

  bool known() const { return !bodies_.empty(); }

  void must_agree_with(const std::vector<double>& result) {
    for (const Floor::Body& body : bodies_) {
      begin_anew();
      const auto found = result_of(cell_, body.call, floor_->send(), floor_->recv());
      MPI_Barrier(comm);
      must_agree(cell_, result, found, body.name.c_str());
    }
  }

  // Measures all bodies when the state is new. Returns microseconds of a call of the quickest, which runs from now on.
  double choose(const std::string& state) {
    auto [place, is_new] = quickest_.try_emplace(state);
    if (is_new) {
      place->second.us = 1e12;
      for (const Floor::Body& body : bodies_) {
        begin_anew();
        const double us =
            warmed_up(length_of_block() / 8, [&](long n) { return run_block(cell_, body.call, *buffers_, n); });
        if (us < place->second.us) place->second = {&body, us};
      }
    }
    chosen_ = place->second.body;
    const double us = place->second.us;
    if (is_new && state_of(line_time()) != state) quickest_.erase(place);  // the state has changed meanwhile
    begin_anew();
    return us;
  }
  double run(long calls) { return run_block(cell_, chosen_->call, *buffers_, calls); }
  const std::string& name() const { return chosen_->name; }

 private:
  struct Quickest {
    const Floor::Body* body = nullptr;
    double us = 0;
  };

  void begin_anew() {
    MPI_Barrier(comm);
    floor_->begin_anew();
    MPI_Barrier(comm);
  }

  Cell cell_;
  std::size_t bytes_;
  void* memory_ = nullptr;
  std::optional<Floor> floor_;
  std::unique_ptr<Buffers> buffers_;
  std::vector<Floor::Body> bodies_;
  std::map<std::string, Quickest> quickest_;
  const Floor::Body* chosen_ = nullptr;
};

inline constexpr double patience = 10;  // seconds in which a cell may wait for a state that lasts, at least

// Both must give the same result first; that also warms up, and tells how long a call takes.
inline void measure_steady(const Cell& cell, double seconds, bool loaded, bool with_floor) {
  std::optional<Side> sides[2];
  double each[3] = {0, 0, 0};
  std::vector<double> results[2];
  const int modes = loaded ? 2 : 1;
  for (int mode = 0; mode < modes; ++mode) {
    switch_to(Mode(mode));
    Side& side = sides[mode].emplace(cell, Mode(mode));
    results[mode] = side.result();
    each[mode] = warmed_up(length_of_block() / 2, [&](long n) { return side.run(n); });
  }
  if (loaded) must_agree(cell, results[plain], results[nearfield], "Nearfield");

  std::optional<FloorOfCell> floor;
  if (with_floor) floor.emplace(cell);
  if (floor && floor->known()) {
    floor->must_agree_with(results[plain]);
    each[bare] = floor->choose(state_of(line_time()));
  }

  // Blocks of the same length in time; of some calls also where a plain host needs time slices for each, since the
  // first call of a block waits for whoever sleeps.
  const double length = std::clamp(8 * std::max({each[0], each[1], each[2]}), length_of_block(), 1e6);
  long calls[3];
  for (int mode = 0; mode < 3; ++mode) calls[mode] = std::max(1L, long(length / std::max(each[mode], 0.01)));
  MPI_Bcast(calls, 3, MPI_LONG, 0, MPI_COMM_WORLD);
  const std::vector<Mode> turns = !loaded                     ? std::vector<Mode>{plain, plain}
                                  : !floor || !floor->known() ? std::vector<Mode>{plain, nearfield, nearfield, plain}
                                                              : std::vector<Mode>{plain, nearfield, bare};
  std::vector<Block> blocks;
  const double start = MPI_Wtime();
  for (int turn = 0;; ++turn) {
    const Mode mode = turns[std::size_t(turn) % turns.size()];
    switch_to(mode);
    double before = line_time();
    if (mode == bare) floor->choose(state_of(before)), before = line_time();
    const double us =
        (mode == bare ? floor->run(calls[bare]) : sides[mode]->run(calls[mode])) / parts_of_a_call(cell.op);
    const double after = line_time();
    if (!std::strcmp(state_of(before), state_of(after))) blocks.push_back({mode, (before + after) / 2, us});
    const int last_turn = int(turns.size()) - 1;
    // Where the machine's state changes all the time, until each mode has had a block in one: other processes come and
    // go.
    bool each_has_some = true;
    for (const Mode m : turns)
      each_has_some &= std::ranges::any_of(blocks, [&](const Block& b) { return b.mode == m; });
    const double elapsed = MPI_Wtime() - start;
    int go = elapsed < seconds || turn < last_turn || (!each_has_some && elapsed < std::max(20 * seconds, patience));
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!go && turn % (last_turn + 1) == last_turn) break;
  }
  std::string algorithms[] = {"host", "host", floor && floor->known() ? floor->name() : ""};
  if (loaded && last_algorithm()) {
    switch_to(nearfield);
    algorithms[nearfield] = sides[nearfield]->algorithm();
  }
  if (rank == 0) print_rows(cell, blocks, calls, algorithms, 0);
}

}  // namespace bench
