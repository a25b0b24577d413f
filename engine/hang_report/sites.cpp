#include "engine/hang_report/sites.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "engine/waiting/wait.hpp"

namespace nearfield::hang_report {
namespace {

// Runs addr2line, without our libraries preloaded, and returns its line. "": it is not installed, or took too long.
std::string addr2line(const std::string& object, const std::string& offset, std::uint64_t end) {
  int out[2];
  if (pipe2(out, O_CLOEXEC)) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char program[] = "addr2line", flags[] = "-Cfpe", path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  std::string file = object, at = offset;
  char* const arguments[] = {program, flags, file.data(), at.data(), nullptr};
  char* const environment[] = {path, nullptr};
  pid_t child = 0;
  const bool runs = posix_spawnp(&child, program, &actions, nullptr, arguments, environment) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  std::string text;
  while (runs) {
    const std::uint64_t now = waiting::nanoseconds();
    pollfd ready{out[0], POLLIN, 0};
    char some[512];
    ssize_t n = 0;
    if (now >= end || poll(&ready, 1, int((end - now) / 1'000'000) + 1) <= 0) break;
    if ((n = read(out[0], some, sizeof some)) <= 0) break;
    text.append(some, std::size_t(n));
  }
  close(out[0]);
  if (runs) kill(child, SIGKILL), waitpid(child, nullptr, 0);
  text.resize(std::min({text.size(), text.find('\n'), text.find(" (discriminator")}));
  return text;
}

// Returns the absolute path of the file that is mapped at an address. The loader's name may be no path, or relative to
// another directory.
std::string mapped_at(const void* address) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  char line[4400];
  while (maps && std::fgets(line, sizeof line, maps.get())) {
    unsigned long begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &path) < 2) continue;
    if (std::uintptr_t(address) < begin || std::uintptr_t(address) >= end) continue;
    std::string found = line + path;
    found.resize(std::min({found.size(), found.find('\n'), found.find(" (deleted)")}));
    return found.starts_with('/') ? found : "";
  }
  return "";
}

std::string object_at(const Dl_info& about, const link_map& map, const void* address) {
  const char* const name = about.dli_fname ? about.dli_fname : "";
  if (*name == '/' && access(name, F_OK) == 0) return name;
  if (!*map.l_name) {
    static const std::string program = mapped_at(address);
    return program;
  }
  const std::string found = mapped_at(address);
  return found.empty() ? name : found;
}

std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return text ? text.get() : symbol;
}

std::string place(const CallState& state) {
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%zx", std::size_t(state.offset));
  return state.object + std::string(offset);
}

}  // namespace

Site site_of(const void* returns_to) {
  // The call instruction ends before the address that it returns to.
  const auto* const at = static_cast<const char*>(returns_to) - 1;
  Dl_info about{};
  link_map* map = nullptr;
  if (!returns_to || !dladdr1(at, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return {};
  return {.object = object_at(about, *map, at),
          .offset = std::uintptr_t(at) - map->l_addr,  // l_addr is 0 where code is not position-independent
          .symbol = about.dli_sname ? readable(about.dli_sname) : ""};
}

std::string site_text(const CallState& state) {
  if (!*state.object) return "";
  return place(state) + (*state.symbol ? std::string(" (") + state.symbol + ")" : "");
}

std::vector<std::string> source_lines(const std::vector<ProcessSeen>& all) {
  std::vector<std::string> lines;
  std::set<std::string> done;
  const std::uint64_t end = waiting::nanoseconds() + 2'000'000'000;
  for (const ProcessSeen& a : all)
    for (const ThreadSeen& f : a.threads) {
      // A path that was cut off does not begin with a slash.
      if (!f.known || *f.what.object != '/' || waiting::nanoseconds() > end) continue;
      if (!done.insert(place(f.what)).second) continue;
      char offset[32];
      std::snprintf(offset, sizeof offset, "0x%zx", std::size_t(f.what.offset));
      const std::string line = addr2line(f.what.object, offset, end);
      if (!line.empty() && !line.starts_with("?? ??:")) lines.push_back("  " + place(f.what) + ": " + line);
    }
  return lines;
}

}  // namespace nearfield::hang_report
