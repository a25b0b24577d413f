// Two processes measure, on memory that both have mapped, the time that bytes take from one core to another.
//
//   first    writes an array again and again, and fills copy buffers of a span in turn, by every kind of stores
//   second   copies each of them, and publishes the times
//
// First a line goes back and forth, which takes a tenth of a millisecond. If the first process knows the times of bytes
// between cores at that distance, that is all. Otherwise it allocates memory for what is drawn above, which takes some
// milliseconds. A process whose partner does not answer in time gives up.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "engine/base/atomic.hpp"
#include "engine/copying/handover.hpp"
#include "engine/machine/machine.hpp"

namespace nearfield::machine {

class Calibration {
 public:
  static constexpr std::size_t line = 128, piece = 64 << 10;
  // ns. The line takes a tenth of a millisecond, in every job; a partner that does not answer has lost its CPU.
  static constexpr std::uint64_t patience = 20'000'000, patience_of_line = 4'000'000;
  // Shared; zero before the second learns of it.
  struct ControlBlock {
    alignas(line) Atomic<std::uint64_t> turn[2][line / 8];  // each process its own, monotone
    // First, published by its turn: offset from `base`, and length, of the memory for the rest; 0 bytes: only the line
    // is measured.
    alignas(line) std::uint64_t offset, bytes;
    alignas(line) double copy, empty[copying::handover_kinds.size()];  // second, published by its turn; ns per byte
  };
  // `base`: where the caller has mapped the segment that both have mapped.
  Calibration(ControlBlock& words, std::byte* base) : words_(words), base_(base) {}

  // `memory`: given the nanoseconds of a line, returns shared memory of a piece or more for each kind of stores; or
  // nothing, if only the line is to be measured, and then the other figures are 0. first() returns nothing if the other
  // process did not answer.
  std::optional<PairCosts> first(const std::function<std::span<std::byte>(double line)>& memory);
  // Returns whether the first has answered until the end.
  bool second();

 private:
  bool step(int me);  // hands the turn to the other and waits until it is ours again; the second waits first
  bool end();         // second only: ends the first's last wait
  bool wait(int whom, std::uint64_t value);
  ControlBlock& words_;
  std::byte* const base_;
  std::uint64_t steps_ = 0, until_ = 0;
};

}  // namespace nearfield::machine

namespace nearfield {
using machine::Calibration;
}
