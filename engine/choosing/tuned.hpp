// What `nearfield tune` has found: a TOML file that NEARFIELD_CHOOSE=file loads.
//
//   [machine]                     where it was measured; for people
//   [[cell]]
//   op = "alltoall"
//   ranks = 8
//   bytes = 4096                  the class of lengths that ends here
//   algorithm = "pull-rotated"    the fastest
//   staged = "rounds"             the fastest of those that need no reach
//
// The first member of a communicator reads it and publishes its rows (ChooserControlBlock::tuned), since files may
// differ by node.
#pragma once
#include <string>

#include <cstdint>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/collectives/call.hpp"

namespace nearfield::choosing {

class Tuned {
 public:
  // An Error names a cell that cannot be understood, and what there is instead.
  static Result<Tuned> read(const std::string& path);

  // Fills in the rows found with the number of ranks nearest to `size`, if that is within a factor of 1.5 of it.
  void fill_in(int size, std::uint8_t (&rows)[collectives::collective_count][64][2]) const;

 private:
  struct Cell {
    collectives::Collective collective;
    int ranks;
    unsigned size_class;
    std::uint8_t row[2];  // of the collective's table + 1, 0: none
  };
  std::vector<Cell> cells_;
};

}  // namespace nearfield::choosing
