// What has been chosen for the calls of a communicator over several nodes: by the model and by measurement
// (tuning/selector.hpp), in which the host's own algorithm takes part.
//
// Floating-point results must not depend on who was faster: all rows but the host's combine in the same order, and the
// host's is no candidate for such types.
#pragma once
#include <memory>

#include "engine/hierarchy/rows.hpp"
#include "engine/tuning/selector.hpp"

namespace nearfield::hierarchy {

// Empty when the text of an override can be honoured, else what is wrong and which names there are.
std::string complain_about(std::string_view override_text);

class HierarchyChooser {
 public:
  HierarchyChooser();  // throws std::bad_alloc
  void serve(Choosing choosing, std::string_view text) {
    tries_ = choosing == Choosing::trial;
    text_ = text;
  }
  // Another override, from the next call on; on all ranks at the same call.
  void override_with(std::string_view text) {
    text_ = text;
    begin_anew();
  }
  void begin_anew();  // as with the first call

  // Chooses and runs; `host` is the host's own. nullptr where it was that. Throws what waits throw.
  const HierarchyAlgorithm* perform(Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host);

 private:
  struct Cell {
    std::uint64_t calls = 0;
    const HierarchyAlgorithm* row = nullptr;
    std::vector<const HierarchyAlgorithm*> rows;  // that are compared
    std::unique_ptr<tuning::Selector> selector;
  };
  // Of each class of lengths; reductions whose result depends on the order of operands are a class of their own.
  struct Cells {
    Cell cell[collectives::collective_count][64][2];
  };
  void begin(const Hierarchy& hierarchy, const Call& call, Cell& cell);
  std::unique_ptr<Cells> cells_;
  std::string text_;
  bool tries_ = true;
};

}  // namespace nearfield::hierarchy
