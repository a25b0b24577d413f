#include "engine/base/settings.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/reach/ways.hpp"

namespace nearfield {
namespace {

constexpr SettingRow rows[] = {
    {"NEARFIELD", "on", "on or off: off passes every call to the host MPI"},
    {"NEARFIELD_LOG", "warn", "off, error, warn, info or debug: what is written to standard error"},
    {"NEARFIELD_STATS", "0",
     "1: the first rank prints calls, bytes and time per operation at exit; all: every rank does"},
    {"NEARFIELD_CHECK", "0", "1: ranks compare collective, root, operator, type and length before every call"},
    {"NEARFIELD_ALGORITHM", "", "forced or excluded algorithms, e.g. allreduce:partitioned;alltoall:^rounds"},
    {"NEARFIELD_CHOOSE", "trial",
     "model, trial or file: algorithms by the cost model, by trials among its best in the first calls, by a file"},
    {"NEARFIELD_TUNED", "", "file for NEARFIELD_CHOOSE=file; default: what `nearfield tune` has stored"},
    {"NEARFIELD_STALL_SECONDS", "60", "report once who waits for whom after this time; 0: never"},
    {"NEARFIELD_REACH", "", "ways of reaching a peer's memory to leave out, e.g. ^cma,^xpmem"},
    {"NEARFIELD_HEAP", "shared", "shared or off: whether `nearfield run` serves large allocations from shared memory"},
    {"NEARFIELD_HEAP_KEEP", "",
     "bytes of freed blocks that the shared heap keeps; default 256 MiB, at most 1/16 of memory"},
    {"NEARFIELD_WAIT", "auto", "auto, spin, yield or sleep: how a rank waits"},
    {"NEARFIELD_MEETING", "auto",
     "auto, flags, tree or gate: how all ranks of a communicator wait for each other; the first rank's counts"},
    {"NEARFIELD_MESSAGES", "on", "on or off: off leaves point to point to the host MPI"},
    {"NEARFIELD_PROTOCOL", "auto",
     "auto, queue, fastbox, copy-buffers, cma or mapped: how messages travel, where it is possible"},
    {"NEARFIELD_EAGER", "16384", "bytes up to which a send never waits for its receiver, whatever that does"},
    {"NEARFIELD_NODE", "", "pretend that this process lives on a node of this name (tests)"},
    {"NEARFIELD_MACHINE", "",
     "file with the machine's figures; default: what ranks or `nearfield model --calibrate` have stored, for this CPU"},
    {"NEARFIELD_LIBDIR", "", "directory of the libnearfield-*.so files; default: beside libnearfield.so"},
};

std::atomic<LogLevel> log_level{LogLevel::warn};

template <class T>
struct Choice {
  const char* text;
  T value;
};

template <class T, std::size_t N>
void choose(const char* variable, const Choice<T> (&choices)[N], T& into, std::string& complaints) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return;
  std::string names;
  for (const auto& c : choices) {
    if (!std::strcmp(text, c.text)) {
      into = c.value;
      return;
    }
    names += names.empty() ? c.text : std::string(", ") + c.text;
  }
  complaints += std::string(variable) + "=" + text + " is not one of " + names + "\n";
}

}  // namespace

std::span<const SettingRow> settings_table() { return rows; }

namespace {
std::string stored(const char* ending) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return (cache && *cache ? std::string(cache) : std::string(home ? home : "") + "/.cache") + "/nearfield/" + host +
         ending;
}
}  // namespace

std::string stored_machine() { return stored(".toml"); }
std::string stored_tuning() { return stored(".tuned.toml"); }

