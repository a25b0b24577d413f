// Chooses rows for the calls of a communicator over several nodes: by the model and by trials (tuning/selector.hpp), in
// which the host's own algorithm takes part.
//
// Floating-point results must not depend on which row was faster. So for such types only rows that combine in the same
// order are compared: not the host's, and not in-order, which is the only one if Hierarchy::reproducible.
#pragma once
#include <memory>

#include "engine/hierarchy/rows.hpp"
#include "engine/tuning/selector.hpp"

namespace nearfield::hierarchy {

// Returns what is wrong with an override and which names are valid; empty: it is valid.
std::string complain_about(std::string_view override_text);

class HierarchyChooser {
 public:
  HierarchyChooser();  // throws std::bad_alloc
  void serve(Choosing choosing, std::string_view text) {
    tries_ = choosing == Choosing::trial;
    text_ = text;
  }
  // Sets another override from the next call on. All ranks call it between the same calls.
  void override_with(std::string_view text) {
    text_ = text;
    begin_anew();
  }
  void begin_anew();  // forgets what has been chosen

  // Chooses a row, runs it and returns it; nullptr: it was the host's own, `host`. Throws what waits throw.
  const HierarchyAlgorithm* perform(Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host);

 private:
  struct Cell {
    std::uint64_t calls = 0;
    const HierarchyAlgorithm* row = nullptr;
    std::vector<const HierarchyAlgorithm*> rows;  // the rows that are compared
    std::unique_ptr<tuning::Selector> selector;
  };
  // One for each class of lengths, and another one for reductions whose result depends on the order of operands.
  struct Cells {
    Cell cell[collectives::collective_count][64][2];
  };
  void begin(const Hierarchy& hierarchy, const Call& call, Cell& cell);
  std::unique_ptr<Cells> cells_;
  std::string text_;
  bool tries_ = true;
};

}  // namespace nearfield::hierarchy
