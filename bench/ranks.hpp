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
#include <cstdio>
#include <cstdlib>

#include "engine/machine/states.hpp"
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

// Maps what rank 0 has open as `own`, and all others find at `path`; nullptr on all of them where one cannot.
inline void* map_shared(int own, const char* path, std::size_t bytes) {
  const int fd = rank == 0 ? own : open(path, O_RDWR | O_CLOEXEC);
  void* const at = fd < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int good = at != MAP_FAILED, all_good = 0;
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (good && !all_good) munmap(at, bytes);
  if (fd >= 0) close(fd);
  return all_good ? at : nullptr;
}

// Memory that all ranks share: a memfd, or a file where a sandbox lets nobody open another process's; nullptr on all of
// them where neither can be had. Not a window of MPI: a program without windows shall be measured.
inline void* share(std::size_t bytes) {
  char path[4096] = "";
  const auto sized = [&](int fd) { return fd >= 0 && ftruncate(fd, long(bytes)) == 0 ? fd : (close(fd), -1); };
  for (const bool file : {false, true}) {
    int own = -1;
    if (rank == 0 && !file) {
      own = sized(memfd_create("bench", MFD_CLOEXEC));
      std::snprintf(path, sizeof path, "/proc/%d/fd/%d", int(getpid()), own);
    } else if (rank == 0) {
      const char* const folder = std::getenv("TMPDIR");
      std::snprintf(path, sizeof path, "%s/nearfield-bench-XXXXXX", folder ? folder : "/tmp");
      own = sized(mkostemp(path, O_CLOEXEC));
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    void* const at = map_shared(own, path, bytes);
    if (rank == 0 && file) unlink(path);
    if (at) return at;
  }
  return nullptr;
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

// Whether the machine was in one state when lines took so long; what was not timed is.
inline bool steady(double before, double after) { return before == after || nearfield::like(before, after); }

inline void hint(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

}  // namespace bench
