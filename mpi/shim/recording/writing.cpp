// Writes the recorded data to files: this rank's rows as JSON in the directory NEARFIELD_RECORD (nearfield/recording.py
// joins the ranks' files), and its trace for Chrome and Perfetto. Each file gets its name only when it is complete.
//
// Calls are timed in ticks of the processor. Two readings of CLOCK_MONOTONIC, at the beginning and now, convert them to
// nanoseconds, so that times of all ranks on a node are of one clock.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "engine/base/files.hpp"
#include "engine/base/json.hpp"
#include "engine/base/log_line.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/hang_report/sites.hpp"
#include "engine/settings/settings.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/recording/table.hpp"

namespace nearfield::mpi::recording {

// Facts of the process and its recording, from begin() on.
struct RecordingRun {
  Settings settings;
  int rank = 0, size = 1;
  pid_t pid = 0;
  char host[256] = {};
  std::string library, program, node, job;
  std::uint64_t ticks = 0, nanoseconds = 0;  // when it began
  std::uint64_t saved = 0, pause = 0;        // nanoseconds: time of the last save, pause until the next
};

namespace {

constinit RecordingRun* run = nullptr;
constinit std::mutex saving;

class Clock {
 public:
  Clock() : ticks_(processor::ticks()), now_(waiting::nanoseconds()) {
    rate_ = ticks_ > run->ticks ? double(now_ - run->nanoseconds) / double(ticks_ - run->ticks) : 1;
  }
  std::uint64_t span(std::uint64_t ticks) const { return std::uint64_t(double(ticks) * rate_); }
  std::uint64_t at(std::uint64_t ticks) const { return now_ - span(ticks_ - ticks); }
  std::uint64_t ticks_in(std::uint64_t nanoseconds) const { return std::uint64_t(double(nanoseconds) / rate_); }
  std::uint64_t now() const { return now_; }

