#include "engine/settings/settings.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "engine/base/files.hpp"
#include "engine/reach/mappers.hpp"

namespace nearfield::settings {
namespace {

// ---------------------------------------------------------------- parsers: text to field; they return an error text

template <class T>
struct Named {
  const char* name;
  T value;
};

template <class Names>
std::string none_of(const Names& names) {
  std::string all;
  for (const char* each : names) all += (all.empty() ? "" : ", ") + std::string(each);
  return " is not one of " + all;
}

// Names of values are arrays `names<T>`.
template <class T>
constexpr Named<T> names[] = {};
template <>
constexpr Named<bool> names<bool>[] = {{"on", true}, {"1", true}, {"off", false}, {"0", false}};
template <>
constexpr Named<Choosing> names<Choosing>[] = {
    {"model", Choosing::model}, {"trial", Choosing::trial}, {"file", Choosing::file}};
template <>
constexpr Named<WaitStyle> names<WaitStyle>[] = {{"auto", WaitStyle::automatic},
                                                 {"spin", WaitStyle::spin},
                                                 {"yield", WaitStyle::yield},
                                                 {"sleep", WaitStyle::sleep}};
template <>
constexpr Named<Progressing> names<Progressing>[] = {{"calls", Progressing::calls}, {"thread", Progressing::thread}};
template <>
constexpr Named<Meeting> names<Meeting>[] = {
    {"auto", Meeting::automatic}, {"flags", Meeting::flags}, {"tree", Meeting::tree}, {"gate", Meeting::gate}};
template <>
constexpr Named<Protocol> names<Protocol>[] = {{"auto", Protocol::automatic},  {"queue", Protocol::queue},
                                               {"fastbox", Protocol::fastbox}, {"copy-buffers", Protocol::copy_buffers},
                                               {"cma", Protocol::cma},         {"mapped", Protocol::mapped}};
template <>
constexpr Named<Publishing> names<Publishing>[] = {{"auto", Publishing::automatic},
                                                   {"keep", Publishing::keep},
                                                   {"ahead", Publishing::ahead},
                                                   {"demote", Publishing::demote}};
template <>
constexpr Named<Reporting> names<Reporting>[] = {{"0", Reporting::none},
                                                 {"off", Reporting::none},
                                                 {"1", Reporting::first_rank},
                                                 {"on", Reporting::first_rank},
                                                 {"all", Reporting::all_ranks}};

template <class T>
std::string read_into(const char* text, T& field) {
  std::string all;
  for (const auto& [name, value] : names<T>) {
    if (!std::strcmp(text, name)) {
      field = value;
      return {};
    }
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  return " is not one of " + all;
}
std::string read_into(const char* text, std::string& field) {
  field = text;
  return {};
}
std::string read_into(const char* text, std::uint64_t& bytes) {
  return early::read_bytes(text, bytes) ? "" : " is not a number of bytes";
}
std::string read_into(const char* text, double& seconds) {
  char* end = nullptr;
  const double read = std::strtod(text, &end);
  if (*end || !(read >= 0)) return " is not a number of seconds";
  seconds = read;
  return {};
}

template <auto Settings::*field>
constexpr SettingReader into{[](const char* text, Settings& settings) { return read_into(text, settings.*field); }};

std::string read_log_level(const char* text, Settings& settings) {
  const int level = early::log_level(text);
  if (level < 0) return none_of(early::log_levels);
  settings.log = LogLevel(level);
  return {};
}
std::string ways(const char* text, Settings& settings) {
  auto mask = reach::parse_left_out(text);
  if (!mask) return ": " + mask.error().text;
  settings.ways_left_out = *mask;
  return {};
}
std::string placement(const char* text, Settings& settings) {
  auto wishes = memory::parse_wishes(text);
  if (!wishes) return ": " + wishes.error().text;
  settings.memory = std::move(*wishes);
  return {};
}
std::string machine(const char* text, Settings& settings) {
  auto read = read_machine(text);
  if (!read) return ": " + read.error().text;
  settings.machine = *read;
  return {};
}
// What is preloaded reads these settings itself, by the same rules; these parsers only find errors.
std::string heap(const char* text, Settings&) {
  for (const char* each : early::heaps)
    if (!std::strcmp(text, each)) return {};
  return none_of(early::heaps);
}
std::string shm(const char* text, Settings&) {
  bool on = true;
  return read_into(text, on);
}
std::string heap_keep(const char* text, Settings&) {
  std::uint64_t bytes = 0;
  return read_into(text, bytes);
}
// A pattern of file names, one for each process.
template <std::string Settings::*field>
std::string file_of_each(const char* text, Settings& settings) {
  bool apart = false;
  for (const char* at = text; (at = std::strchr(at, '%')); at += 2) {
    if (!at[1] || !std::strchr("rph%", at[1])) return ": after % write r, p, h or %";
    apart |= at[1] == 'r' || at[1] == 'p';
  }
  settings.*field = absolute_path(text, true);
  return apart ? "" : ": without %r or %p all ranks would write one file";
}
std::string anything(const char*, Settings&) { return {}; }

// ---------------------------------------------------------------- the table

using enum Decides;

constexpr SettingRow rows[] = {
    {{"NEARFIELD", "on", any_rank,
      "`off` hands every call to the host MPI, and switches the shared heap off unless NEARFIELD_HEAP is given. If one "
      "rank of a communicator has `off`, the host serves all its ranks"},
     into<&Settings::enabled>},
    {early::log, {read_log_level}},
    {early::log_file, {anything}},
    {{"NEARFIELD_STATS", "0", each_rank,
      "`1`: the first rank prints statistics at the end: calls, bytes and time of each operation, the calls "
      "that went to the host with the reasons, and the memory in use. `all`: every rank prints them"},
     into<&Settings::stats>},
    {early::stats_file, {file_of_each<&Settings::stats_file>}},
    {early::record, into<&Settings::record>},
    {early::trace, {file_of_each<&Settings::trace>}},
    {{"NEARFIELD_CHECK", "0", first_rank,
      "`1`: before every call, ranks compare collective, root, operator, type and length. A difference is "
      "an error that names two ranks and their calls"},
     into<&Settings::check>},
    {{"NEARFIELD_ALGORITHM", "", first_rank,
      "`allreduce:partitioned` forces an algorithm wherever it applies; if several are named, trials choose. "
      "`alltoall:^slots` excludes one. `;` separates operations, and `,` separates names. `nearfield info "
      "--all` lists the names"},
     into<&Settings::algorithm>},
    {{"NEARFIELD_CHOOSE", "trial", first_rank,
      "how algorithms are chosen. `model`: by the cost model alone. `trial`: by the cost model first, then "
      "by timing several algorithms in the program's calls of each size. `file`: by the file that `nearfield "
      "tune` writes, and by the model for calls that are not in it"},
     into<&Settings::choosing>},
    {{"NEARFIELD_TUNED", "", first_rank,
      "the file for `NEARFIELD_CHOOSE=file`; default: the one that `nearfield tune` has stored in "
      "`$XDG_CACHE_HOME/nearfield`"},
     into<&Settings::tuned>},
    {{"NEARFIELD_REPRODUCIBLE", "0", first_rank,
      "`1`: reductions of floating-point numbers over several nodes combine operands in rank order, so they "
      "give the same bits for every placement. Each node then sends the data of each of its ranks"},
     into<&Settings::reproducible>},
    {{"NEARFIELD_STALL_SECONDS", "60", each_rank,
      "seconds after which a waiting rank writes a hang report, which says where all ranks of the node are "
      "and what seems to block them (docs/user/troubleshooting.md). `0`: never"},
     into<&Settings::stall_seconds>},
    {{"NEARFIELD_STALL_SIGNAL", "", each_rank,
      "a signal that writes a hang report at once: `USR1`, `USR2`, `QUIT`, `WINCH` or a number. Nearfield "
      "never replaces a handler of the program"},
     into<&Settings::stall_signal>},
    {{"NEARFIELD_REACH", "", each_rank,
      "ways of reaching another rank's memory that Nearfield must not use: `^mapped` (segment and shared "
      "heap), `^heap`, `^xpmem`, `^cma`"},
     {ways}},
    {{"NEARFIELD_MEMORY", "", each_rank,
      "on which NUMA nodes memory lies: `COMPONENT:WORD,WORD`, separated by `;`. Components are `fastboxes`, "
      "`copy-buffers`, `windows`, `heap`, `control`, `alloc-mem` and `all`. Words are `bandwidth`, "
      "`latency`, `capacity`, `local`, numbers of nodes, `interleave`, `max=SIZE` and `forced` "
      "(docs/reference/placement.md)"},
     {placement}},
    {early::heap, {heap}},
    {early::heap_keep, {heap_keep}},
    {early::shm, {shm}},
    {{"NEARFIELD_MACHINE", "", first_rank,
      "a file with the measured figures of the machine, which the cost model uses; default: the one that ranks "
      "or `nearfield model --calibrate` have stored in `$XDG_CACHE_HOME/nearfield` for this CPU, else "
      "built-in figures. `span` (bytes over which copy buffers rotate) and `own` (bytes of a core's private "
      "cache) come from the system unless the file has them"},
     {machine}},
    {{"NEARFIELD_MESSAGES", "on", any_rank,
      "`off` leaves point-to-point calls to the host, and collectives that overlap other calls. If one rank "
      "has `off`, this holds for all ranks"},
     into<&Settings::messages>},
    {{"NEARFIELD_PROTOCOL", "auto", each_rank,
      "the protocol of messages, where it is possible. For short messages: `queue` (no fastboxes) or `fastbox` "
      "(from a pair's first message on). For long messages: `copy-buffers`, `cma` or `mapped`. A long message "
      "that cannot use the protocol goes through copy buffers"},
     into<&Settings::protocol>},
    {{"NEARFIELD_PUBLISH", "auto", each_rank,
      "how a sender publishes short messages of several cache lines. `keep`: the lines stay with the "
      "sender. `ahead`: a waiting receiver requests some lines before they are written. `demote`: the "
      "sender moves them to the shared cache (CLDEMOTE, Intel from Sapphire Rapids on). `auto`: `demote` if "
      "the processor has it, else `ahead` up to four lines and `keep` beyond; `keep` with more ranks than "
      "CPUs"},
     into<&Settings::publishing>},
    {{"NEARFIELD_EAGER", "16384", each_rank,
      "the longest message in bytes that is eager: its send never waits for the receiver. If no copy buffer is "
      "free, the sender writes such a message into the queue or the fastbox together with its envelope"},
     into<&Settings::eager_bytes>},
    {{"NEARFIELD_DEFER", "8", first_rank,
      "how many collective calls the host serves first on each communicator that the program creates; then "
      "Nearfield allocates memory for the communicator. `0`: none"},
     into<&Settings::deferred_calls>},
    {{"NEARFIELD_WAIT", "auto", each_rank,
      "how ranks wait: `spin`, `yield` or `sleep`; `auto` depends on the numbers of ranks and CPUs"},
     into<&Settings::wait>},
    {{"NEARFIELD_PROGRESS", "calls", each_rank,
      "`thread`: each rank has a thread that progresses its messages and collectives while the program "
      "computes. The thread runs on a CPU that no rank uses; if there is none, it runs now and then. It does "
      "not progress the host"},
     into<&Settings::progress>},
    {{"NEARFIELD_MEETING", "auto", first_rank,
      "the kind of barrier inside a communicator. `flags`: each rank reads one cache line of every other rank. "
      "`tree`: ranks meet along caches and packages. `gate`: all ranks add to one counter. `auto`: `flags` up to "
      "8 ranks (16 that share a last-level cache), `tree` above, and `gate` with more ranks than CPUs"},
     into<&Settings::meeting>},
    {{"NEARFIELD_NODE", "", each_rank, "the process pretends to be on a node of this name; for tests of several nodes"},
     into<&Settings::node>},
    {early::libraries, {anything}},
    {early::outcome, {anything}},
};

const char* given(const char* variable) {
  const char* const text = std::getenv(variable);
  return text && *text ? text : nullptr;
}

std::string stored(const char* ending) {
  const char* const cache = given("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return (cache ? std::string(cache) : std::string(home ? home : "") + "/.cache") + "/nearfield/" + host + ending;
}

}  // namespace

std::span<const SettingRow> settings_table() { return rows; }

const char* name(Decides decides) {
  constexpr const char* of[] = {"each rank", "off in any rank", "the first rank", "the heap of each rank"};
  return of[std::size_t(decides)];
}

std::string stored_machine() { return stored(".toml"); }
std::string stored_tuning() { return stored(".tuned.toml"); }

Settings::Settings() {
  for (const SettingRow& row : rows)
    if (*row.fallback) static_cast<void>(row.read(row.fallback, *this));  // a test parses all defaults
}

Settings read_settings(std::string& complaints) {
  Settings s;
  for (const SettingRow& row : rows) {
    const char* const text = given(row.variable);
    if (!text) continue;
    const std::string wrong = row.read(text, s);
    if (!wrong.empty()) complaints += std::string(row.variable) + "=" + text + wrong + "\n";
  }
  if (s.choosing == Choosing::file && s.tuned.empty()) s.tuned = stored_tuning();
  if (!given("NEARFIELD_MACHINE")) {
    s.calibrate = true;
    if (auto machine = read_stored_machine(stored_machine())) s.machine = *machine;
  }
  set_log_level(s.log);
  return s;
}

}  // namespace nearfield::settings
