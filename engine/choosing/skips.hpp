// Calls that do not even ask whether buffers are in reach, since those of their cell were not.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nearfield::choosing {

class Skips {
 public:
  bool pending() const { return left_ > 0; }
  // Whether this call does not ask.
  bool skip() { return left_ && left_--; }
  // Twice as many skip after each further failure.
  void failed() {
    const unsigned calls = 2u << failures_;
    left_ = std::uint8_t(std::min(calls, most));
    failures_ += calls < most;
  }
  void worked() { failures_ = 0; }

 private:
  static constexpr unsigned most = 64;
  std::uint8_t left_ = 0, failures_ = 0;
};

}  // namespace nearfield::choosing
