#include "mpi/shim/communicators/presence.hpp"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/settings.hpp"
#include "mpi/shim/host.hpp"

namespace nearfield::mpi {
namespace {

// What launchers tell a rank: the variables that the hosts themselves depend on.
struct Job {
  std::string identity;  // equal on all ranks; empty: the launcher tells none
  pid_t launcher = 0;    // the ancestor of all ranks on this node, where no variable names the job
  int rank = -1;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

Job find_job() {
  Job job;
  const std::string space = variable("PMIX_NAMESPACE"), channel = variable("PMI_FD"), port = variable("PMI_PORT");
  if (!space.empty()) {
    job.identity = "pmix " + space;
  } else if (!channel.empty()) {
    // One end of a pair of sockets that this node's proxy has made.
    ucred maker{};
    socklen_t length = sizeof maker;
    if (getsockopt(std::atoi(channel.c_str()), SOL_SOCKET, SO_PEERCRED, &maker, &length)) return job;
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

Job job;
int announced = -1;

// A socket after `use` with an abstract name; -1 where that failed.
int with_name(const std::string& name, bool (*use)(int fd, const sockaddr*, socklen_t)) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof at.sun_path - 1);
  std::memcpy(at.sun_path + 1, name.data(), length);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool good =
      fd >= 0 && use(fd, reinterpret_cast<sockaddr*>(&at), socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length));
  if (good) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::string name_of(int rank) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : job.identity) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3u;
  return "near-" + std::to_string(hash) + "-" + std::to_string(geteuid()) + "-" + std::to_string(rank);
}

int claim(const std::string& name) {
  return with_name(name, [](int fd, const sockaddr* at, socklen_t length) { return bind(fd, at, length) == 0; });
}

bool exists(const std::string& name) {
  const int fd =
      with_name(name, [](int fd, const sockaddr* at, socklen_t length) { return connect(fd, at, length) == 0; });
  if (fd >= 0) close(fd);
  return fd >= 0;
}

std::string withdrawn(int rank) { return name_of(rank) + "-out"; }

// Whether the launcher says that all ranks are on this node.
bool on_one_node(int size) {
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const std::string local = variable(name); !local.empty()) return std::atoi(local.c_str()) == size;
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

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

// Ranks of this node whose processes have nothing of Nearfield, each as "2 (process 4711, ./program)".
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
    const bool ours = space.empty() ? job.launcher && value_in(environment, "PMI_SIZE") == variable("PMI_SIZE") &&
                                          descends_from(process, job.launcher)
                                    : value_in(environment, "PMIX_NAMESPACE") == space;
    const std::string number = value_in(environment, space.empty() ? "PMI_RANK" : "PMIX_RANK");
    const std::string maps = contents(at + "/maps");
    if (!ours || number.empty() || maps.empty()) continue;
    const int rank = std::atoi(number.c_str());
    if (maps.find("/libnearfield") != maps.npos && !exists(withdrawn(rank))) with.push_back(rank);
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

void announce_presence() {
  job = find_job();
  if (!job.identity.empty() && job.rank >= 0) announced = claim(name_of(job.rank));
}

bool ranks_are_absent(int rank, int size) {
  if (size == 1 || announced < 0 || job.rank != rank || !on_one_node(size)) return false;
  std::vector<std::string> absent;
  bool speaks = true;  // the first of those who are there
  for (int r = 0; r < size; ++r) {
    if (!exists(name_of(r))) absent.push_back(std::to_string(r));
    else speaks &= r >= rank;
  }
  if (absent.empty()) return false;
  // For those who could not come to the same answer, since their environment lacks something: they end the job.
  claim(withdrawn(rank));
  if (speaks)
    log_line(LogLevel::warn,
             "rank %s of %d runs without Nearfield, so the host serves the whole job; is a program static, in another "
             "container, or its environment without LD_PRELOAD?",
             list(absent).c_str(), size);
  return true;
}

void look_for_absentees(int rank, int size, std::uint64_t waited) {
  static std::uint64_t next = 2'000'000'000;
  if (waited < next || size == 1) return;
  next = waited * 2;
  const std::vector<std::string> absent = find_absentees();
  if (absent.empty()) return;
  log_line(LogLevel::error,
           "MPI_Init: rank %d of %d waits for ranks that run without Nearfield: %s. Run all of the job with it (is a "
           "program static, in another container, or its environment without LD_PRELOAD?) or none",
           rank, size, list(absent).c_str());
  usleep(100'000);  // launchers drop what they have not forwarded when the job is aborted
  host.Abort(host.world, 1);
}

}  // namespace nearfield::mpi
