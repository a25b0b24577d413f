// The ranks of a job: who they are, where they run, how far apart, and memory that they share.
#pragma once
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/processor/processor.h"

namespace bench {

inline MPI_Comm comm;  // all operations are called on it
inline int rank, size;
inline bool pinned;  // a CPU for each
inline std::atomic<std::uint64_t>* probe_words;

inline int local(const char* const* names, int fallback) {
  for (; *names; ++names)
    if (const char* text = std::getenv(*names)) return std::atoi(text);
  return fallback;
}

// One rank per CPU where they fit, before MPI starts, so that every library sees it.
inline void pin() {
  constexpr const char* rank_names[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", nullptr};
  constexpr const char* size_names[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE", nullptr};
  const int me = local(rank_names, 0), all = local(size_names, 1);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) || all > CPU_COUNT(&allowed)) return;
  for (int cpu = 0, k = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || k++ != me) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pinned = sched_setaffinity(0, sizeof one, &one) == 0;
  }
}

// Memory that all ranks share; nullptr on all of them where one cannot map it. Not a window of MPI: a program without
// windows shall be measured.
inline void* share(std::size_t bytes) {
  long where[2] = {getpid(), rank == 0 ? memfd_create("bench", 0) : -1};
  if (rank == 0 && ftruncate(int(where[1]), long(bytes))) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Bcast(where, 2, MPI_LONG, 0, MPI_COMM_WORLD);
  const std::string path = "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
  const int fd = open(path.c_str(), O_RDWR);
  void* const at = fd < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int good = at != MAP_FAILED, all_good = 0;
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (fd >= 0) close(fd);
  if (rank == 0) close(int(where[1]));
  return all_good ? at : nullptr;
}

// Nanoseconds of a cache line one way between ranks 0 and 1, the quickest of some batches, since an interruption is not
// distance; 0 where it cannot be told.
inline double line_time() {
  if (!pinned || size < 2) return 0;
  double result = 1e9;
  for (int batch = 0; rank < 2 && batch < 8; ++batch) {
    constexpr int trips = 25;
    static std::uint64_t round = 0;
    const double start = MPI_Wtime();
    for (int i = 0; i < trips; ++i) {
      ++round;
      if (rank == 0) probe_words[0].store(round, std::memory_order_release);  // pairs with rank 1's load
      while (probe_words[rank == 0 ? 16 : 0].load(std::memory_order_acquire) != round) nearfield::processor::pause();
      if (rank == 1) probe_words[16].store(round, std::memory_order_release);  // pairs with rank 0's load
    }
    result = std::min(result, (MPI_Wtime() - start) * 1e9 / trips / 2);
  }
  MPI_Bcast(&result, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return result;
}

inline const char* state_of(double nanoseconds) {
  return nanoseconds == 0 ? "any" : nanoseconds < 120 ? "near" : "far";
}

inline void hint(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

}  // namespace bench
