#include "engine/machine/spare_cpus.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace nearfield::machine {

SpareCpus find_spare_cpus(const CpuSet& granted, const CpuSet& own, std::span<const CpuSet> ranks, const CpuSet& near,
                          double quota) {
  const bool time_left = double(ranks.size()) < quota;
  CpuSet taken = own;
  for (const CpuSet& each : ranks) taken.bits |= each.bits;
  CpuSet left{granted.bits & ~taken.bits};
  if (left.bits.any()) {
    if (left.intersects(near)) left.bits &= near.bits;
    return {left, time_left};
  }
  // If more CPUs than ranks share a mask, some of its CPUs are unused.
  const auto sharers = std::ranges::count_if(ranks, [&](const CpuSet& each) { return each.intersects(own); });
  if (sharers < own.count()) return {own, time_left};
  return {{granted.bits | own.bits}, false};
}

CpuSet cpus_of(pid_t process) {
  CpuSet cpus;
  cpu_set_t mask;
  if (sched_getaffinity(process, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.bits.set(std::size_t(cpu));
  return cpus;
}

CpuSet granted_cpus() {
  CpuSet cpus = cpus_of(getpid());
  const pid_t launcher = getppid();
  struct stat owner {};
  if (launcher > 1 && stat(("/proc/" + std::to_string(launcher)).c_str(), &owner) == 0 && owner.st_uid == geteuid())
    cpus.bits |= cpus_of(launcher).bits;
  return cpus;
}

}  // namespace nearfield::machine
