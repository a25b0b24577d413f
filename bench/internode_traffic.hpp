// What crosses between nodes in a call: the packets and bytes that the interfaces of all nodes send, without noise
// where times have much.
//
//   meet, wait until the last acknowledgement has come, read the counters, meet
//   some calls
//   meet, wait, read, meet
//
// Ranks meet in memory that they share, so that nothing else crosses meanwhile: pretended nodes are on one machine
// (tests/nodes/bed.py). The least of some repetitions counts, since TCP sends again what is acknowledged late.
#pragma once
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/measuring.hpp"

namespace bench {

// Sent by the interface of the node that this process lives on; segments are those of TCP with data.
struct Crossed {
  long packets = 0, bytes = 0, segments = 0;

  Crossed operator-(const Crossed& before) const {
    return {packets - before.packets, bytes - before.bytes, segments - before.segments};
  }
  // Without headers: acknowledgements are packets of headers alone.
  long payload() const { return bytes - packets * (14 + 20 + 20 + 12); }  // Ethernet, IPv4, TCP, its time stamps
};

inline Crossed crossed_here() {
  Crossed found;
  char line[4096], names[4096] = "";
  if (std::FILE* file = std::fopen("/proc/self/net/dev", "r")) {
    while (std::fgets(line, sizeof line, file))
      if (const char* counts = std::strstr(line, "eth0:"))
        std::sscanf(counts + 5, "%*d %*d %*d %*d %*d %*d %*d %*d %ld %ld", &found.bytes, &found.packets);
    std::fclose(file);
  }
  if (std::FILE* file = std::fopen("/proc/self/net/netstat", "r")) {  // a line of names, then one of numbers
    while (std::fgets(line, sizeof line, file)) {
      if (std::strncmp(line, "TcpExt:", 7)) continue;
      if (!*names) {
        std::strcpy(names, line);
        continue;
      }
      char *of_names = nullptr, *of_numbers = nullptr;
      const char* number = strtok_r(line, " ", &of_numbers);
      for (const char* name = strtok_r(names, " ", &of_names); name && number;) {
        if (!std::strcmp(name, "TCPOrigDataSent")) found.segments = std::atol(number);
        name = strtok_r(nullptr, " ", &of_names);
        number = strtok_r(nullptr, " ", &of_numbers);
      }
    }
    std::fclose(file);
  }
  return found;
}

// The number of nodes, and whether this rank is the first on its own.
struct RemoteBuffer {
  int nodes = 0;
  bool first = false;
};

inline RemoteBuffer place() {
  constexpr std::size_t longest = MPI_MAX_PROCESSOR_NAME;
  std::vector<char> names(longest * std::size_t(size));
  int length;
  char own[longest] = {};
  MPI_Get_processor_name(own, &length);
  MPI_Allgather(own, int(longest), MPI_CHAR, names.data(), int(longest), MPI_CHAR, MPI_COMM_WORLD);
  RemoteBuffer found;
  for (int r = 0; r < size; ++r) {
    const char* const name = &names[longest * std::size_t(r)];
    bool new_node = true;
    for (int q = 0; q < r; ++q) new_node &= std::strcmp(name, &names[longest * std::size_t(q)]) != 0;
    found.nodes += new_node;
    if (r == rank) found.first = new_node;
  }
  return found;
}

// All have come, and send nothing but what others still wait for: some hosts do that only while they are called.
inline void meet() {
  static std::uint64_t meetings = 0;
  std::atomic<std::uint64_t>& arrived = probe_words[32];
  const std::uint64_t all = ++meetings * std::uint64_t(size);
  arrived.fetch_add(1, std::memory_order_acq_rel);  // pairs with the load of those who wait
  while (arrived.load(std::memory_order_acquire) < all) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    usleep(200);
  }
}

// When the network is quiet, and before anybody sends again. TCP acknowledges after 40 ms at the latest.
inline Crossed read_when_quiet() {
  meet();
  usleep(50'000);
  const Crossed found = crossed_here();
  meet();
  return found;
}

// `modes`: plain, nearfield or both. A repetition takes about `seconds`, and so may trials before the first one.
inline void measure_internode_traffic(const Cell& cell, double seconds, const std::vector<Mode>& modes) {
  static const RemoteBuffer where = place();
  if (!probe_words) {
    if (rank == 0) std::fprintf(stderr, "no memory to meet in; nodes that keep processes apart cannot be counted\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  OwnWork nothing;
  for (const Mode mode : modes) {
    switch_to(mode);
    Side side(cell, mode);
    auto run = [&](long n) {
      for (long i = 0; i < n; ++i) side.call(side.buffers->send.data(), side.buffers->recv.data(), nothing);
    };
    run(1);  // connects
    const double start = MPI_Wtime();
    long begun = 1;
    run(1);
    for (int go = 1; go;) {
      go = MPI_Wtime() - start < (mode == nearfield ? seconds : seconds / 4);
      MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (go) run(4), begun += 4;
    }
    long calls = std::clamp(long(seconds / (MPI_Wtime() - start) * double(begun)), 1L, 32L);
    MPI_Bcast(&calls, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    constexpr int repetitions = 4;
    long mine[repetitions][4] = {}, all[repetitions][4];
    Crossed before = read_when_quiet();
    for (auto& of_this : mine) {
      run(calls);
      const Crossed now = read_when_quiet(), found = now - before;
      const long figures[] = {found.packets, found.bytes, found.segments, found.payload()};
      if (where.first) std::copy_n(figures, 4, of_this);
      before = now;
    }
    const std::string algorithm = mode == plain ? "host" : algorithm_of(cell);  // before another call is the last one
    MPI_Allreduce(mine, all, 4 * repetitions, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank) continue;
    auto each = [&](int figure) {
      long least = all[0][figure];
      for (const auto& of_this : all) least = std::min(least, of_this[figure]);
      return nearfield::rounded(double(least) / double(calls), 2);
    };
    nearfield::print({{"op", cell.op},
                      {"bytes", cell.bytes},
                      {"ranks", size},
                      {"nodes", where.nodes},
                      {"mode", mode_names[mode]},
                      {"algorithm", algorithm},
                      {"packets", each(0)},
                      {"wire_bytes", each(1)},
                      {"segments", each(2)},
                      {"payload", each(3)}});
  }
}

}  // namespace bench
