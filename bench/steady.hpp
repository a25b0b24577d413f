// What calls cost once everything has settled: host and Nearfield, and the floor where it is asked for, in turn.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/floor.hpp"
#include "bench/measuring.hpp"
#include "bench/window_floor.hpp"

namespace bench {

// The bodies of the floor in memory of their own, and which is the quickest while the machine is in a state.
class FloorOfCell {
 public:
  explicit FloorOfCell(const Cell& cell) : cell_(cell), bytes_(Floor::bytes(cell.longest())) {
    if (cell.buffers == "cold" || !(memory_ = share(bytes_))) return;
    floor_.emplace(memory_, cell.longest(), cell.type() == MPI_INT);
    bodies_ = one_sided(cell.op) ? bodies_on_window(*floor_, cell) : floor_->bodies(blocking_form(cell.op), cell.bytes);
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
  double choose(double line) {
    const auto known = std::ranges::find_if(quickest_, [&](const Quickest& q) { return steady(q.line, line); });
    const Quickest quickest = known != quickest_.end() ? *known : find_quickest(line);
    if (known == quickest_.end() && steady(line, line_time())) quickest_.push_back(quickest);  // it was one state
    chosen_ = quickest.body;
    begin_anew();
    return quickest.us;
  }
  double run(long calls) { return run_block(cell_, chosen_->call, *buffers_, calls); }
  const std::string& name() const { return chosen_->name; }

 private:
  struct Quickest {
    double line;
    const Floor::Body* body;
    double us;
  };

  Quickest find_quickest(double line) {
    Quickest quickest{line, nullptr, 1e12};
    for (const Floor::Body& body : bodies_) {
      begin_anew();
      const double us =
          warmed_up(length_of_block() / 8, [&](long n) { return run_block(cell_, body.call, *buffers_, n); });
      if (us < quickest.us) quickest = {line, &body, us};
    }
    return quickest;
  }

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
  std::vector<Quickest> quickest_;  // of each state
  const Floor::Body* chosen_ = nullptr;
};

inline constexpr double patience = 10;  // seconds in which a cell may wait for a state that lasts, at least

// Blocks of all modes, by turns, until `seconds` have passed and each mode has had one during which the machine's state
// lasted: others come and go. `prepare` may change which code a mode runs, and says whether it has run any; `run`
// returns microseconds of a call.
template <class Prepare, class Run>
std::vector<Block> take_turns(const std::vector<Mode>& turns, double seconds, Prepare prepare, Run run) {
  std::vector<Block> blocks;
  const double start = MPI_Wtime();
  const int last_turn = int(turns.size()) - 1;
  for (int turn = 0;; ++turn) {
    const Mode mode = turns[std::size_t(turn) % turns.size()];
    switch_to(mode);
    double before = line_time();
    if (prepare(mode, before)) before = line_time();
    const double us = run(mode);
    const double after = line_time();
    if (steady(before, after)) blocks.push_back({mode, (before + after) / 2, us});
    bool each_has_some = true;
    for (const Mode m : turns)
      each_has_some &= std::ranges::any_of(blocks, [&](const Block& b) { return b.mode == m; });
    const double elapsed = MPI_Wtime() - start;
    int go = elapsed < seconds || turn < last_turn || (!each_has_some && elapsed < std::max(20 * seconds, patience));
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!go && turn % (last_turn + 1) == last_turn) return blocks;
  }
}

// Two sides of a cell, which have given the same result; that also warms up.
class Sides {
 public:
  Sides(const Cell& cell, bool loaded) : loaded_(loaded) {
    std::vector<double> results[2];
    for (int mode = 0; mode < (loaded ? 2 : 1); ++mode) {
      switch_to(Mode(mode));
      Side& side = sides_[mode].emplace(cell, Mode(mode));
      results[mode] = side.result();
      each[mode] = warmed_up(length_of_block() / 2, [&](long n) { return side.run(n); });
    }
    if (loaded) must_agree(cell, results[plain], results[nearfield], "Nearfield");
    plain_result = std::move(results[plain]);
  }
  Side& operator[](Mode mode) { return *sides_[mode]; }
  std::vector<Mode> turns() const {
    return loaded_ ? std::vector<Mode>{plain, nearfield, nearfield, plain} : std::vector<Mode>{plain, plain};
  }
  // What serves Nearfield's calls now, after trials.
  std::string algorithm() {
    if (!loaded_ || !last_algorithm()) return "host";
    switch_to(nearfield);
    return sides_[nearfield]->algorithm();
  }

  double each[3] = {0, 0, 0};  // microseconds of a call
  std::vector<double> plain_result;

 private:
  bool loaded_;
  std::optional<Side> sides_[2];
};

inline void measure_steady(const Cell& cell, double seconds, bool loaded, bool with_floor) {
  Sides sides(cell, loaded);
  std::optional<FloorOfCell> floor;
  if (with_floor) floor.emplace(cell);
  const bool has_floor = floor && floor->known();
  if (has_floor) {
    floor->must_agree_with(sides.plain_result);
    sides.each[bare] = floor->choose(line_time());
  }

  // Blocks of the same length in time; of some calls also where a plain host needs time slices for each, since the
  // first call of a block waits for whoever sleeps.
  const auto& each = sides.each;
  const double length = std::clamp(8 * std::max({each[0], each[1], each[2]}), length_of_block(), 1e6);
  long calls[3];
  for (int mode = 0; mode < 3; ++mode) calls[mode] = std::max(1L, long(length / std::max(each[mode], 0.01)));
  MPI_Bcast(calls, 3, MPI_LONG, 0, MPI_COMM_WORLD);
  const auto blocks = take_turns(
      loaded && has_floor ? std::vector<Mode>{plain, nearfield, bare} : sides.turns(), seconds,
      [&](Mode mode, double line) { return mode == bare && floor->choose(line) > 0; },
      [&](Mode mode) {
        return (mode == bare ? floor->run(calls[bare]) : sides[mode].run(calls[mode])) / parts_of_a_call(cell.op);
      });
  const std::string algorithms[] = {"host", sides.algorithm(), has_floor ? floor->name() : ""};
  if (rank == 0) print_blocks(cell, blocks, calls, algorithms, "own", 0);
}

}  // namespace bench
