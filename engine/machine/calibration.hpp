// What it costs that bytes change cores, measured by two processes on memory that both have mapped.
//
//   first    hands over its array by writing it again and again, and rooms of a span by age, by every kind of stores
//   second   copies each of them, and tells how long that took
//
// Some milliseconds in all; whoever is not answered in time gives up. First a line goes back and forth, and where the
// first knows what a byte costs between cores so far apart, that is all.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "engine/base/atomic.hpp"
#include "engine/copying/handover.hpp"
#include "engine/machine/machine.hpp"

namespace nearfield {

class Calibration {
 public:
  static constexpr std::size_t line = 128, array_bytes = 64 << 10;
  // ns. The line takes a tenth of a millisecond, in every job; who is not answered has lost its CPU to others.
  static constexpr std::uint64_t patience = 20'000'000, patience_of_line = 4'000'000;
  // Shared; zero before it is told to the second.
  struct ControlBlock {
    alignas(line) Atomic<std::uint64_t> turn[2][line / 8];  // each its own, monotone; pair with each other's wait
    alignas(line) std::uint64_t ends;                       // first, published by its turn: the line was all
    alignas(line) double copy, empty[copying::handover_kinds.size()];  // second, published by its turn; ns per byte
  };
  Calibration(ControlBlock& words, std::byte* array, std::span<std::byte> rooms)
      : words(words), array(array), rooms(rooms) {}
  ControlBlock& words;
  std::byte* array;            // shared, array_bytes
  std::span<std::byte> rooms;  // shared

  // `wanted`: whether bytes are to be measured, where a line takes so many nanoseconds. Nothing: the other did not
  // answer. Where only the line was measured the other figures are 0.
  std::optional<Handing> first(const std::function<bool(double line)>& wanted);
  // Whether the first has answered until the end.
  bool second();

 private:
  bool step(int me);  // hands the turn to the other and waits until it is ours again; the second waits first
  bool end();         // of the second, to whom nothing is handed any more
  bool wait(int whom, std::uint64_t value);
  std::uint64_t steps_ = 0, until_ = 0;
};

}  // namespace nearfield