 private:
  std::uint64_t ticks_, now_;
  double rate_;
};

using json::quoted;

std::string number(std::uint64_t n) { return std::to_string(n); }

// A call site in the program: its object, the offset in that file, and the nearest symbol.
std::string site_text(const void* site) {
  const hang_report::Site at = hang_report::site_of(site);
  return "{\"object\":" + quoted(at.object) + ",\"offset\":" + number(at.offset) + ",\"symbol\":" + quoted(at.symbol) +
         "}";
}

// Gives numbers to entries that the file lists once and refers to by number.
template <class T>
struct Numbered {
  std::map<T, std::size_t> numbers;
  std::vector<T> all;
  std::size_t of(T one) {
    const auto [at, fresh] = numbers.try_emplace(one, all.size());
    if (fresh) all.push_back(one);
    return at->second;
  }
};

template <class Each>
void each_thread(Each each) {
  for (Thread* one = threads.load(std::memory_order_acquire); one; one = one->next) each(*one);  // SYNC: thread-tables
}

std::string how_served(const CallSiteRow& row) { return row.algorithm ? row.algorithm : ""; }

// Estimates the time in calls: all waits, and the other time extrapolated from the timed calls.
std::uint64_t time_of(const CallSiteRow& row, const Clock& clock) {
  const std::uint64_t timed = row.timed.value(), all = clock.span(row.ticks.value());
  if (!timed) return row.waited.value();
  const std::uint64_t besides = all - std::min(all, row.waited_timed.value());
  return row.waited.value() + std::uint64_t(double(besides) * double(row.calls.value()) / double(timed));
}

std::string context_text(const KnownCommunicator& one) {
  char text[48];
  std::snprintf(text, sizeof text, "%s%llx.%d", one.agreed ? "" : "host:", (unsigned long long)one.context, one.first);
  return text;
}

std::string list(const std::vector<int>& ranks) {
  std::string text = "[";
  for (std::size_t i = 0; i < ranks.size(); ++i) text.append(i ? "," : "").append(std::to_string(ranks[i]));
  return text + "]";
}

// [[rank, messages, bytes], ...]: to whom this rank has sent.
std::string sent_text(const KnownCommunicator& one) {
  std::string text = "[";
  for (int i = 0; i < one.partners; ++i)
    if (const SentTo& to = one.sent[std::size_t(i)]; to.messages.load(std::memory_order_relaxed))
      text += std::string(text.size() > 1 ? ",[" : "[") + std::to_string(i) + "," +
              number(to.messages.load(std::memory_order_relaxed)) + "," +
              number(to.bytes.load(std::memory_order_relaxed)) + "]";
  return text + "]";
}

std::string record_text(const char* ending, const Clock& clock, const std::string& trace) {
  Numbered<const void*> sites;
  Numbered<const KnownCommunicator*> communicators;
  std::uint64_t rows_lost = calls_unkept.load(std::memory_order_relaxed), events_lost = 0;
  std::string rows;
  each_thread([&](Thread& thread) {
    rows_lost += thread.rows_lost.value();
    const std::uint64_t events = thread.events.value();
    events_lost += events > events_of_a_thread ? events - events_of_a_thread : 0;
    for (CallSiteRow& row : thread.rows) {
      const Function function = row.function.load(std::memory_order_acquire);  // SYNC: row-function
      if (function == Function::none) continue;
      rows += std::string(rows.empty() ? "\n" : ",\n") + "{\"function\":" + quoted(name_of(function)) +
              ",\"kind\":" + quoted(name(traits_of(function).kind)) + ",\"site\":" + number(sites.of(row.site)) +
              ",\"communicator\":" + (row.communicator ? number(communicators.of(row.communicator)) : "null") +
              ",\"bytes_from\":" + number(row.size_class ? std::uint64_t{1} << (row.size_class - 1) : 0) +
              ",\"by\":" + quoted(how_served(row)) + ",\"thread\":" + number(thread.number) +
              ",\"calls\":" + number(row.calls.value()) + ",\"bytes\":" + number(row.bytes.value()) +
              ",\"ns\":" + number(time_of(row, clock)) + ",\"waiting_ns\":" + number(row.waited.value()) +
              ",\"timed\":" + number(row.timed.value()) + ",\"longest_ns\":" + number(clock.span(row.longest.value())) +
              "}";
    }
  });
  std::string text = "{\"format\":1,\"rank\":" + std::to_string(run->rank) + ",\"size\":" + std::to_string(run->size) +
                     ",\"host\":" + quoted(run->host) + ",\"pid\":" + std::to_string(run->pid) +
                     ",\"node\":" + quoted(run->node) + ",\"job\":" + quoted(run->job) +
                     ",\"mpi\":" + quoted(run->library) + ",\"program\":" + quoted(run->program) +
                     ",\"ending\":" + quoted(ending) + ",\"began_ns\":" + number(run->nanoseconds) +
                     ",\"ns\":" + number(clock.now() - run->nanoseconds);
  const team::Process* const node = process_ever();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto nanoseconds = [](const timeval& t) {
    return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_usec) * 1000u;
  };
  text += ",\"cpu_ns\":" + number(nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime)) +
          ",\"contention\":" + number(node ? node->contention().begun() : 0) +
          ",\"contention_ns\":" + number(node ? node->contention().lasted(clock.now()) : 0) +
          ",\"rows_lost\":" + number(rows_lost) + ",\"events_lost\":" + number(events_lost) +
          ",\"trace\":" + (trace.empty() ? "null" : quoted(trace)) + ",\n\"sites\":[";
  for (std::size_t i = 0; i < sites.all.size(); ++i) text += std::string(i ? ",\n" : "\n") + site_text(sites.all[i]);
  text += "],\n\"communicators\":[";
  for (std::size_t i = 0; i < communicators.all.size(); ++i) {
    const KnownCommunicator& one = *communicators.all[i];
    text += std::string(i ? ",\n" : "\n") + "{\"context\":" + quoted(context_text(one)) +
            ",\"name\":" + quoted(one.name) + ",\"rank\":" + std::to_string(one.rank) +
            ",\"size\":" + std::to_string(one.size) + ",\"inter\":" + (one.inter ? "true" : "false") +
            ",\"members\":" + list(one.members) + ",\"remote\":" + list(one.remote) + ",\"sent\":" + sent_text(one) +
            "}";
  }
  return text + "],\n\"rows\":[" + rows + "]}\n";
}

