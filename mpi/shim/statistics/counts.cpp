#include "mpi/shim/statistics/counts.hpp"

#include <cstring>
#include <mutex>
#include <string_view>

#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

std::atomic<bool> counts_are_kept{false};
std::atomic<std::uint64_t> host_messages{0};
OneSidedCounts one_sided_counts;

namespace {

Tally tallies[collectives::operation_count];
messages::Counts last_message_counts;
HostCalls* first_calls;  // all entered ones, the newest first
std::mutex entering;

// Returns whether the function accesses a file by the individual file pointer or at an offset. Some libraries do so
// element by element.
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

void each_host_function(FunctionRef<void(const HostCalls&)> function) {
  const std::lock_guard lock(entering);
  for (const HostCalls* calls = first_calls; calls; calls = calls->next) function(*calls);
}

HostTotals host_totals() {
  HostTotals all;
  each_host_function([&](const HostCalls& calls) {
    all.calls += calls.calls.load(std::memory_order_relaxed);
    all.nanoseconds += calls.nanoseconds.load(std::memory_order_relaxed);
  });
  return all;
}

void begin_counting() { counts_are_kept.store(true, std::memory_order_relaxed); }

messages::Counts message_counts() {
  const messages::Messenger* const messenger = the_messenger;
  return messenger ? messenger->counts() : last_message_counts;
}

void keep_message_counts() { last_message_counts = message_counts(); }

const char* name(Reason reason) {
  static constexpr const char* names[] = {
#define REASON(identifier, name, meaning) name,
#include "mpi/statistics.def"
  };
  return names[std::size_t(reason)];
}

Tally& tally(collectives::Collective collective) { return tallies[std::size_t(collective)]; }

void count_call(collectives::Collective collective, std::uint64_t bytes, std::uint64_t start) {
  Tally& t = tally(collective);
  t.calls.fetch_add(1, std::memory_order_relaxed);
  t.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (start) t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
}

}  // namespace nearfield::mpi
