// The first two members of a process's first team measure how long a cache line takes from one of their cores to the
// other, and what copies between them cost if no such figures are stored for cores at that distance. The first member
// owns the memory for that.
#pragma once
#include "engine/machine/calibration.hpp"
#include "engine/team/process.hpp"

namespace nearfield::creation {

class Calibrating {
 public:
  // Lies in the first member's block.
  struct ControlBlock {
    std::uint64_t wanted;  // first, before it publishes its Hello: 1: the two measure
    Calibration::ControlBlock words;
  };
  explicit Calibrating(team::Process& process) : process_(process) {}
  // Gives the memory back. pre: the second has returned from run().
  ~Calibrating();
  Calibrating(const Calibrating&) = delete;

  // Called by the first member of `size`.
  bool is_wanted(int size) const;
  // Called by the first two members. `base`: the first one's segment. Returns figures on the first; `line` 0: none.
  PairCosts run(int rank, ControlBlock& control, std::byte* base);

 private:
  std::span<std::byte> take_memory();
  team::Process& process_;
  std::size_t offset_ = 0, bytes_ = 0;  // of the memory, in copy buffers; 0: there is none
};

}  // namespace nearfield::creation
