#include "engine/choosing/decisions.hpp"

#include <atomic>
#include <mutex>

#include "engine/base/globals.hpp"
#include "engine/base/made.hpp"

namespace nearfield::choosing {

struct KeptDecisions {
  std::atomic<bool> wanted{false};
  std::mutex mutex;
  std::vector<Decision> all;
};

namespace {
KeptDecisions& kept() { return made(globals().decisions); }

}  // namespace

void keep_decisions() { kept().wanted.store(true, std::memory_order_relaxed); }
bool decisions_are_kept() { return kept().wanted.load(std::memory_order_relaxed); }

void keep(Decision decision) {
  const std::lock_guard lock(kept().mutex);
  if (kept().all.size() < most_decisions) kept().all.push_back(std::move(decision));
}

void each_decision(FunctionRef<void(const Decision&)> function) {
  const std::lock_guard lock(kept().mutex);
  for (const Decision& decision : kept().all) function(decision);
}

}  // namespace nearfield::choosing
