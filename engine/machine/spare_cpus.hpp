// CPUs for a rank's progress thread: those that no rank uses, if there are any.
#pragma once
#include <sys/types.h>

#include <span>

#include "engine/machine/cpus.hpp"

namespace nearfield::machine {

struct SpareCpus {
  CpuSet cpus;
  bool free = false;  // some of them are unused
};

// `granted`: CPUs of the job on this node; `own`: of the rank; `ranks`: of each rank of the node, including this one;
// `near`: CPUs that share the rank's last-level cache; `quota`: CPUs' worth of time.
SpareCpus find_spare_cpus(const CpuSet& granted, const CpuSet& own, std::span<const CpuSet> ranks, const CpuSet& near,
                          double quota);

// Returns the affinity mask of a process's first thread; none if the process is not visible.
CpuSet cpus_of(pid_t process);

// Returns an estimate of the CPUs that the job has been granted: our own, and those of our launcher if it runs as the
// same user.
CpuSet granted_cpus();

}  // namespace nearfield::machine
