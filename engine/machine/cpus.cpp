#include "engine/machine/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "engine/base/files.hpp"

namespace nearfield::machine {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// cgroup v2: "max 100000" or "150000 100000".
double quota_v2(const std::string& directory) {
  double quota = 0, period = 0;
  const bool limited = std::sscanf(contents(directory + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2;
  return limited && period > 0 ? quota / period : unlimited;
}

double quota_v1(const std::string& directory) {
  const double quota = std::strtod(contents(directory + "/cpu.cfs_quota_us").c_str(), nullptr);
  const double period = std::strtod(contents(directory + "/cpu.cfs_period_us").c_str(), nullptr);
  return quota > 0 && period > 0 ? quota / period : unlimited;
}

// A line of /proc/self/cgroup, "4:cpu,cpuacct:/path"; version 2 names no controllers.
struct Group {
  std::string controllers, path;
  bool has(const std::string& controller) const {
    return ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
  }
};

std::vector<Group> groups_of_control(const std::string& root) {
  std::vector<Group> groups;
  const std::string text = contents(root + "/proc/self/cgroup");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = next_part(rest, '\n');
    if (std::count(line.begin(), line.end(), ':') < 2) continue;
    next_part(line, ':');
    const std::string_view controllers = next_part(line, ':');
    groups.push_back({std::string(controllers), std::string(line)});
  }
  return groups;
}

// Returns the tightest limit from `path` up to the mount point.
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
  for (const Group& group : groups_of_control(root)) {
    if (group.controllers.empty())
      cpus.quota = std::min(cpus.quota, tightest(root + "/sys/fs/cgroup", group.path, quota_v2));
    else if (group.has("cpu"))
      for (const std::string& mount : {std::string("cpu"), group.controllers})
        cpus.quota = std::min(cpus.quota, tightest(root + "/sys/fs/cgroup/" + mount, group.path, quota_v1));
  }
  return cpus;
}

// "512K", "32M".
static std::size_t bytes_of(const std::string& text) {
  char* unit = nullptr;
  const std::size_t value = std::strtoul(text.c_str(), &unit, 10);
  return value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
}

namespace {

// Returns a file of our first CPU's directory, without the end of its line; "" where there is none.
std::string of_first_cpu(const Cpus& cpus, const std::string& root, const std::string& name) {
  const std::string cpu = std::to_string(cpus.allowed.bits._Find_first());
  const std::string text = contents(root + "/sys/devices/system/cpu/cpu" + cpu + "/" + name);
  return text.substr(0, text.find('\n'));
}

// Parses a list such as "0-3,8".
CpuSet read_list(const std::string& list) {
  CpuSet all;
  for (std::string_view rest = list; !rest.empty();) {
    const std::string range(next_part(rest, ','));
    const std::size_t first = std::strtoul(range.c_str(), nullptr, 10), dash = range.find('-');
    const std::size_t last = dash == std::string::npos ? first : std::strtoul(range.c_str() + dash + 1, nullptr, 10);
    for (std::size_t cpu = first; cpu <= last && cpu < all.bits.size(); ++cpu) all.bits.set(cpu);
  }
  return all;
}

// Returns the first of these CPUs if all of ours are among them; otherwise -1.
int first_of_all(const Cpus& cpus, const CpuSet& shared) {
  if (shared.bits.none() || (cpus.allowed.bits & ~shared.bits).any()) return -1;
  return int(shared.bits._Find_first());
}

}  // namespace

int Caches::shared_by(const Cpus& cpus) const { return first_of_all(cpus, neighbors); }

// Reads the kernel's files, of which each takes nine microseconds, as seldom as possible: a full topology would cost
// milliseconds at start-up.
Caches read_caches(const Cpus& cpus, const std::string& root) {
  Caches found{};
  const int siblings = std::max(1, read_list(of_first_cpu(cpus, root, "topology/thread_siblings_list")).count());
  for (int index = 0; index < 8; ++index) {
    const std::string leaf = "cache/index" + std::to_string(index) + "/";
    const CpuSet sharers = read_list(of_first_cpu(cpus, root, leaf + "shared_cpu_list"));
    if (sharers.bits.none()) break;
    found.neighbors = sharers;
    const std::size_t bytes = bytes_of(of_first_cpu(cpus, root, leaf + "size"));
    found.largest = std::max(found.largest, bytes);
    if (bytes > found.own && sharers.count() <= siblings && of_first_cpu(cpus, root, leaf + "type") != "Instruction")
      found.own = bytes;
  }
  if (!found.largest) found.largest = 8u << 20;
  return found;
}

int shared_package(const Cpus& cpus, const std::string& root) {
  std::string list = of_first_cpu(cpus, root, "topology/package_cpus_list");
  if (list.empty()) list = of_first_cpu(cpus, root, "topology/core_siblings_list");  // before Linux 5.3
  return first_of_all(cpus, read_list(list));
}

int scheduling_group(const std::string& root) {
  if (std::atoi(contents(root + "/proc/sys/kernel/sched_autogroup_enabled").c_str()) == 0) return 0;
  for (const Group& group : groups_of_control(root))
    if ((group.controllers.empty() || group.has("cpu")) && group.path != "/") return 0;
  const std::string text = contents(root + "/proc/self/autogroup");  // "/autogroup-123 nice 0"
  const auto dash = text.find('-');
  return dash == std::string::npos ? 0 : std::atoi(text.c_str() + dash + 1);
}

}  // namespace nearfield::machine
