// The table of statistics: a row for every operation, then for every function that the host serves always, then
// messages. Rows without calls are left out. Tests read its columns.
#include "mpi/shim/stats.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/reach/shared_heap.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

std::atomic<bool> counts_are_kept{false};
std::atomic<std::uint64_t> host_messages{0};
OneSidedCounts one_sided_counts;

namespace {

Tally tallies[collectives::operation_count];
messages::Counts last_message_counts;
HostCalls* first_calls;  // by name, from the last on that was entered
std::mutex entering;

// Reading and writing by an own file pointer, or at an offset. Some libraries do so element by element.
bool is_own_file_access(std::string_view name) {
  const std::size_t file = name.find("File_");
  if (file == name.npos) return false;
  name.remove_prefix(file + 5);
  if (name.ends_with("_c")) name.remove_suffix(2);
  return name == "read" || name == "write" || name == "read_at" || name == "write_at" || name == "seek";
}

void enter_locked(HostCalls& calls, const char* name) {
  if (calls.name) return;
  calls.name = name;
  calls.moves_data = std::strstr(name, "read") || std::strstr(name, "write") || std::strstr(name, "_recv") ||
                     std::strstr(name, "_send");
  calls.meets_others = !is_own_file_access(name);
  calls.next = first_calls;
  first_calls = &calls;
}

}  // namespace

void enter(HostCalls& calls, const char* name) {
  const std::lock_guard lock(entering);
  enter_locked(calls, name);
}

HostCalls& host_calls(const char* name) {
  const std::lock_guard lock(entering);
  for (HostCalls* calls = first_calls; calls; calls = calls->next)
    if (!std::strcmp(calls->name, name)) return *calls;
  auto* const calls = new HostCalls;  // never destroyed
  enter_locked(*calls, name);
  return *calls;
}

HostTotals host_totals() {
  const std::lock_guard lock(entering);
  HostTotals all;
  for (const HostCalls* calls = first_calls; calls; calls = calls->next) {
    all.calls += calls->calls.load(std::memory_order_relaxed);
    all.nanoseconds += calls->nanoseconds.load(std::memory_order_relaxed);
  }
  return all;
}

void begin_counting() { counts_are_kept.store(true, std::memory_order_relaxed); }

messages::Counts message_counts() {
  const messages::Messenger* const messenger = the_messenger;
  return messenger ? messenger->counts() : last_message_counts;
}

void keep_message_counts() { last_message_counts = message_counts(); }

const char* name(Reason reason) {
  static constexpr const char* names[] = {"communicator not on one node",
                                          "switched off",
                                          "argument",
                                          "datatype",
                                          "user-defined operator",
                                          "no algorithm",
                                          "no memory for copy buffers",
                                          "communicator is young"};
  static_assert(sizeof names / sizeof *names == std::size_t(Reason::count));
  return names[std::size_t(reason)];
}

Tally& tally(collectives::Collective collective) { return tallies[std::size_t(collective)]; }

void count_call(collectives::Collective collective, std::uint64_t bytes, std::uint64_t start) {
  Tally& t = tally(collective);
  t.calls.fetch_add(1, std::memory_order_relaxed);
  t.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (start) t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
}

std::string window_rows() {
  const auto count = [](const std::atomic<std::uint64_t>& one) {
    return (unsigned long long)one.load(std::memory_order_relaxed);
  };
  const auto windows = [&](WhoseWindow whose) { return count(one_sided_counts.windows[std::size_t(whose)]); };
  const auto reach = windows(WhoseWindow::reach), dynamic = windows(WhoseWindow::dynamic),
             elsewhere = windows(WhoseWindow::communicator), ours = windows(WhoseWindow::ours);
  if (!(ours + reach + dynamic + elsewhere)) return {};
  char line[512];
  std::snprintf(line, sizeof line,
                "  windows                %12llu served, %llu left to the host (communicator not on one node %llu, "
                "memory out of reach %llu, dynamic %llu)\n"
                "  one-sided operations   %12llu puts and gets, %llu accumulates, %llu bytes\n",
                ours, reach + dynamic + elsewhere, elsewhere, reach, dynamic, count(one_sided_counts.moves),
                count(one_sided_counts.accumulates), count(one_sided_counts.bytes));
  return line;
}