Settings read_settings(std::string& complaints) {
  Settings s;
  constexpr Choice<bool> switches[] = {{"on", true}, {"1", true}, {"off", false}, {"0", false}};
  choose("NEARFIELD", switches, s.enabled, complaints);
  choose("NEARFIELD_CHECK", switches, s.check, complaints);
  constexpr Choice<int> stats[] = {{"0", 0}, {"off", 0}, {"1", 1}, {"on", 1}, {"all", 2}};
  int stats_level = 0;
  choose("NEARFIELD_STATS", stats, stats_level, complaints);
  s.stats = stats_level > 0;
  s.stats_all = stats_level > 1;
  constexpr Choice<LogLevel> levels[] = {{"off", LogLevel::off},
                                         {"error", LogLevel::error},
                                         {"warn", LogLevel::warn},
                                         {"info", LogLevel::info},
                                         {"debug", LogLevel::debug}};
  choose("NEARFIELD_LOG", levels, s.log, complaints);
  constexpr Choice<WaitStyle> waits[] = {{"auto", WaitStyle::automatic},
                                         {"spin", WaitStyle::spin},
                                         {"yield", WaitStyle::yield},
                                         {"sleep", WaitStyle::sleep}};
  choose("NEARFIELD_WAIT", waits, s.wait, complaints);
  constexpr Choice<Meeting> meetings[] = {
      {"auto", Meeting::automatic}, {"flags", Meeting::flags}, {"tree", Meeting::tree}, {"gate", Meeting::gate}};
  choose("NEARFIELD_MEETING", meetings, s.meeting, complaints);
  choose("NEARFIELD_MESSAGES", switches, s.messages, complaints);
  constexpr Choice<Protocol> protocols[] = {{"auto", Protocol::automatic},  {"queue", Protocol::queue},
                                            {"fastbox", Protocol::fastbox}, {"copy-buffers", Protocol::copy_buffers},
                                            {"cma", Protocol::cma},         {"mapped", Protocol::mapped}};
  choose("NEARFIELD_PROTOCOL", protocols, s.protocol, complaints);
  constexpr Choice<Choosing> ways[] = {
      {"model", Choosing::model}, {"trial", Choosing::trial}, {"file", Choosing::file}};
  choose("NEARFIELD_CHOOSE", ways, s.choosing, complaints);
  if (s.choosing == Choosing::file) {
    const char* const path = std::getenv("NEARFIELD_TUNED");
    s.tuned = path && *path ? path : stored_tuning();
  }
  // The heap reads these two itself, before anything else runs, and takes its defaults where it cannot understand them.
  constexpr Choice<bool> heaps[] = {{"shared", true}, {"off", false}};
  bool shared_heap = true;
  choose("NEARFIELD_HEAP", heaps, shared_heap, complaints);
  if (const char* text = std::getenv("NEARFIELD_HEAP_KEEP"); text && *text) {
    char* end = nullptr;
    (void)std::strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end)
      complaints += std::string("NEARFIELD_HEAP_KEEP=") + text + " is not a number of bytes\n";
  }
  if (const char* text = std::getenv("NEARFIELD_EAGER"); text && *text) {
    char* end = nullptr;
    const long bytes = std::strtol(text, &end, 10);
    if (*end || bytes < 0) complaints += std::string("NEARFIELD_EAGER=") + text + " is not a number of bytes\n";
    else s.eager_bytes = std::uint64_t(bytes);
  }
  if (const char* text = std::getenv("NEARFIELD_ALGORITHM")) s.algorithm = text;
  if (const char* text = std::getenv("NEARFIELD_NODE")) s.node = text;
  if (const char* text = std::getenv("NEARFIELD_STALL_SECONDS"); text && *text) {
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    if (*end || !(seconds >= 0))
      complaints += std::string("NEARFIELD_STALL_SECONDS=") + text + " is not a number of seconds\n";
    else s.stall_seconds = seconds;
  }
  if (const char* text = std::getenv("NEARFIELD_REACH"); text && *text) {
    auto mask = reach::parse_left_out(text);
    if (mask) s.ways_left_out = *mask;
    else complaints += mask.error().text + "\n";
  }
  if (const char* text = std::getenv("NEARFIELD_MACHINE"); text && *text) {
    auto machine = read_machine(text);
    if (machine) s.machine = *machine;
    else complaints += "NEARFIELD_MACHINE: " + machine.error().text + "\n";
  } else {
    s.calibrate = true;
    if (auto machine = read_stored_machine(stored_machine())) s.machine = *machine;
  }
  set_log_level(s.log);
  return s;
}

void set_log_level(LogLevel level) { log_level.store(level, std::memory_order_relaxed); }

void log_line(LogLevel level, const char* format, ...) {
  if (level > log_level.load(std::memory_order_relaxed)) return;
  char line[2048];
  int used = std::snprintf(line, sizeof line, "nearfield: ");
  va_list arguments;
  va_start(arguments, format);
  used += std::vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  va_end(arguments);
  if (used > int(sizeof line) - 2) used = sizeof line - 2;
  line[used++] = '\n';
  // One write, so that lines of several ranks do not mix.
  if (write(STDERR_FILENO, line, used) < 0) return;
}

}  // namespace nearfield
