#include "engine/roll/sites.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "engine/waiting/wait.hpp"

namespace nearfield::roll {
namespace {

// What addr2line prints, without our libraries in it. "": there is none, or it took too long.
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

}  // namespace

std::string site_of(const void* returns_to) {
  // The call lies before the address that it returns to.
  const auto* const at = static_cast<const char*>(returns_to) - 1;
  Dl_info about{};
  if (!returns_to || !dladdr(at, &about) || !about.dli_fname) return "";
  // What is not position-independent is known by addresses.
  const bool fixed = static_cast<const Elf64_Ehdr*>(about.dli_fbase)->e_type == ET_EXEC;
  const char* const base = fixed ? nullptr : static_cast<const char*>(about.dli_fbase);
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%zx", std::size_t(at - base));
  std::string text = about.dli_fname + std::string(offset);
  if (about.dli_sname) text += std::string(" (") + about.dli_sname + ")";
  return text;
}

std::vector<std::string> source_lines(const std::vector<Attendance>& all) {
  std::vector<std::string> lines;
  std::set<std::string> sites;
  for (const Attendance& a : all)
    for (const Found& f : a.threads)
      if (f.told && *f.what.site) sites.insert(std::string(f.what.site).substr(0, std::string(f.what.site).find(' ')));
  const std::uint64_t end = waiting::nanoseconds() + 2'000'000'000;
  for (const std::string& site : sites) {
    const std::size_t plus = site.rfind('+');
    if (plus == site.npos || waiting::nanoseconds() > end) continue;
    const std::string line = addr2line(site.substr(0, plus), site.substr(plus + 1), end);
    if (!line.empty() && !line.starts_with("?? ??:")) lines.push_back("  " + site + ": " + line);
  }
  return lines;
}

}  // namespace nearfield::roll
