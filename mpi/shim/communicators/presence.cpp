// Identifies the job by the launcher's variables, and finds absent ranks (presence.hpp). Called by one thread while MPI
// starts: before and after the host's MPI_Init, and in the wait for the first collective call.
#include "mpi/shim/communicators/presence.hpp"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/files.hpp"
#include "engine/base/log.hpp"
#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/team/presence.hpp"
#include "mpi/local_ranks.hpp"
#include "mpi/shim/process/host.hpp"
#include "mpi/shim/process/launchers.hpp"

namespace nearfield::mpi {

// The job, by those variables of the launcher that the hosts themselves depend on.
struct Job {
  std::string identity;  // equal on all ranks; empty: unknown
  pid_t launcher = 0;    // ancestor of all ranks on this node, if no variable names the job
  int rank = -1;
};

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

Job find_job() {
  Job job;
  const std::string space = variable("PMIX_NAMESPACE"), descriptor = variable("PMI_FD"), port = variable("PMI_PORT");
  if (!space.empty()) {
    job.identity = "pmix " + space;
  } else if (!descriptor.empty()) {
    // One end of a socket pair that this node's proxy has made.
    ucred maker{};
    socklen_t length = sizeof maker;
    if (getsockopt(std::atoi(descriptor.c_str()), SOL_SOCKET, SO_PEERCRED, &maker, &length)) return job;
    job.launcher = maker.pid;
    job.identity = "pmi " + std::to_string(maker.pid) + " " + variable("PMI_JOBID") + " " + variable("SLURM_JOB_ID") +
                   "." + variable("SLURM_STEP_ID");
  } else if (!port.empty()) {
    job.identity = "pmi " + port;
  }
  for (const char* const name : {"PMIX_RANK", "PMI_RANK", "PMI_ID"})
    if (const std::string rank = variable(name); job.rank < 0 && !rank.empty()) job.rank = std::atoi(rank.c_str());
  return job;
}

}  // namespace

struct JobPresence {
  Job job;
  std::optional<team::Presence> presence;
  bool announced = false;                   // our name is bound
  bool met_by_init = true;                  // the host's MPI_Init returns after all have announced themselves
  std::mutex beginning;                     // sessions of several threads
  std::uint64_t next_look = 2'000'000'000;  // nanoseconds of waiting
};

namespace {

JobPresence& own() { return made<JobPresence>(); }

// Returns whether the launcher says that all ranks are on this node.
bool on_one_node(int size) {
  if (const int local = local_ranks()) return local == size;
  for (const char* const name : {"SLURM_STEP_NUM_NODES", "PALS_NUM_NODES"})
    if (const std::string nodes = variable(name); !nodes.empty()) return nodes == "1";
  return false;
}

// "0, 3, 7 and others"
std::string list(const std::vector<std::string>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 8) return text + " and others";
    text += (i ? ", " : "") + ranks[i];
  }
  return text;
}

// ---------------------------------------------------------------- processes of the job

std::string value_in(std::string_view environment, std::string_view name) {
  for (std::size_t at = 0; at < environment.size();) {
    const std::string_view entry = environment.substr(at, environment.find('\0', at) - at);
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
    at += entry.size() + 1;
  }
  return {};
}

bool descends_from(pid_t process, pid_t ancestor) {
  for (int generation = 0; process > 1 && generation < 64; ++generation) {
    if (process == ancestor) return true;
    const std::string stat = contents("/proc/" + std::to_string(process) + "/stat");
    const auto name_end = stat.rfind(") ");  // then the state, then the parent
    process = name_end == stat.npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
  }
  return false;
}

// Returns the ranks of this node whose processes run without Nearfield, each as "2 (process 4711, ./program)".
std::vector<std::string> find_absentees() {
  std::map<int, std::string> without;
  std::vector<int> with;
  DIR* const processes = opendir("/proc");
  while (const dirent* const entry = processes ? readdir(processes) : nullptr) {
    const pid_t process = std::atoi(entry->d_name);
    const std::string at = std::string("/proc/") + entry->d_name;
    struct stat about {};
    if (process <= 0 || stat(at.c_str(), &about) || about.st_uid != geteuid()) continue;
    const std::string environment = contents(at + "/environ"), space = variable("PMIX_NAMESPACE");
    const bool ours = space.empty() ? own().job.launcher && value_in(environment, "PMI_SIZE") == variable("PMI_SIZE") &&
                                          descends_from(process, own().job.launcher)
                                    : value_in(environment, "PMIX_NAMESPACE") == space;
    const std::string number = value_in(environment, space.empty() ? "PMI_RANK" : "PMIX_RANK");
    const std::string maps = contents(at + "/maps");
    if (!ours || number.empty() || maps.empty()) continue;
    const int rank = std::atoi(number.c_str());
    if (maps.find("/libnearfield") != maps.npos && !(own().presence && own().presence->has_withdrawn(rank)))
      with.push_back(rank);
    const std::string program = contents(at + "/cmdline");
    without[rank] = number + " (process " + entry->d_name + ", " + program.substr(0, program.find('\0')) + ")";
  }
  if (processes) closedir(processes);
  for (const int rank : with) without.erase(rank);
  std::vector<std::string> found;
  for (const auto& [rank, text] : without) found.push_back(text);
  return found;
}

}  // namespace

// Tries twice if memory is short: others find a rank without a name absent and stay out, while it would wait for them.
void announce_presence() {
  const std::lock_guard lock(own().beginning);
  if (own().presence) return;
  for (int attempt = 0; attempt < 2; ++attempt) try {
      own().job = find_job();
      own().presence.emplace(own().job.identity, own().job.rank);
      own().announced = !own().job.identity.empty() && own().job.rank >= 0 && own().presence->announce();
      return;
    } catch (const OutOfMemory&) {
    }
}

void announce_before_session() {
  announce_presence();
  own().met_by_init = false;
}

bool ranks_are_absent(int rank, int size) {
  if (size == 1 || !own().announced || !own().met_by_init || own().job.rank != rank || !on_one_node(size)) return false;
  const std::vector<int> absent = own().presence->absentees(size);
  if (absent.empty()) return false;
  // For ranks whose environment lacks a variable, so that they could not find out: they wait for us, and end the job.
  own().presence->withdraw();
  int first = 0;  // the first rank that is present writes the line
  while (std::ranges::binary_search(absent, first)) ++first;
  if (first == rank) {
    std::vector<std::string> names;
    for (const int r : absent) names.push_back(std::to_string(r));
    log_line(
        LogLevel::warn,
        "rank %s of %d runs without Nearfield, so the host serves the whole job; is a program static or in another "
        "container, does its environment lack LD_PRELOAD, or does a sandbox deny it sockets?",
        list(names).c_str(), size);
  }
  return true;
}

void look_for_absentees(int rank, int size, std::uint64_t waited) {
  std::uint64_t& next = own().next_look;
  if (waited < next || size == 1) return;
  next = waited * 2;
  const std::vector<std::string> absent = find_absentees();
  if (absent.empty()) return;
  log_line(LogLevel::error,
           "MPI_Init: rank %d of %d waits for ranks that run without Nearfield: %s. Run all ranks with Nearfield or "
           "none (is a "
           "program static or in another container, or does its environment lack LD_PRELOAD?)",
           rank, size, list(absent).c_str());
  let_launchers_forward();
  host.Abort(host.world, 1);
}

}  // namespace nearfield::mpi
