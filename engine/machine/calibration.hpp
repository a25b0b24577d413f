// Two processes measure, on memory that both have mapped, the time that bytes take from one core to another.
//
//   first    writes its array again and again, and fills copy buffers of a span in turn, by every kind of stores
//   second   copies each of them, and publishes the times
//
// All takes some milliseconds; a process whose partner does not answer in time gives up. First a line goes back and
// forth; if the first knows the times of bytes between cores at that distance, that is all.
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
  static constexpr std::size_t line = 128, array_bytes = 64 << 10;
  // ns. The line takes a tenth of a millisecond, in every job; a partner that does not answer has lost its CPU.
  static constexpr std::uint64_t patience = 20'000'000, patience_of_line = 4'000'000;
  // Shared; zero before the second learns of it.
  struct ControlBlock {
    alignas(line) Atomic<std::uint64_t> turn[2][line / 8];  // each process its own, monotone
    alignas(line) std::uint64_t ends;  // first, published by its turn: 1 if only the line is measured
    alignas(line) double copy, empty[copying::handover_kinds.size()];  // second, published by its turn; ns per byte
  };
  Calibration(ControlBlock& words, std::byte* array, std::span<std::byte> rooms)
      : words(words), array(array), rooms(rooms) {}
  ControlBlock& words;
  std::byte* array;            // shared, array_bytes
  std::span<std::byte> rooms;  // shared

  // `wanted`: returns whether bytes are to be measured, given the nanoseconds of a line. Nothing: the other did not
  // answer. If only the line was measured the other figures are 0.
  std::optional<PairCosts> first(const std::function<bool(double line)>& wanted);
  // Returns whether the first has answered until the end.
  bool second();

 private:
  bool step(int me);  // hands the turn to the other and waits until it is ours again; the second waits first
  bool end();         // second only: ends the first's last wait
  bool wait(int whom, std::uint64_t value);
  std::uint64_t steps_ = 0, until_ = 0;
};

}  // namespace nearfield::machine

namespace nearfield {
using machine::Calibration;
}
