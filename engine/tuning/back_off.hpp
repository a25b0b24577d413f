// The one back-off: what fails again and again is tried again after a pause that doubles each time.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/tuning/constants.hpp"

namespace nearfield::tuning {

class BackOff {
 public:
  // The pause after one more failure: `first`, then twice the one before, `most` at most.
  std::uint64_t lengthen(std::uint64_t first, std::uint64_t most) {
    const std::uint64_t pause = std::min(first << failures_, most);
    failures_ = pause < most ? std::uint8_t(failures_ + 1) : failures_;
    return pause;
  }
  void reset() { failures_ = 0; }

 private:
  std::uint8_t failures_ = 0;
};

// Calls that do not even ask for what has failed.
class Skips {
 public:
  bool pending() const { return left_ > 0; }
  // Whether this call does not ask.
  bool skip() { return left_ && left_--; }
  void failed() { left_ = std::uint8_t(back_off_.lengthen(constants::skips_first, constants::skips_most)); }
  void worked() { back_off_.reset(); }

 private:
  std::uint8_t left_ = 0;
  BackOff back_off_;
};

}  // namespace nearfield::tuning
