// What a program does with its buffers around each call.
//
// warm, cold: nothing. modified: it writes what it sends, before. used: that, and it reads what it has got, afterwards.
// What this takes on buffers in the rank's own caches is measured alone and subtracted: whatever it takes longer after
// a call, since the call left the lines elsewhere, is the call's.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "bench/ranks.hpp"

namespace bench {

// What an operation with `bytes` in a vector or block sends from this rank, and brings it, in one call.
struct Traffic {
  std::size_t sent, received;
};

class OwnWork {
 public:
  // Nothing is done.
  OwnWork() = default;
  // `in_place`: what arrives lies where the others send from. `in_turn`: ranks work one after the other, so that a call
  // waits for so many ranks' work.
  OwnWork(Traffic traffic, const std::string& buffers, bool in_place, int in_turn)
      : written_(buffers == "modified" || buffers == "used" ? traffic.sent : 0),
        read_(buffers == "used" ? traffic.received : 0),
        in_place_(in_place),
        in_turn_(in_turn) {}

  void write(double* send) {
    if (!written_) return;
    std::fill_n(send, (written_ + 7) / 8, double(nth_++ & 7));
    asm volatile("" ::: "memory");
  }
  void read(const double* send, const double* recv) const {
    if (!read_) return;
    const double* const from = in_place_ ? send : recv;
    double sums[8] = {};  // one would take as long as its additions
    const std::size_t n = (read_ + 7) / 8;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (std::size_t k = 0; k < 8; ++k) sums[k] += from[i + k];
    for (; i < n; ++i) sums[0] += from[i];
    const volatile double sum = std::accumulate(sums, sums + 8, 0.0);
    static_cast<void>(sum);
  }

  // Seconds of one call's share, alone: the quickest of some repetitions, since an interruption would be subtracted
  // from calls that had none.
  double alone(double* send, const double* recv, long calls) {
    if (!written_ && !read_) return 0;
    const long repetitions = std::clamp(calls, 2L, 8L), each = std::max(1L, calls / 16);
    double best = 1e9;
    for (long k = 0; k <= repetitions; ++k) {
      const double start = MPI_Wtime();
      for (long i = 0; i < each; ++i) write(send), read(send, recv);
      if (k) best = std::min(best, (MPI_Wtime() - start) / double(each));  // the first one fetches the lines
    }
    return best * in_turn_;
  }

 private:
  std::size_t written_ = 0, read_ = 0;
  bool in_place_ = false;
  int in_turn_ = 1;
  unsigned nth_ = 0;
};

}  // namespace bench
