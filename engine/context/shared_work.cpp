#include "engine/context/shared_work.hpp"

namespace nearfield::context {

void SharedWork::run(std::size_t parts, FunctionRef<void(std::size_t part)> work) {
  const std::uint64_t round = ++round_ & 0xffffffff;
  auto& open = members_.gate->parts;
  auto& done = members_.gate->done;
  if (barrier_.arrive()) {
    // SYNC: parts; all have arrived. An exchange, since it is followed by a look for sleepers (waiting/wait.hpp).
    open.exchange(round << 32 | std::uint64_t(parts) << 16, std::memory_order_seq_cst);
    if (parts > 1) waits_.wake_everybody();
  }
  const auto is_open = [&](std::uint64_t now) { return now >> 32 == round; };
  const auto left = [](std::uint64_t now) { return (now & 0xffff) < (now >> 16 & 0xffff); };
  bool counted = false;
  // SYNC: parts-done
  const auto over = [&] { return counted && done.load(std::memory_order_acquire) >= done_target_; };
  for (;;) {
    std::uint64_t next = open.load(std::memory_order_acquire);  // SYNC: parts
    if (is_open(next) && !std::exchange(counted, true)) done_target_ += next >> 16 & 0xffff;
    while (is_open(next) && left(next)) {
      // SYNC: parts
      if (!open.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      work(next & 0xffff);
      // A member that sees all parts done sees their stores. SYNC: parts-done
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == done_target_) waits_.wake_everybody();
      next = open.load(std::memory_order_acquire);  // SYNC: parts
    }
    if (over()) return;
    waits_.wait(
        [&] {
          if (over()) return true;
          const std::uint64_t now = open.load(std::memory_order_acquire);  // SYNC: parts
          return is_open(now) && (!counted || left(now));
        },
        [&](int m) { return members_.words[m]->posted.load(std::memory_order_relaxed) < ticks_.now(); }, {everybody});
  }
}

}  // namespace nearfield::context
