// Calls that do not even ask whether buffers are in reach, since those of their cell were not.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/tuning/constants.hpp"

namespace nearfield::choosing {

class Skips {
 public:
  bool pending() const { return left_ > 0; }
  // Whether this call does not ask.
  bool skip() { return left_ && left_--; }
  // Twice as many skip after each further failure.
  void failed() {
    const unsigned calls = unsigned(tuning::constants::skips_first) << failures_;
    left_ = std::uint8_t(std::min<unsigned>(calls, tuning::constants::skips_most));
    failures_ += calls < tuning::constants::skips_most;
  }
  void worked() { failures_ = 0; }

 private:
  std::uint8_t left_ = 0, failures_ = 0;
};

}  // namespace nearfield::choosing
