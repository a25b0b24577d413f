#include "engine/machine/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace nearfield::memory {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// cgroup v2: "max 100000" or "150000 100000".
double quota_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return unlimited;
  return std::strtod(quota.c_str(), nullptr) / period;
}

double quota_v1(const std::string& directory) {
  double quota = -1, period = 0;
  std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(directory + "/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : unlimited;
}

// The tightest limit from `path` up to the mount point.
template <class Quota>
double tightest(const std::string& mount, std::string path, Quota quota) {
  double least = quota(mount);
  while (!path.empty() && path != "/") {
    least = std::min(least, quota(mount + path));
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  return least;
}

}  // namespace

std::string CpuSet::list() const {
  std::string text;
  for (std::size_t begin = 0; begin < bits.size(); ++begin) {
    if (!bits[begin]) continue;
    std::size_t end = begin;
    while (end + 1 < bits.size() && bits[end + 1]) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(begin) + (end > begin ? "-" + std::to_string(end) : "");
    begin = end;
  }
  return text;
}

Cpus available_cpus(const std::string& root) {
  Cpus cpus{{}, unlimited};
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask)) cpus.allowed.bits.set(cpu);
  }
  if (!cpus.allowed.count()) cpus.allowed.bits.set(0);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      cpus.quota = std::min(cpus.quota, tightest(root + "/sys/fs/cgroup", path, quota_v2));
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name != "cpu") continue;
      cpus.quota = std::min(cpus.quota, tightest(root + "/sys/fs/cgroup/cpu", path, quota_v1));
      cpus.quota = std::min(cpus.quota, tightest(root + "/sys/fs/cgroup/" + controllers, path, quota_v1));
    }
  }
  return cpus;
}

// The last-level cache of CPU 0 as the kernel describes it: a full topology would cost milliseconds at start-up.
std::size_t last_level_cache() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::size_t value = 0;
    char unit = 0;
    if (!(file >> value)) break;
    file >> unit;
    value <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
    if (value > largest) largest = value;
  }
  return largest ? largest : 8u << 20;
}

namespace {

// The last that exists of these lists, smallest first, in our first CPU's directory.
std::string last_list(const Cpus& cpus, const std::string& root, std::initializer_list<const char*> names) {
  std::size_t one = 0;
  while (one < cpus.allowed.bits.size() && !cpus.allowed.bits[one]) ++one;
  std::string list;
  for (const char* name : names) {
    std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(one) + "/" + name);
    std::string line;
    if (std::getline(file, line)) list = line;
  }
  return list;
}

// A list such as "0-3,8".
CpuSet read_list(const std::string& list) {
  CpuSet all;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t first = std::strtoul(range.c_str(), nullptr, 10), dash = range.find('-');
    const std::size_t last = dash == std::string::npos ? first : std::strtoul(range.c_str() + dash + 1, nullptr, 10);
    for (std::size_t cpu = first; cpu <= last && cpu < all.bits.size(); ++cpu) all.bits.set(cpu);
  }
  return all;
}

// The first CPU of a list, where all of ours are in it; else -1.
int first_of_all(const Cpus& cpus, const std::string& list) {
  const CpuSet shared = read_list(list);
  if (shared.bits.none() || (cpus.allowed.bits & ~shared.bits).any()) return -1;
  return int(shared.bits._Find_first());
}

}  // namespace

int shared_cache(const Cpus& cpus, const std::string& root) {
  return first_of_all(
      cpus, last_list(cpus, root,
                      {"cache/index0/shared_cpu_list", "cache/index1/shared_cpu_list", "cache/index2/shared_cpu_list",
                       "cache/index3/shared_cpu_list", "cache/index4/shared_cpu_list"}));
}

std::size_t private_cache(const Cpus& cpus, const std::string& root) {
  const int siblings = read_list(last_list(cpus, root, {"topology/thread_siblings_list"})).count();
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string name = "cache/index" + std::to_string(index) + "/";
    const std::string text = last_list(cpus, root, {(name + "size").c_str()});
    if (text.empty()) break;
    if (last_list(cpus, root, {(name + "type").c_str()}) == "Instruction" ||
        read_list(last_list(cpus, root, {(name + "shared_cpu_list").c_str()})).count() > std::max(siblings, 1))
      continue;
    largest = std::max<std::size_t>(largest, std::strtoul(text.c_str(), nullptr, 10) << (text.back() == 'K'   ? 10
                                                                                         : text.back() == 'M' ? 20
                                                                                                              : 0));
  }
  return largest;
}

CpuSet cache_neighbors(const Cpus& cpus, const std::string& root) {
  return read_list(last_list(cpus, root,
                             {"cache/index1/shared_cpu_list", "cache/index2/shared_cpu_list",
                              "cache/index3/shared_cpu_list", "cache/index4/shared_cpu_list"}));
}

std::size_t cache_sharers(const Cpus& cpus, const std::string& root) {
  return std::size_t(cache_neighbors(cpus, root).count());
}

int shared_package(const Cpus& cpus, const std::string& root) {
  return first_of_all(cpus, last_list(cpus, root, {"topology/core_siblings_list", "topology/package_cpus_list"}));
}

int scheduling_group(const std::string& root) {
  int enabled = 0;
  std::ifstream(root + "/proc/sys/kernel/sched_autogroup_enabled") >> enabled;
  if (!enabled) return 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool divides = controllers == ",," || controllers.find(",cpu,") != std::string::npos;
    if (divides && line.substr(second + 1) != "/") return 0;
  }
  std::string text;
  std::ifstream(root + "/proc/self/autogroup") >> text;  // "/autogroup-123"
  const auto dash = text.rfind('-');
  return dash == std::string::npos ? 0 : std::atoi(text.c_str() + dash + 1);
}

}  // namespace nearfield::memory
