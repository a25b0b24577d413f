// Where operations send from and receive to.
#pragma once
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <type_traits>

#include "bench/ranks.hpp"

namespace bench {

// An array as a program has it. `as_without_heap`: where the C library takes large blocks, anonymous pages; shorter
// ones are malloc's in either case.
class Array {
 public:
  Array(std::size_t doubles, bool as_without_heap) : count_(doubles) {
    owned_ = as_without_heap && doubles * 8 >= 32 << 10 ? mapped : allocated;
    at_ = static_cast<double*>(
        owned_ == mapped ? mmap(nullptr, doubles * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                         : std::calloc(doubles, 8));
    if (!at_ || at_ == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 4);
  }
  explicit Array(double* elsewhere) : at_(elsewhere) {}
  Array(const Array&) = delete;
  ~Array() {
    if (owned_ == mapped) munmap(at_, count_ * 8);
    if (owned_ == allocated) std::free(at_);
  }
  double* data() { return at_; }

 private:
  double* at_;
  std::size_t count_ = 0;
  enum { nothing, allocated, mapped } owned_ = nothing;
};

// Places for `longest` bytes to send and to receive: one, or as many as 64 MiB hold, used in a scattered order that
// prefetchers do not follow and in which each is used once before any is used again.
struct Buffers {
  std::size_t stride, places, next = 0;
  Array send, recv;

  Buffers(std::size_t longest, bool cold, bool as_without_heap)
      : stride((longest + 63) / 64 * 8),
        places(cold ? std::bit_floor(std::max<std::size_t>((64u << 20) / (stride * 8), 2)) : 1),
        send(stride * places, as_without_heap),
        recv(stride * places, as_without_heap) {}
  Buffers(std::size_t longest, double* send_at, double* recv_at)
      : stride((longest + 63) / 64 * 8), places(1), send(send_at), recv(recv_at) {}

  std::size_t step() { return (next++ * 0x9E3779B1u & (places - 1)) * stride; }  // odd factor: a permutation
};

// Values that differ by place and rank, and whose sums are exact.
inline void fill(double* where, std::size_t bytes, MPI_Datatype type) {
  auto put = [&](auto* to, std::size_t modulus) {
    for (std::size_t i = 0; i < bytes / sizeof *to; ++i)
      to[i] = std::remove_reference_t<decltype(*to)>((i * 31 + (i >> 8) * 7 + std::size_t(rank) * 17) % modulus);
  };
  if (type == MPI_DOUBLE) put(where, 1009);
  else if (type == MPI_INT) put(reinterpret_cast<int*>(where), 1009);
  else put(reinterpret_cast<unsigned char*>(where), 251);
}

}  // namespace bench
