#include "mpi/shim/giving_way.hpp"

#include <algorithm>

#include "engine/waiting/wait.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {
namespace {

constexpr unsigned looks_between_naps = 100;
// Nanoseconds.
constexpr std::uint64_t long_wait = 10'000'000;
constexpr std::uint64_t shortest = 10'000, longest = 2'000'000, longest_with_data = 200'000, part = 64;

constinit thread_local InHost* innermost = nullptr;

}  // namespace

bool* (*mark_in_host)() = [] {
  static thread_local bool nobody_looks;
  return &nobody_looks;
};

InHost::InHost(bool moves_data) noexcept : outer_(innermost), moves_data_(moves_data) {
  innermost = this;
  *mark_in_host() = true;
}
InHost::~InHost() {
  innermost = outer_;
  *mark_in_host() = outer_ != nullptr;
}

bool give_way() {
  InHost* const call = innermost;
  team::Node* const node = call ? node_ever() : nullptr;
  if (!node || !node->policy().may_sleep) return false;
  const std::uint64_t now = waiting::nanoseconds();
  if (call->since_ == 0) call->since_ = now;
  const std::uint64_t waited = now - call->since_;
  const bool crowded = node->policy().crowded;
  if (waited < long_wait && (!crowded || ++call->looks_ < looks_between_naps)) return false;
  const bool at_rest = !call->moves_data_ && !node->progress.host_needs_us();
  if (!crowded && !at_rest) return false;
  static Atomic<std::uint32_t> unrung{0};
  waiting::futex_wait(unrung, 0, std::clamp(waited / part, shortest, at_rest ? longest : longest_with_data));
  call->looks_ = 0;
  return true;
}

}  // namespace nearfield::mpi
