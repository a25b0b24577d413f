// The rows chosen for the calls of one context: by the model, by a file, and by measurement (tuning/selector.hpp), on
// which all members agree.
//
// A cell is a class of lengths of one collective; where a row applies to a part of a class only, the class has a cell
// for each part. So whatever a cell has chosen applies to all its calls.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/choosing/choose.hpp"
#include "engine/choosing/skips.hpp"
#include "engine/tuning/lengths.hpp"
#include "engine/tuning/selector.hpp"

namespace nearfield::choosing {

// The first member of a team publishes this in the team's shared configuration.
struct ChooserControlBlock {
  Choosing choosing;    // NEARFIELD_CHOOSE
  char algorithm[512];  // NEARFIELD_ALGORITHM
  // Rows of a tuning file (tuned.hpp), by collective and class of lengths; index in the table + 1, 0: none. [0] is the
  // fastest, [1] the fastest that needs no reach.
  std::uint8_t tuned[collectives::collective_count][64][2];
};

// Bytes that the first member of every team keeps.
inline constexpr std::size_t shared_configuration_bytes = sizeof(ChooserControlBlock);

// Makes the teams of a process keep a ChooserControlBlock. `tuned`: for NEARFIELD_CHOOSE=file.
class Tuned;
class TeamServices : public team::Services {
 public:
  explicit TeamServices(std::unique_ptr<const Tuned> tuned = nullptr);
  ~TeamServices() override;
  std::string describe(std::uint64_t doing) const override { return collectives::describe_call(doing); }
  std::uint64_t length_of_doing() const override { return collectives::packed_length; }
  std::size_t configuration_bytes() const override { return shared_configuration_bytes; }
  void begin_configuration(const Settings& settings, std::byte* room, int size) const override;

 private:
  std::unique_ptr<const Tuned> tuned_;
};

class Chooser {
 public:
  // Allocates what serve() needs, since serve() runs after the members have agreed on the team and may not fail. Throws
  // std::bad_alloc.
  Chooser();
  // `tries`: whether this context's calls do not overlap others, so that their times can be compared.
  void serve(const team::Team& team, bool tries = true);

  // Chooses an algorithm, runs it and returns it; nullptr: none applies, on all members alike, and nothing has been
  // moved. All of `call` but addresses must be equal on all members. Throws what waits throw.
  const collectives::Algorithm* perform(context::CollectiveContext& context, const collectives::Call& call) {
    return perform_in(cell_of(call.collective, call.bytes), context, call);
  }

  // The same for a member that only sends data, if it can do its part without waiting for late members, which it gives
  // some time. False: nothing has been done.
  bool perform_if_ready(context::CollectiveContext& context, const collectives::Call& call,
                        const collectives::Algorithm*& ran) {
    Cell& cell = cell_of(call.collective, call.bytes);
    const bool ready = cell.calls + 1 == cell.event ? event_ready(context, call, cell)
                                                    : row_ready(context, call, cell.rows.next(cell.skips));
    if (ready) [[likely]]
      ran = perform_in(cell, context, call);
    return ready;
  }

  // The row for a call, and the row that replaces it where buffers are out of reach; nullptr: none applies. Equal on
  // all members that have made the same calls.
  struct Rows {
    const collectives::Algorithm *row = nullptr, *staged = nullptr;
    // Returns the row that has run the call; nullptr: none could.
    const collectives::Algorithm* run(context::CollectiveContext& context, const collectives::Call& call) const {
      if (collectives::run(context, *row, call)) return row;
      if (staged) staged->run(context, call);
      return staged;
    }
    // The same for repeated calls: after one whose buffers were out of reach, the next ones run `staged` at once
    // (skips.hpp). Every call by the chosen rows comes through here, also one that only this member times, since all
    // members must skip alike.
    const collectives::Algorithm* run(context::CollectiveContext& context, const collectives::Call& call,
                                      Skips& skips) const {
      if (row->reach == collectives::staged) [[likely]] {
        row->run(context, call);
        return row;
      }
      if (staged && skips.skip()) {
        staged->run(context, call);
        return staged;
      }
      const collectives::Algorithm* const ran = run(context, call);
      if (ran == row) skips.worked();
      else skips.failed();
      return ran;
    }
    const collectives::Algorithm* next(const Skips& skips) const { return staged && skips.pending() ? staged : row; }
  };
  Rows rows_for(const collectives::Call& call) const;

  // Sets another override from the next call on. All members call it between the same calls.
  void override_with(std::string_view text);
  const std::string& override_text() const { return text_; }

  // Returns the selector that compares rows for a length; nullptr: none.
  const tuning::Selector* selector_of(collectives::Collective collective, std::size_t bytes) const;

 private:
  using Row = const collectives::Algorithm*;
  struct Measured {
    std::vector<Row> rows;
    tuning::Selector selector;
  };
  // It fills one cache line, the only one that most calls read.
  struct alignas(64) Cell {
    std::uint64_t calls = 0, event = 1;  // event: number of the next call for perform_slowly(), 0: none
    std::size_t upto = ~std::size_t{0};  // bytes of the longest call of this part
    Rows rows;
    Skips skips;
    bool first = true;                   // it is the first part of its class
    std::unique_ptr<Measured> measured;  // the rows that are compared
    std::unique_ptr<Cell> longer;        // next part of the class
  };
  Cell& cell_of(collectives::Collective collective, std::size_t bytes) {
    Cell* cell = &cells_[std::size_t(collective)][tuning::size_class(bytes)];
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
    return cell.rows.run(context, call, cell.skips);
  }
  static bool row_ready(context::CollectiveContext& context, const collectives::Call& call, Row row) {
    return row->run.ready && row->run.ready(context, call);
  }
  bool event_ready(context::CollectiveContext& context, const collectives::Call& call, const Cell& cell) const;
  // Runs the first call of a cell, and the calls of trials.
  Row perform_slowly(context::CollectiveContext& context, const collectives::Call& call, Cell& cell);
  Row run_measured(context::CollectiveContext& context, const collectives::Call& call, Cell& cell);
  void split(const collectives::Call& call, Cell& first);
  void begin(const collectives::Call& call, Cell& cell);
  Chosen choose_for(const collectives::Call& call) const;
  void report(const collectives::Call& call, const Measured& measured) const;

  const team::Team* team_ = nullptr;
  const team::Shape& shape() const { return team_->shape(); }
  ChooserControlBlock* words_ = nullptr;  // nullptr: the team has none
  bool tries_ = false;
  std::string text_;
  Cell cells_[collectives::collective_count][64];
};

}  // namespace nearfield::choosing
