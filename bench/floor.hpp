// The floor: the same operations by bare code on memory that all ranks have mapped, one flag per rank and no library.
// What Nearfield takes beyond it is what Nearfield costs. Only for lengths where the floor is known to be one: large
// ones, and small ones of operations in which everybody waits for everybody.
#pragma once
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace bench {

class Floor {
 public:
  struct alignas(128) Flag {
    std::atomic<long> round;  // one writer each; rank 0's is the gate where ranks share CPUs
  };
  // Bytes of shared memory for `size` ranks with `longest` bytes to send and to receive.
  static std::size_t bytes(int size, std::size_t longest) {
    return std::size_t(size) * (sizeof(Flag) + 2 * room(longest));
  }

  // `memory`: zeroed, shared by all ranks.
  Floor(std::byte* memory, int rank, int size, std::size_t longest, bool crowded)
      : flags_(reinterpret_cast<Flag*>(memory)), rank_(rank), size_(size), crowded_(crowded) {
    std::byte* const data = memory + std::size_t(size) * sizeof(Flag);
    for (int r = 0; r < size; ++r) {
      send_.push_back(data + std::size_t(r) * 2 * room(longest));
      recv_.push_back(send_.back() + room(longest));
    }
    std::memset(send_[std::size_t(rank)], 0, room(longest));
    std::memset(recv_[std::size_t(rank)], 0, room(longest));
  }

  // Empty where no floor is known.
  std::function<void()> operation(const std::string& op, std::size_t n) {
    const auto me = std::size_t(rank_), p = std::size_t(size_);
    if (op == "barrier") return [this] { meet(); };
    const bool small = n <= 4096;
    if (op == "allreduce" && small)
      return [=, this] {  // send_ is the slot, two in turn
        std::byte* const slot = send_[me] + (++turn_ & 1) * n;
        std::memcpy(slot, own_, n);
        meet();
        reduce({me, me + 1}, 0, n / 8, (turn_ & 1) * n);
      };
    if ((op == "allgather" || (op == "alltoall" && n * p <= 4096)) && small)
      return [=, this] {
        const std::size_t block = op == "allgather" ? n : n * p, from = op == "allgather" ? 0 : me * n;
        const std::size_t at = (++turn_ & 1) * block;
        std::memcpy(send_[me] + at, own_, block);
        meet();
        for (std::size_t r = 0; r < p; ++r) std::memcpy(recv_[me] + r * n, send_[r] + at + from, n);
      };
    if (n < 8192) return {};
    std::function<void()> work;
    const std::size_t d = n / 8, begin = me * d / p, end = (me + 1) * d / p;
    if (op == "allreduce") work = [=, this] { reduce({0, p}, begin, end, 0); };
    if (op == "reduce") work = [=, this] { reduce({0, 1}, begin, end, 0); };
    if (op == "reduce_scatter_block") work = [=, this] { reduce({me, me + 1}, 0, d, me * n); };
    if (op == "bcast")
      work = [=, this] {
        const std::size_t mine = n - n / p / 64 * 64;  // the root copies the rest to everybody
        if (me) std::memcpy(recv_[me], send_[0], mine);
        else
          for (std::size_t r = 1; r < p; ++r) std::memcpy(recv_[r] + mine, send_[0] + mine, n - mine);
      };
    if (op == "gather") work = [=, this] { std::memcpy(recv_[0] + me * n, send_[me], n); };
    if (op == "scatter") work = [=, this] { std::memcpy(recv_[me], send_[0] + me * n, n); };
    if (op == "allgather" || op == "alltoall")
      work = [=, this] {
        for (std::size_t i = 0; i < p; ++i) {
          const std::size_t r = (me + i) % p;
          std::memcpy(recv_[me] + r * n, send_[r] + (op == "alltoall" ? me * n : 0), n);
        }
      };
    return [this, work] {
      meet();
      work();
      meet();
    };
  }

 private:
  static std::size_t room(std::size_t longest) { return (longest < 8192 ? 8192 : longest + 4095) / 4096 * 4096; }

  void meet() {
    ++rounds_;
    if (crowded_) {
      std::atomic<long>& gate = flags_[0].round;
      if (gate.fetch_add(1, std::memory_order_acq_rel) + 1 == rounds_ * size_) return;
      while (gate.load(std::memory_order_acquire) < rounds_ * size_) sched_yield();
      return;
    }
    flags_[rank_].round.store(rounds_, std::memory_order_release);  // pairs with the loads below, in the others
    for (int r = 0; r < size_; ++r)
      while (flags_[r].round.load(std::memory_order_acquire) < rounds_) __builtin_ia32_pause();
  }

  // Doubles [begin, end) of all send arrays, summed into the receive arrays of ranks [to.first, to.last).
  struct Ranks {
    std::size_t first, last;
  };
  void reduce(Ranks to, std::size_t begin, std::size_t end, std::size_t offset) {
    constexpr std::size_t block = 512;
    double sum[block];
    for (std::size_t i = begin; i < end; i += block) {
      const std::size_t m = end - i < block ? end - i : block;
      auto in = [&](int r) { return reinterpret_cast<const double*>(send_[std::size_t(r)] + offset) + i; };
      std::memcpy(sum, in(0), m * 8);
      for (int r = 1; r < size_; ++r)
        for (std::size_t j = 0; j < m; ++j) sum[j] += in(r)[j];
      for (std::size_t r = to.first; r < to.last; ++r) std::memcpy(recv_[r] + i * 8, sum, m * 8);
    }
  }

  Flag* flags_;
  int rank_, size_;
  bool crowded_;
  long rounds_ = 0;
  unsigned turn_ = 0;
  std::byte own_[4096] = {};
  std::vector<std::byte*> send_, recv_;
};

}  // namespace bench
