// What is measured: operations by name on buffers of a kind.
#pragma once
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace bench {

inline MPI_Comm comm;  // all operations are called on it
inline int rank, size;

inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

// Places for `longest` bytes to send and to receive: one, or as many as 64 MiB hold, used in a scattered order that
// prefetchers do not follow and in which each is used once before any is used again.
struct Array {
  double* at = nullptr;
  std::size_t count = 0;
  bool ordinary = false;
  void allocate(std::size_t doubles, bool as_without_heap) {
    count = doubles;
    ordinary = as_without_heap && doubles * 8 >= 32 << 10;  // shorter ones are malloc's in either case
    at = static_cast<double*>(
        ordinary ? mmap(nullptr, doubles * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                 : std::calloc(doubles, 8));
    if (!at || at == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 4);
  }
  ~Array() {
    if (ordinary) munmap(at, count * 8);
    else std::free(at);
  }
  double* data() { return at; }
};

struct Buffers {
  Array send, recv;
  std::size_t stride, places = 1, next = 0;

  Buffers(std::size_t longest, bool cold, bool plain) : stride((longest + 63) / 64 * 8) {
    constexpr std::size_t beyond_cache = 64u << 20;
    if (cold) places = std::bit_floor(std::max<std::size_t>(beyond_cache / (stride * 8), 2));
    send.allocate(stride * places, plain);
    recv.allocate(stride * places, plain);
  }

  std::size_t step() { return (next++ * 0x9E3779B1u & (places - 1)) * stride; }  // odd factor: a permutation
};

using Operation = std::function<void(double* send, double* recv)>;

// ---------------------------------------------------------------- point to point

inline constexpr int window = 64;  // messages under way at once, as in other benchmarks of bandwidth

// Ranks in pairs: the first with the one in the middle, and so on. Operations of one pair leave the others out.
inline int partner(bool all_pairs) {
  const int half = size / 2;
  if (all_pairs) return rank < half ? rank + half : rank < 2 * half ? rank - half : -1;
  return rank < 2 && size > 1 ? 1 - rank : -1;
}

inline void ping_pong(const void* s, void* r, int count, MPI_Datatype type, int peer) {
  if (peer > rank) MPI_Send(s, count, type, peer, 1, comm);
  if (peer >= 0) MPI_Recv(r, count, type, peer, 1, comm, MPI_STATUS_IGNORE);
  if (peer >= 0 && peer < rank) MPI_Send(s, count, type, peer, 1, comm);
}

// A window of messages in one direction or both, then a word back.
inline void stream(const void* s, void* r, int count, MPI_Datatype type, int peer, bool both) {
  if (peer < 0) return;
  MPI_Request requests[2 * window];
  int n = 0;
  if (both || peer < rank)
    for (int i = 0; i < window; ++i) MPI_Irecv(r, count, type, peer, 2, comm, &requests[n++]);
  if (both || peer > rank)
    for (int i = 0; i < window; ++i) MPI_Isend(s, count, type, peer, 2, comm, &requests[n++]);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  char word = 0;
  if (peer < rank) MPI_Send(&word, 1, MPI_BYTE, peer, 3, comm);
  else MPI_Recv(&word, 1, MPI_BYTE, peer, 3, comm, MPI_STATUS_IGNORE);
}

inline bool point_to_point(const std::string& name) {
  return name.find("latency") != std::string::npos || name == "bw" || name == "bibw" || name == "message-rate" ||
         name == "multi-pair" || name.starts_with("ddt-");
}

// Messages one after the other in a call: what a row's time is divided by.
inline double messages_in_a_call(const std::string& name) {
  if (!point_to_point(name)) return 1;
  return name.find("latency") != std::string::npos || name.starts_with("ddt-") ? 2 : window;
}

// A derived type of `bytes` bytes of data in doubles, which touches at most four times as much memory.
inline MPI_Datatype derived(const std::string& name, std::size_t bytes) {
  const int doubles = int(bytes / 8);
  MPI_Datatype type;
  if (name == "ddt-vector") {
    MPI_Type_vector(std::max(1, doubles / 2), doubles > 1 ? 2 : 1, 4, MPI_DOUBLE, &type);
  } else if (name == "ddt-indexed") {
    std::vector<int> lengths, places;
    for (int k = 0, done = 0; done < doubles; ++k) {
      lengths.push_back(std::min(1 + k % 5, doubles - done));
      places.push_back(done * 2 + k % 2);
      done += lengths.back();
    }
    MPI_Type_indexed(int(lengths.size()), lengths.data(), places.data(), MPI_DOUBLE, &type);
  } else {  // the inner half of a matrix of rows of 64
    const int inner = std::min(32, doubles), rows = std::max(1, doubles / 32);
    const int sizes[] = {rows, 64}, parts[] = {rows, inner}, starts[] = {0, 16};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

inline Operation message_operation(const std::string& name, int count, MPI_Datatype type) {
  const bool all = name.starts_with("multi-");
  const int peer = partner(all);
  if (name.starts_with("ddt-"))
    return [=, made = derived(name, std::size_t(count))](double* s, double* r) { ping_pong(s, r, 1, made, peer); };
  if (name.find("latency") != std::string::npos)
    return [=](double* s, double* r) { ping_pong(s, r, count, type, peer); };
  return [=, both = name == "bibw"](double* s, double* r) { stream(s, r, count, type, peer, both); };
}

// `count` elements of `type` per rank's vector or block.
inline Operation operation(const std::string& name, int count, MPI_Datatype type) {
  if (name == "barrier") return [](double*, double*) { MPI_Barrier(comm); };
  if (name == "bcast") return [=](double* s, double*) { MPI_Bcast(s, count, type, 0, comm); };
  if (name == "reduce") return [=](double* s, double* r) { MPI_Reduce(s, r, count, type, MPI_SUM, 0, comm); };
  if (name == "allreduce") return [=](double* s, double* r) { MPI_Allreduce(s, r, count, type, MPI_SUM, comm); };
  if (name == "allgather") return [=](double* s, double* r) { MPI_Allgather(s, count, type, r, count, type, comm); };
  if (name == "alltoall") return [=](double* s, double* r) { MPI_Alltoall(s, count, type, r, count, type, comm); };
  if (name == "alltoallv" || name == "alltoallw") {
    std::vector<int> counts(std::size_t(size), count), places(std::size_t(size), 0);
    int bytes = 1;
    if (name == "alltoallw") MPI_Type_size(type, &bytes);
    for (int r = 0; r < size; ++r) places[std::size_t(r)] = r * count * bytes;
    const std::vector<MPI_Datatype> types(std::size_t(size), type);
    if (name == "alltoallv")
      return [=](double* s, double* r) {
        MPI_Alltoallv(s, counts.data(), places.data(), type, r, counts.data(), places.data(), type, comm);
      };
    return [=](double* s, double* r) {
      MPI_Alltoallw(s, counts.data(), places.data(), types.data(), r, counts.data(), places.data(), types.data(), comm);
    };
  }
  if (name == "gather") return [=](double* s, double* r) { MPI_Gather(s, count, type, r, count, type, 0, comm); };
  if (name == "scatter") return [=](double* s, double* r) { MPI_Scatter(s, count, type, r, count, type, 0, comm); };
  if (name == "reduce_scatter_block")
    return [=](double* s, double* r) { MPI_Reduce_scatter_block(s, r, count, type, MPI_SUM, comm); };
  if (point_to_point(name)) return message_operation(name, count, type);
  std::fprintf(stderr, "unknown operation %s\n", name.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  return {};
}

}  // namespace bench
