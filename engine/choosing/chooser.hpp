// What has been chosen for the calls of one context: by the model, by a file, and by trials (tuning/trials.hpp).
//
// A cell is a class of lengths of one collective; where a row applies to a part of a class only, the class has a cell
// for each part. So whatever a cell has chosen applies to all its calls.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/choosing/choose.hpp"
#include "engine/tuning/trials.hpp"

namespace nearfield::choosing {

using tuning::Candidate, tuning::Trials, tuning::pace;

// What the first member of a team tells the others, in the team's annex.
struct ChooserControlBlock {
  static constexpr std::size_t parts = 2;  // of a class: others are never tried again
  Choosing choosing;                       // NEARFIELD_CHOOSE
  char algorithm[512];                     // NEARFIELD_ALGORITHM
  // Row + 1 of the tables that a file asks for, 0: none (tuned.hpp): the fastest, and of those that need no reach.
  std::uint8_t tuned[collectives::collective_count][64][2];
  // Relaxed: a cell's epoch of calls from which on all try again. It lies so far ahead that every member synchronises
  // with the first one before it gets there (no member is an epoch ahead of another), and so loads what has been
  // stored.
  alignas(team::line) Atomic<std::uint32_t> revisit[collectives::collective_count][64][parts];
};

// Of the first member of every team.
inline constexpr std::size_t shared_configuration_bytes = sizeof(ChooserControlBlock);
// Has the teams of `node` keep such words. `tuned`: for NEARFIELD_CHOOSE=file, for as long as there are teams.
class Tuned;
void tell_teams(team::Process& process, const Tuned* tuned = nullptr);

class Chooser {
 public:
  // For the team that it will serve; in two steps, since nothing may be missing once the members have agreed on a team.
  // Throws std::bad_alloc.
  Chooser();
  ~Chooser();
  // `tries`: whether calls follow each other, so that their times tell something.
  void serve(const team::Team& team, bool tries = true);

  // Chooses and runs; nullptr where no algorithm applies, on all members alike, and nothing has been moved. What a call
  // needs must be equal on all members, but for addresses. Throws what waits throw.
  const collectives::Algorithm* perform(context::CollectiveContext& context, const collectives::Call& call) {
    return perform_in(cell_of(call.collective, call.bytes), context, call);
  }

  // Of a member that only gives: the same, if it can do its part without waiting for members that come later; for some
  // time it looks whether it can. False: nothing has been done.
  bool perform_if_ready(context::CollectiveContext& context, const collectives::Call& call,
                        const collectives::Algorithm*& ran) {
    Cell& cell = cell_of(call.collective, call.bytes);
    const bool ready = cell.calls + 1 == cell.event
                           ? event_ready(context, call, cell)
                           : row_ready(context, call, cell.staged && cell.skip > 0 ? cell.staged : cell.algorithm);
    if (ready) [[likely]]
      ran = perform_in(cell, context, call);
    return ready;
  }

  // What such a call would be run by now, and by what where its buffers are out of reach; nullptr where nothing
  // applies. Equal on all members that have made the same calls.
  struct Rows {
    const collectives::Algorithm *row = nullptr, *staged = nullptr;
  };
  Rows rows_for(const collectives::Call& call) const;

  // Another override, from the next call on; on all members at the same call.
  void override_with(std::string_view text);
  const std::string& override_text() const { return text_; }

  // The trials of a length; nullptr: it has none.
  const Trials* trials_of(collectives::Collective collective, std::size_t bytes) const;
  // Has a decided cell use these rows; tests.
  void decide(collectives::Collective collective, std::size_t bytes, const collectives::Algorithm& row,
              const collectives::Algorithm& staged);

 private:
  using Row = const collectives::Algorithm*;
  struct Tried;
  // In one line: a call looks at one of them.
  struct alignas(64) Cell {
    std::uint64_t calls = 0, event = 1;  // the call that is not run as the others, 0: none
    std::size_t upto = ~std::size_t{0};  // bytes
    Row algorithm = nullptr;
    Row staged = nullptr;                 // when buffers are out of reach
    std::uint32_t skip = 0;               // calls that take `staged` at once
    std::uint8_t failures = 0, part = 0;  // how often reach has failed; of the class
    std::unique_ptr<Tried> trials;
    std::unique_ptr<Cell> longer;  // of the same class
  };
  Cell& cell_of(collectives::Collective collective, std::size_t bytes) {
    Cell* cell = &cells_[std::size_t(collective)][size_class(bytes)];
    while (bytes > cell->upto) [[unlikely]]
      cell = cell->longer.get();
    return *cell;
  }
  const Cell& cell_of(collectives::Collective collective, std::size_t bytes) const {
    return const_cast<Chooser*>(this)->cell_of(collective, bytes);
  }
  Row perform_in(Cell& cell, context::CollectiveContext& context, const collectives::Call& call) {
    if (++cell.calls == cell.event) [[unlikely]]
      return perform_slowly(context, call, cell);
    return run_chosen(context, call, cell);
  }
  static Row run_or_staged(context::CollectiveContext& context, const collectives::Call& call, Row algorithm,
                           Row staged) {
    if (collectives::run(context, *algorithm, call)) return algorithm;
    if (staged) staged->run(context, call);
    return staged;
  }
  // Runs the cell's algorithm. Buffers of one size that were out of reach will be so again: after each failure the next
  // calls, twice as many each time, do not even ask. Every call that runs the cell's algorithm comes through here, also
  // where one member alone times it: what is skipped must be equal on all.
  static Row run_chosen(context::CollectiveContext& context, const collectives::Call& call, Cell& cell) {
    if (cell.algorithm->reach == collectives::staged) [[likely]] {
      cell.algorithm->run(context, call);
      return cell.algorithm;
    }
    if (cell.staged && cell.skip > 0) {
      --cell.skip;
      cell.staged->run(context, call);
      return cell.staged;
    }
    const Row ran = run_or_staged(context, call, cell.algorithm, cell.staged);
    if (ran == cell.algorithm) cell.failures = 0;
    else cell.skip = 1u << (cell.failures = std::uint8_t(std::min(cell.failures + 1, 6)));
    return ran;
  }
  static bool row_ready(context::CollectiveContext& context, const collectives::Call& call, Row row) {
    return row->ready && row->ready(context, call);
  }
  bool event_ready(context::CollectiveContext& context, const collectives::Call& call, const Cell& cell) const;
  // Calls that are not run as those before: the first, and those of trials.
  Row perform_slowly(context::CollectiveContext& context, const collectives::Call& call, Cell& cell);
  Row run_trial(context::CollectiveContext& context, const collectives::Call& call, Cell& cell);
  void split(const collectives::Call& call, Cell& first);
  void begin(const collectives::Call& call, Cell& cell);
  Chosen choose_for(const collectives::Call& call) const;
  Atomic<std::uint32_t>* revisit(const collectives::Call& call, const Cell& cell) const;
  std::uint64_t next_watched(const Cell& cell) const;
  void watch(const collectives::Call& call, Cell& cell, std::uint64_t nanoseconds);
  void report(const collectives::Call& call, const Tried& tried) const;

  const team::Team* team_ = nullptr;
  const team::Shape& shape() const { return team_->shape(); }
  ChooserControlBlock* words_ = nullptr;  // nullptr: the team has none
  bool tries_ = false;
  std::string text_;
  Cell cells_[collectives::collective_count][64];
};

}  // namespace nearfield::choosing
