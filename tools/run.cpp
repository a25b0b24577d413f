// `nearfield run`: sets the environment and executes the launcher. Options that are not settings (`--report`) are left
// to Python (nearfield/commands/run.py), which calls `nearfield last` when it has done its part. So are wrong options,
// since Python prints the error. `exec` executes one process of a job, without a watcher.
//
//   nearfield run ----- exec -----> launcher ........ ends
//        \-- fork --> (gone)                            |
//                \-- fork --> watcher, asleep ------> says why nothing was served (afterwards.cpp)
//
// So the launcher has the process id, the parent, the terminal, the signals and the exit status of the command. The
// watcher is not its child, since some programs (strace) end only when they have no children. It has a session of its
// own, so that signals of the terminal do not reach it.
#include "tools/run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/early_settings.hpp"
#include "engine/memory/descriptors.hpp"
#include "tools/afterwards.hpp"
#include "tools/installation.hpp"
#include "tools/oversubscription.hpp"

namespace nearfield::tools {
namespace {

struct Option {
  const char *name, *variable;
  bool has_value;
};
constexpr Option options[] = {
    {"--stats", "NEARFIELD_STATS", false},
    {"--check", "NEARFIELD_CHECK", false},
    {"--log", early::log.variable, true},
    {"--log-file", early::log_file.variable, true},
    {"--heap", early::heap.variable, true},
    {"--algorithm", "NEARFIELD_ALGORITHM", true},
    {"--stats-file", early::stats_file.variable, true},
};

const char* asked;
char** arguments;  // behind `nearfield run`

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "nearfield %s: %s\n", std::strcmp(asked, "exec") ? "run" : asked, text.c_str());
  std::exit(2);
}

// `why`: the error that is printed if there is no Python, or if Python has called us.
[[noreturn]] void leave_to_python(const std::string& why) {
  if (!std::strcmp(asked, "last")) fail(why);
  std::vector<const char*> words = {asked};
  for (char** word = arguments; *word; ++word) words.push_back(*word);
  words.push_back(nullptr);
  become_python(words, why);
}

std::string value_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text ? text : "";
}

void set(const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); }

// Sets the variables of the options. Returns the command line that follows them.
char** read_options() {
  char** rest = arguments;
  while (*rest && **rest == '-') {
    const std::string word = *rest++;
    if (word == "--") break;
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Option* found = nullptr;
    for (const Option& option : options)
      if (name == option.name) found = &option;
    if (!found) leave_to_python("unknown option " + name);
    if (!found->has_value) set(found->variable, "1");
    else if (equals != word.npos) set(found->variable, word.substr(equals + 1));
    else if (*rest) set(found->variable, *rest++);
    else leave_to_python(name + " needs a value");
  }
  if (!*rest) leave_to_python("there is no command");
  return rest;
}

// Returns library_directory() if LD_PRELOAD can name files in it.
std::string loadable_directory() {
  std::string directory = library_directory();
  if (directory.empty() || access((directory + "/libnearfield.so").c_str(), F_OK) != 0)
    leave_to_python("libnearfield.so is not in " + directory);
  for (const char c : directory)  // blanks and colons separate names in LD_PRELOAD
    if (std::isspace(static_cast<unsigned char>(c)) || c == ':') leave_to_python("a blank or a colon in " + directory);
  return directory;
}

std::string preload(const std::string& directory) {
  std::string heap = value_of(early::heap.variable);
  if (heap.empty()) heap = early::heap.fallback;
  if (heap != early::heaps[0] && heap != early::heaps[1]) leave_to_python("there is no heap " + heap);
  std::string names = directory + "/libnearfield.so";
  if (heap == early::heaps[0]) names += " " + directory + "/libnearfield-heap.so";
  const std::string others = value_of("LD_PRELOAD");
  for (std::size_t at = 0, end; at < others.size(); at = end + 1) {
    end = std::min(others.find_first_of(": ", at), others.size());
    const std::string name = others.substr(at, end - at);
    // Ours may have been set already, outside of a container.
    if (!name.empty() && name.find("libnearfield") == name.npos) names += " " + name;
  }
  return names;
}

// Makes a path absolute, since programs change their directory. `pattern`: a % of the directory is written twice.
void make_absolute(const char* variable, bool pattern) {
  const std::string file = value_of(variable);
  char here[PATH_MAX];
  if (file.empty() || file[0] == '/' || !getcwd(here, sizeof here)) return;
  std::string text;
  for (const char* at = here; *at; ++at) text.append(pattern && *at == '%' ? 2 : 1, *at);
  set(variable, text + "/" + file);
}

