// The first two members of a process's first team find out how far apart they are, and what bytes cost between such
// cores where nobody has stored it yet. The first one owns what they need, and tells where it lies in its Hello.
#pragma once
#include "engine/machine/calibration.hpp"
#include "engine/team/process.hpp"

namespace nearfield::creation {

class Calibrating {
 public:
  struct Told {
    std::uint64_t words = 0;  // offset in the first member's segment; 0: nothing is to be measured
    std::uint64_t rooms = 0, room_bytes = 0;
  };
  // What is lacking, memory above all, means that nothing is measured.
  Calibrating(team::Process& process, int rank, int size) noexcept;
  ~Calibrating();
  Calibrating(const Calibrating&) = delete;
  // That the first member of a job holds meanwhile.
  static std::size_t bytes();
  const Told& told() const { return told_; }

  // By the first two members; the first one's segment begins at `base`. What the first has found; `line` 0: nothing.
  Handing run(int rank, const Told& told, std::byte* base);

 private:
  team::Process& process_;
  Told told_;
};

}  // namespace nearfield::creation