std::string microseconds(std::uint64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%03llu", (unsigned long long)(nanoseconds / 1000),
                (unsigned long long)(nanoseconds % 1000));
  return text;
}

// The events of all threads, by their start.
std::string trace_text(const Clock& clock) {
  struct One {
    std::uint64_t start;
    const Event* event;
    const Thread* thread;
  };
  std::vector<One> all;
  std::uint64_t lost = 0;
  std::map<const void*, std::string> sites;
  each_thread([&](Thread& thread) {
    const std::uint64_t events = thread.events.value(), kept = std::min<std::uint64_t>(events, events_of_a_thread);
    lost += events - kept;
    for (std::uint64_t i = 0; i < kept; ++i) all.push_back({thread.ring[i].start, &thread.ring[i], &thread});
  });
  std::sort(all.begin(), all.end(), [](const One& a, const One& b) { return a.start < b.start; });
  const std::string pid = ",\"pid\":" + std::to_string(run->rank);
  std::string text = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"rank\":" + std::to_string(run->rank) +
                     ",\"host\":" + quoted(run->host) + ",\"events_lost\":" + number(lost) +
                     "},\n\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\"" + pid +
                     ",\"args\":{\"name\":" + quoted("rank " + std::to_string(run->rank) + " on " + run->host) + "}}";
  for (const One& one : all) {
    const Event& event = *one.event;
    const CallSiteRow& row = one.thread->rows[event.row];
    const Function function = row.function.load(std::memory_order_acquire);  // SYNC: row-function
    const auto [site, fresh] = sites.try_emplace(row.site);
    if (fresh) {
      Dl_info info{};
      if (dladdr(row.site, &info) && info.dli_sname) site->second = info.dli_sname;
    }
    text += std::string(",\n{\"ph\":\"X\",\"name\":") + quoted(name_of(function)) +
            ",\"cat\":" + quoted(name(traits_of(function).kind)) + pid + ",\"tid\":" + number(one.thread->number) +
            ",\"ts\":" + microseconds(clock.at(event.start)) +
            ",\"dur\":" + microseconds(clock.span(event.end - event.start)) +
            ",\"args\":{\"bytes\":" + number(event.bytes) + ",\"waiting\":" + microseconds(event.waited) +
            ",\"by\":" + quoted(how_served(row));
    if (row.communicator)
      text += ",\"communicator\":" + quoted(context_text(*row.communicator)) +
              ",\"name\":" + quoted(row.communicator->name);
    if (traits_of(function).kind == FunctionKind::collective) text += ",\"number\":" + number(event.number);
    if (event.partner >= 0) text += ",\"partner\":" + std::to_string(event.partner);
    if (!site->second.empty()) text += ",\"in\":" + quoted(site->second);
    text += "}}";
  }
  return text + "\n]}\n";
}

// Returns false and logs a warning if the file cannot be written.
bool write_or_say(const std::string& path, const std::string& text) {
  if (write_whole(path, text)) return true;
  log_line(LogLevel::warn, "the record of this rank cannot be written to %s: %s", path.c_str(), std::strerror(errno));
  return false;
}

// Invalid patterns are refused when settings are read, so only the expanded length can be wrong.
std::string trace_path() {
  char path[4096];
  const char* const wrong =
      early::expand_pattern(run->settings.trace.c_str(), early::speaker(run->rank), path, sizeof path);
  if (wrong) log_line(LogLevel::warn, "NEARFIELD_TRACE=%s: %s", run->settings.trace.c_str(), wrong);
  return wrong ? "" : path;
}

