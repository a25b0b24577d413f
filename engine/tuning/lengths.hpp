// Classes of lengths, each with a choice of its own: class k holds the lengths from 2^(k-1) + 1 to 2^k.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace nearfield::tuning {

constexpr unsigned size_class(std::size_t bytes) { return bytes > 1 ? unsigned(std::bit_width(bytes - 1)) & 63 : 0; }

// A Cell for each of `count` classes: the first holds all lengths up to 2^first, the last one all longer than the
// others.
template <class Cell, unsigned first, std::size_t count>
class ByLength {
 public:
  static constexpr std::size_t class_of(std::size_t bytes) {
    const unsigned each = size_class(bytes);
    return std::min<std::size_t>(each > first ? each - first : 0, count - 1);
  }
  Cell& operator[](std::size_t bytes) { return cell_[class_of(bytes)]; }
  const Cell& operator[](std::size_t bytes) const { return cell_[class_of(bytes)]; }

 private:
  std::array<Cell, count> cell_{};
};

}  // namespace nearfield::tuning