// Readers of pipes wait until everybody has closed them.
void keep_only(int kept) {
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  const long most = sysconf(_SC_OPEN_MAX);
  if (kept > 3) syscall(SYS_close_range, 3, kept - 1, 0);
  if (syscall(SYS_close_range, kept + 1, ~0u, 0) != 0)  // Linux before 5.9
    for (int each = 3; each < most; ++each)
      if (each != kept) close(each);
}

// Returns the wait status of a process that has ended and is not our child; -1 if the kernel does not tell it. /proc
// tells it until the parent has waited for the process; from Linux 6.15 on the process's descriptor does.
int status_of(int process, pid_t id) {
  struct {
    std::uint64_t mask, group;
    std::uint32_t ids[11];
    std::int32_t exit_code;
  } info{};  // struct pidfd_info
  constexpr std::uint64_t exit = 1 << 3;
  info.mask = exit;
  if (ioctl(process, _IOWR(0xFF, 11, info), &info) == 0 && (info.mask & exit)) return info.exit_code;
  FILE* const file = std::fopen(("/proc/" + std::to_string(id) + "/stat").c_str(), "r");
  if (!file) return -1;
  char text[1024];
  text[std::fread(text, 1, sizeof text - 1, file)] = 0;
  std::fclose(file);
  const char* const name_end = std::strrchr(text, ')');
  const char* const last = std::strrchr(text, ' ');
  return name_end && std::strncmp(name_end, ") Z", 3) == 0 && last ? std::atoi(last) : -1;
}

// Returns the exit status by which a shell would report this wait status.
std::string shell_status(int status) {
  if (status < 0) return "-1";
  return std::to_string(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

// Starts the watcher. Returns the file into which processes write their outcomes; "" if no watcher can be started.
std::string report_afterwards(char** command) {
  std::string file = value_of("TMPDIR");
  if (file.empty()) file = "/tmp";
  file += "/nearfield-run-XXXXXX";
  const int descriptor = mkostemp(file.data(), O_CLOEXEC);
  if (descriptor < 0) return {};
  close(descriptor);
  const int launcher = memory::descriptors::above_standard(int(syscall(SYS_pidfd_open, getpid(), 0)));
  if (launcher < 0) {  // Linux before 5.3
    unlink(file.c_str());
    return {};
  }
  const pid_t id = getpid(), between = fork();
  if (between) {
    close(launcher);
    if (between > 0) waitpid(between, nullptr, 0);
    return file;
  }
  setsid();
  if (fork()) _exit(0);
  keep_only(launcher);
  pollfd end{launcher, POLLIN, 0};
  while (poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  int status = status_of(launcher, id);
  for (int tries = 0; status < 0 && tries < 10; ++tries) {  // between its end and its parent's wait
    usleep(1000);
    status = status_of(launcher, id);
  }
  say_afterwards(file, shell_status(status), command);
}

}  // namespace

void run(const char* what, char** words) {
  asked = what;
  arguments = words;
  char** const command = read_options();
  const std::string directory = loadable_directory(), names = preload(directory), level = value_of(early::log.variable);
  std::string outcome;
  if (std::strcmp(asked, "exec") && level != early::log_levels[0] && level != early::log_levels[1])
    outcome = report_afterwards(command);
  if (!outcome.empty()) set(early::outcome.variable, outcome);
  set("LD_PRELOAD", names);
  set(early::libraries.variable, directory);
  // Programs built with AddressSanitizer refuse to start when anything is preloaded before its library.
  const std::string sanitizer = value_of("ASAN_OPTIONS");
  if (sanitizer.find("verify_asan_link_order") == sanitizer.npos)
    set("ASAN_OPTIONS", sanitizer + (sanitizer.empty() ? "" : ":") + "verify_asan_link_order=0");
  if (std::strcmp(asked, "exec")) share_cpus_where_needed(command);
  make_absolute(early::log_file.variable, true);
  make_absolute(early::record.variable, false);
  make_absolute(early::trace.variable, true);
  make_absolute(early::stats_file.variable, true);
  execvp(command[0], command);
  const int why = errno;
  if (!outcome.empty()) unlink(outcome.c_str());  // there is nothing to say
  fail(std::string("cannot start ") + command[0] + ": " + std::strerror(why));
}

}  // namespace nearfield::tools
