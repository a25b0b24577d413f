// Maps our indices into those of the host, which may grow while the program runs (components that are opened,
// MPI_Init); an index must never change. Ours begin where the host's ended at the first query; later ones of the host
// lie behind ours:
//
//     0 ... base - 1 | base ... base + ours - 1 | base + ours ...
//     the host's     | ours                     | the host's from base on
//
// Thread-safe.
#pragma once
#include <algorithm>
#include <atomic>

namespace nearfield::mpi::tools {

class Appended {
 public:
  explicit constexpr Appended(int ours) : ours_(ours) {}

  bool fixed() const { return base() >= 0; }
  // `hosts`: the host's present number of indices. Only the first call has an effect.
  void fix(int hosts) {
    int none = -1;
    base_.compare_exchange_strong(none, hosts, std::memory_order_relaxed);
  }
  void forget() { base_.store(-1, std::memory_order_relaxed); }

  // pre of all below: fixed().
  int number(int hosts) const { return std::max(hosts, base()) + ours_; }
  int ours() const { return ours_; }
  bool is_ours(int index) const { return index >= base() && index - base() < ours_; }
  int own(int index) const { return index - base(); }  // pre: is_ours(index)
  int of_own(int row) const { return base() + row; }
  int to_host(int index) const { return index < base() ? index : index - ours_; }  // pre: !is_ours(index)
  int from_host(int index) const { return index < base() ? index : index + ours_; }

 private:
  int base() const { return base_.load(std::memory_order_relaxed); }
  const int ours_;
  std::atomic<int> base_{-1};
};

}  // namespace nearfield::mpi::tools
