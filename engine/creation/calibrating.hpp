// The first two members of a process's first team measure a line between their cores, and the times of bytes if none
// are stored for such cores. The first one owns the memory, and its Hello says where it lies.
#pragma once
#include "engine/machine/calibration.hpp"
#include "engine/team/process.hpp"

namespace nearfield::creation {

class Calibrating {
 public:
  struct Area {
    std::uint64_t words = 0;  // offset in the first member's segment; 0: nothing is to be measured
    std::uint64_t rooms = 0, room_bytes = 0;
  };
  // Without memory nothing is measured.
  Calibrating(team::Process& process, int rank, int size) noexcept;
  ~Calibrating();
  Calibrating(const Calibrating&) = delete;
  // Returns the bytes that the first member of a job holds meanwhile.
  static std::size_t bytes();
  const Area& area() const { return area_; }

  // Called by the first two members; `base`: the first one's segment. Returns the first one's figures; `line` 0: none.
  PairCosts run(int rank, const Area& area, std::byte* base);

 private:
  team::Process& process_;
  Area area_;
};

}  // namespace nearfield::creation