namespace {
std::string company_row() {
  const waiting::Company& company = waiting::company;
  if (!company.begun()) return {};
  char line[160];
  std::snprintf(line, sizeof line,
                "  company                %12llu times, %.6f seconds in all, others wanted the CPUs of this process\n",
                (unsigned long long)company.begun(), double(company.lasted(waiting::nanoseconds())) * 1e-9);
  return line;
}

// Where memory lies for which places were asked, a row for each component.
std::string memory_rows() {
  team::Node* const n = node_ever();
  if (!n) return {};
  n->count_heap();
  std::string text;
  for (std::size_t c = 0; c < memory::component_count; ++c) {
    const auto component = memory::Component(c);
    const memory::Placer::Counts counts = n->placer().counts(component);
    const memory::Wish* const wish = n->placer().wish(component);
    if (!wish && !counts.asked) continue;
    char line[768];
    std::snprintf(line, sizeof line,
                  "  memory: %-14s %12zu bytes asked for, %zu there, %zu elsewhere, %zu unknown%s%s\n", name(component),
                  counts.asked, counts.placed, counts.elsewhere, counts.unknown(), wish ? ": " : "",
                  wish ? (wish->text + ": " + memory::Placer::describe(*wish)).c_str() : "");
    text += line;
  }
  return text;
}

// What each component takes of this rank's memory, and what `nearfield plan --job` wants to know besides.
std::string usage_rows() {
  team::Node* const n = node_ever();
  if (!n) return {};
  std::string text;
  char line[160];
  auto row = [&](const char* what, std::size_t now, std::size_t most) {
    if (!most) return;
    std::snprintf(line, sizeof line, "  in use: %-14s %12zu bytes, %zu at most\n", what, now, most);
    text += line;
  };
  for (std::size_t c = 0; c < memory::component_count; ++c) {
    const auto component = memory::Component(c);
    const memory::Arena::Held held = n->arena().held(component);
    if (component != memory::Component::heap) row(name(component), held.now, held.most);
  }
  if (const reach::SharedHeap* const heap = reach::SharedHeap::find()) {
    const nearfield_heap_statistics now = heap->statistics();
    row(name(memory::Component::heap), now.bytes_in_use, now.bytes_highest);
  }
  std::snprintf(line, sizeof line, "  in use: %-14s %12zu bytes of pages\n", "segment", n->segment().memory());
  text += line;
  if (the_messenger) {
    std::snprintf(line, sizeof line, "  ranks of this node     %12d, %llu of them by a fastbox\n",
                  the_messenger->members(), (unsigned long long)the_messenger->counts().fastboxes);
    text += line;
  }
  return text;
}
}  // namespace

void print_stats(int rank, int size) {
  char line[768];
  std::snprintf(line, sizeof line, "nearfield: rank %d of %d\n  %-22s %12s %14s %12s %12s  %s\n", rank, size,
                "operation", "calls", "bytes", "seconds", "to the host", "why");
  std::string text = line;
  auto row = [&](const char* operation, const Tally& t) {
    if (!t.calls.load(std::memory_order_relaxed)) return;
    std::uint64_t to_host = 0;
    std::string why;
    for (std::size_t r = 0; r < std::size_t(Reason::count); ++r) {
      const std::uint64_t n = t.host[r].load(std::memory_order_relaxed);
      if (!n) continue;
      to_host += n;
      why += (why.empty() ? "" : ", ") + std::string(name(Reason(r))) + " " + std::to_string(n);
    }
    std::snprintf(line, sizeof line, "  %-22s %12llu %14llu %12.6f %12llu  %s\n", operation,
                  (unsigned long long)t.calls.load(std::memory_order_relaxed),
                  (unsigned long long)t.bytes.load(std::memory_order_relaxed),
                  double(t.nanoseconds.load(std::memory_order_relaxed)) * 1e-9, (unsigned long long)to_host,
                  why.c_str());
    text += line;
  };
  for (std::size_t c = 0; c < collectives::operation_count; ++c)
    row(collectives::name(collectives::Collective(c)), tallies[c]);
  for (const HostCalls* calls = first_calls; calls; calls = calls->next) {
    const auto n = (unsigned long long)calls->calls.load(std::memory_order_relaxed);
    if (!n) continue;
    std::snprintf(line, sizeof line, "  %-22s %12llu %14s %12.6f %12llu  always\n", calls->name, n, "-",
                  double(calls->nanoseconds.load(std::memory_order_relaxed)) * 1e-9, n);
    text += line;
  }
  const messages::Counts counts = message_counts();
  const std::uint64_t sent = counts.fastbox + counts.cells, to_host = host_messages.load(std::memory_order_relaxed);
  if (sent || to_host) {
    std::snprintf(
        line, sizeof line,
        "  messages               %12llu sent (%llu by fastboxes, %llu by the queue), %llu received before their "
        "receive was posted\n"
        "  large messages         %12llu received directly, %llu by CMA, %llu by copy buffers, %llu bytes\n"
        "  calls for messages     %12llu to the host\n",
        (unsigned long long)sent, (unsigned long long)counts.fastbox, (unsigned long long)counts.cells,
        (unsigned long long)counts.unexpected, (unsigned long long)counts.direct, (unsigned long long)counts.by_calls,
        (unsigned long long)counts.staged, (unsigned long long)counts.bytes, (unsigned long long)to_host);
    text += line;
  }
  text += window_rows();
  text += company_row();
  text += memory_rows();
  text += usage_rows();
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace nearfield::mpi
