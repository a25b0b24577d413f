// Counts the calls that do not exchange buffers, because buffers of an earlier call of the same cell were out of reach.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nearfield::choosing {

class Skips {
 public:
  bool pending() const { return left_ > 0; }
  // Returns whether this call skips the exchange.
  bool skip() { return left_ && left_--; }
  // Each further failure doubles the number of calls that skip, up to `most`.
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
