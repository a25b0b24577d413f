#include "mpi/shim/process/yield_in_host.hpp"

#include <algorithm>

#include "engine/waiting/wait.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {
namespace {

constexpr unsigned looks_between_naps = 100;
// Nanoseconds. Ranks that share CPUs make communicators in rounds of some 0.1 ms, each of which a nap would double.
constexpr std::uint64_t long_wait = 10'000'000, long_wait_oversubscribed = 1'000'000;
constexpr std::uint64_t shortest = 10'000, longest = 2'000'000, longest_with_data = 200'000, part = 64;

const PerThread<bool> nobody_looks;

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

bool yield_in_host() {
  auto& call = inside->host;
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
  static constinit waiting::WakeWord unrung;
  unrung.nap(0, std::clamp(waited / part, shortest, at_rest ? longest : longest_with_data));
  call.looks = 0;
  return true;
}

}  // namespace nearfield::mpi
