#include "mpi/shim/process/yield_in_host.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "engine/base/early_settings.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/machine/spare_cpus.hpp"
#include "engine/waiting/wait.hpp"
#include "mpi/local_ranks.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {
namespace {

constexpr unsigned looks_between_naps = 100;
// Nanoseconds. Ranks that share CPUs make communicators in rounds of some 0.1 ms, each of which a nap would double.
constexpr std::uint64_t long_wait = 10'000'000, long_wait_oversubscribed = 1'000'000;
constexpr std::uint64_t shortest = 10'000, longest = 2'000'000, longest_with_data = 200'000, part = 64;

// Eight ranks of MPICH on two CPUs start in 175 ms, without naps in 201 (without Nearfield 192; Zen 4).
constexpr unsigned yields_at_start = 5;
constexpr std::uint64_t nap_at_start = 100'000;
constinit std::atomic<bool> crowded_at_start{false};

const PerThread<bool> nobody_looks;

void nap(std::uint64_t nanoseconds) {
  static constinit waiting::WakeWord unrung;
  unrung.nap(0, nanoseconds);
}

}  // namespace

bool& mark_in_host() { return mark_of_preload ? *mark_of_preload() : *nobody_looks; }

InHost::InHost(bool moves_data) : before_(inside->host) {
  inside->host = {.now = true, .moves_data = moves_data};
  mark_in_host() = true;
}
InHost::~InHost() {
  inside->host = before_;
  mark_in_host() = before_.now;
}

// Allocates, as yield_in_host() must not: the host may yield in an allocator's lock.
void host_starts() {
  const int ranks = local_ranks();
  const char* const wait = std::getenv("NEARFIELD_WAIT");
  const bool never_sleeps = wait && (!std::strcmp(wait, "spin") || !std::strcmp(wait, "yield"));
  if (ranks < 2 || never_sleeps || early::is_off("NEARFIELD")) return;
  // If the launcher may run on our CPUs only, it may be a script that is bound like its rank: then count all CPUs.
  const int own = machine::cpus_of(getpid()).count(), granted = machine::granted_cpus().count();
  const int cpus = granted > own ? granted : int(sysconf(_SC_NPROCESSORS_ONLN));
  crowded_at_start.store(ranks > cpus || ranks > machine::available_cpus().quota, std::memory_order_relaxed);
}
void host_has_started() { crowded_at_start.store(false, std::memory_order_relaxed); }

bool yield_in_host() {
  if (inside->polls_host) return true;
  auto& call = inside->host;
  if (crowded_at_start.load(std::memory_order_relaxed) && call.now) {
    if (++call.looks % yields_at_start) return false;
    nap(nap_at_start);
    return true;
  }
  team::Process* const process = call.now ? process_ever() : nullptr;
  if (!process || !process->policy().may_sleep) return false;
  const bool oversubscribed = process->policy().oversubscribed;
  if (oversubscribed && call.since && ++call.looks < looks_between_naps) return false;
  const std::uint64_t now = waiting::nanoseconds();
  if (call.since == 0) call.since = now;
  const std::uint64_t waited = now - call.since;
  if (waited < (oversubscribed ? long_wait_oversubscribed : long_wait)) return false;
  const bool at_rest = !call.moves_data && !process->progress().host_needs_us();
  if (!oversubscribed && !at_rest) return false;
  nap(std::clamp(waited / part, shortest, at_rest ? longest : longest_with_data));
  call.looks = 0;
  return true;
}

}  // namespace nearfield::mpi
