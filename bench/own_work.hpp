// What a program does with its buffers around each call.
#pragma once
#include <algorithm>
#include <numeric>
#include <string>

#include "bench/operations.hpp"

namespace bench {

// warm, cold: nothing. modified: writes what it sends, before. used: that, and reads what it has got, afterwards.
class OwnWork {
 public:
  OwnWork(const std::string& op, std::size_t bytes, const std::string& buffers)
      : written_(buffers == "modified" || buffers == "used" ? sent(op, bytes) : 0),
        read_(buffers == "used" ? received(op, bytes) : 0),
        reads_sent_(op == "bcast") {}
  bool any() const { return written_ || read_; }

  void before(Buffers& buffers, long nth) const {
    std::fill_n(buffers.send.data(), (written_ + 7) / 8, double(nth & 7));
    asm volatile("" ::: "memory");
  }
  void after(Buffers& buffers) const {
    const double* const from = reads_sent_ ? buffers.send.data() : buffers.recv.data();
    double sums[8] = {};  // one would take as long as its additions
    for (std::size_t i = 0; i + 8 <= read_ / 8; i += 8)
      for (std::size_t k = 0; k < 8; ++k) sums[k] += from[i + k];
    const volatile double sum = std::accumulate(sums, sums + 8, 0.0);
    static_cast<void>(sum);
  }

 private:
  // Bytes that this rank sends in one call, and gets.
  static std::size_t sent(const std::string& op, std::size_t bytes) {
    if (op.starts_with("alltoall") || op == "reduce_scatter_block") return bytes * std::size_t(size);
    if (op == "scatter") return rank == 0 ? bytes * std::size_t(size) : 0;
    if (op == "bcast") return rank == 0 ? bytes : 0;
    return bytes;
  }
  static std::size_t received(const std::string& op, std::size_t bytes) {
    if (op.starts_with("alltoall") || op == "allgather") return bytes * std::size_t(size);
    if (op == "gather") return rank == 0 ? bytes * std::size_t(size) : 0;
    if (op == "reduce") return rank == 0 ? bytes : 0;
    if (op == "bcast") return rank == 0 ? 0 : bytes;
    return bytes;
  }

  std::size_t written_, read_;
  bool reads_sent_;
};

}  // namespace bench
