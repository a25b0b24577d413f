// Where a thread that helps a rank runs: on CPUs that no rank uses, where there are any.
#pragma once
#include <sys/types.h>

#include <span>

#include "engine/machine/cpus.hpp"

namespace nearfield::memory {

struct SpareCpus {
  CpuSet cpus;
  bool free = false;  // there are more of them than ranks that use them
};

// `granted`: CPUs of the job on this node; `own`: of the rank; `ranks`: of each rank of the node, this one included;
// `near`: that share its last-level cache; `quota`: CPUs' worth of time.
SpareCpus find_spare_cpus(const CpuSet& granted, const CpuSet& own, std::span<const CpuSet> ranks, const CpuSet& near,
                          double quota);

// By the affinity mask of a process's first thread; none where the process is not to be seen.
CpuSet cpus_of(pid_t process);

// What the job has been granted, as far as it can be told: our own CPUs, and those of the launcher that has started us
// if it runs as the same user.
CpuSet granted_cpus();

}  // namespace nearfield::memory