std::string hexadecimal(std::uint64_t n) {
  char text[20];
  std::snprintf(text, sizeof text, "%llx", (unsigned long long)n);
  return text;
}

void save_locked(const char* ending, bool last) {
  try {
    const Clock clock;
    std::string trace;
    if (last && !run->settings.trace.empty()) {
      trace = trace_path();
      if (!trace.empty() && !write_or_say(trace, trace_text(clock))) trace.clear();
    }
    const std::string& directory = run->settings.record;
    if (!directory.empty())
      // Ranks in containers of their own may have the same number as processes.
      write_or_say(
          directory + "/" + run->host + "." + std::to_string(run->pid) + "." + std::to_string(run->rank) + ".json",
          record_text(ending, clock, trace));
    // Intermediate saves take at most a thousandth of the time.
    const std::uint64_t took = waiting::nanoseconds() - clock.now();
    run->pause = std::max(std::min<std::uint64_t>(2 * run->pause, 60'000'000'000), took * 1000);
    next_save.store(last ? ~std::uint64_t{0} : processor::ticks() + clock.ticks_in(run->pause),
                    std::memory_order_relaxed);
  } catch (const OutOfMemory&) {
    log_line(LogLevel::warn, "the record of this rank cannot be written: out of memory");
  }
}

void finish(const char* ending) {
  if (!run || getpid() != run->pid) return;  // a child of fork() has its parent's records, which the parent writes
  const std::lock_guard lock(saving);
  if (active.exchange(false, std::memory_order_relaxed)) save_locked(ending, true);
}

}  // namespace

void save_so_far(std::uint64_t /*now*/) {
  if (getpid() != run->pid) return;
  const std::unique_lock lock(saving, std::try_to_lock);
  if (lock && active.load(std::memory_order_relaxed)) save_locked("", false);
}

void begin() {
  if (!wanted() || run) return;
  run = new RecordingRun;
  std::string complaints;
  run->settings = read_settings(complaints);
  run->pid = getpid();
  gethostname(run->host, sizeof run->host - 1);
  host.Comm_rank(host.world, &run->rank);
  host.Comm_size(host.world, &run->size);
  char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
  int length = 0;
  if (host.Get_library_version(text, &length) == MPI_SUCCESS) run->library.assign(text, std::strcspn(text, "\n"));
  if (const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC); file >= 0) {
    char line[1024];
    const ssize_t read_bytes = read(file, line, sizeof line);
    for (ssize_t i = 0; i + 1 < read_bytes; ++i) run->program += line[i] ? line[i] : ' ';
    close(file);
  }
  // Distinguishes jobs started by one command, of which one may have been killed before all its ranks had written.
  if (team::Process* const node = process_ever(); node && node->hang_reporter())
    run->node = hexadecimal(node->node_id()), run->job = hexadecimal(node->hang_reporter()->job());
  run->settings.record = absolute_path(run->settings.record, false);
  const std::string& directory = run->settings.record;
  const bool there = !directory.empty() && (mkdir(directory.c_str(), 0777) == 0 || errno == EEXIST);
  if (!directory.empty() && !there)
    log_line(LogLevel::warn, "cannot make the directory %s: %s", directory.c_str(), std::strerror(errno));
  tracing = !run->settings.trace.empty();
  all_timed = tracing || !the_messenger;
  run->ticks = processor::ticks();
  run->nanoseconds = waiting::nanoseconds();
  if (there) save_locked("", false);  // so that a program that hangs or is killed has a file
  run->pause = 1'000'000'000;
  next_save.store(run->settings.record.empty() ? ~std::uint64_t{0} : run->ticks + processor::ticks_in(run->pause),
                  std::memory_order_relaxed);
  std::atexit([] { finish("exit"); });
  active.store(true, std::memory_order_relaxed);
}

void end() { finish("MPI_Finalize"); }

}  // namespace nearfield::mpi::recording
