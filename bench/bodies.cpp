// Which form a collective's body should have, so that one body serves calls that return when they are done and calls
// that may overlap others: barrier, allreduce by slots and allreduce between user buffers, of 8 bytes, by two
// processes.
//
//   plain      as it is, its waits spin: what every other form is held against
//   stack      the same body; its wait looks whether it runs on a stack of its own, and then suspends that
//   coroutine  a C++20 coroutine: a wait is co_await
//   steps      a condition and an action each, walked by an index
//
// Prints nanoseconds of a call that returns when it is done, and of one that is begun and then polled until it is done
// (plain cannot); medians of rounds in which all forms take turns. Run it alone on two CPUs.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstring>
#include <vector>

#include "engine/fibers/fiber.hpp"
#include "engine/processor/processor.h"

namespace {

using nearfield::fibers::Fiber;
namespace processor = nearfield::processor;

struct alignas(128) Slot {
  std::atomic<std::uint64_t> seq;
  std::uint64_t payload;
};
struct Member {
  Slot slot[8];
  alignas(128) std::atomic<std::uint64_t> posted;
  std::uint64_t send, recv;  // the user's, which peers reach
};

struct CollectiveContext {
  Member *mine, *other;
  std::uint64_t seq = 0, tick = 0;
  Fiber* fiber = nullptr;

  [[gnu::noinline]] void wait_on(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    while (word.load(std::memory_order_acquire) < value) {
      if (fiber) fiber->suspend();
      else processor::await_loads();
    }
  }
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    if (word.load(std::memory_order_acquire) >= value) return;
    wait_on(word, value);
  }
  void spin(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    while (word.load(std::memory_order_acquire) < value) processor::await_loads();
  }
  Slot& own_slot() { return mine->slot[seq % 8]; }
  Slot& other_slot() { return other->slot[seq % 8]; }
};

// ---- plain and stack
template <bool suspends>
void look(CollectiveContext& t, const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  if constexpr (suspends) t.wait(word, value);
  else t.spin(word, value);
}
template <bool suspends>
void barrier(CollectiveContext& t, std::uint64_t&) {
  ++t.seq;
  t.own_slot().seq.store(t.seq, std::memory_order_release);  // pairs with look
  look<suspends>(t, t.other_slot().seq, t.seq);
}
template <bool suspends>
void slots(CollectiveContext& t, std::uint64_t& value) {
  ++t.seq;
  t.own_slot().payload = value;
  t.own_slot().seq.store(t.seq, std::memory_order_release);  // pairs with look
  look<suspends>(t, t.other_slot().seq, t.seq);
  value += t.other_slot().payload;
}
template <bool suspends>
void direct(CollectiveContext& t, std::uint64_t& value) {
  t.mine->send = value;
  t.mine->posted.store(++t.tick, std::memory_order_release);  // pairs with look
  look<suspends>(t, t.other->posted, t.tick);
  value = t.mine->send + t.other->send;
  t.mine->posted.store(++t.tick, std::memory_order_release);  // pairs with look
  look<suspends>(t, t.other->posted, t.tick);
}

// ---- coroutine
struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};
struct Until {
  const std::atomic<std::uint64_t>& word;
  std::uint64_t value;
  bool await_ready() const { return word.load(std::memory_order_acquire) >= value; }
  void await_suspend(std::coroutine_handle<>) const {}
  void await_resume() const {}
};
Task barrier_coroutine(CollectiveContext& t, std::uint64_t&) {
  ++t.seq;
  t.own_slot().seq.store(t.seq, std::memory_order_release);  // pairs with Until
  while (t.other_slot().seq.load(std::memory_order_acquire) < t.seq) co_await Until{t.other_slot().seq, t.seq};
}
Task slots_coroutine(CollectiveContext& t, std::uint64_t& value) {
  ++t.seq;
  t.own_slot().payload = value;
  t.own_slot().seq.store(t.seq, std::memory_order_release);  // pairs with Until
  while (t.other_slot().seq.load(std::memory_order_acquire) < t.seq) co_await Until{t.other_slot().seq, t.seq};
  value += t.other_slot().payload;
}
Task direct_coroutine(CollectiveContext& t, std::uint64_t& value) {
  t.mine->send = value;
  t.mine->posted.store(++t.tick, std::memory_order_release);  // pairs with Until
  while (t.other->posted.load(std::memory_order_acquire) < t.tick) co_await Until{t.other->posted, t.tick};
  value = t.mine->send + t.other->send;
  t.mine->posted.store(++t.tick, std::memory_order_release);  // pairs with Until
  while (t.other->posted.load(std::memory_order_acquire) < t.tick) co_await Until{t.other->posted, t.tick};
}

// ---- steps
struct Step {
  bool (*ready)(CollectiveContext&);
  void (*act)(CollectiveContext&, std::uint64_t&);
};
bool always(CollectiveContext&) { return true; }
bool slot_there(CollectiveContext& t) { return t.other_slot().seq.load(std::memory_order_acquire) >= t.seq; }
bool tick_there(CollectiveContext& t) { return t.other->posted.load(std::memory_order_acquire) >= t.tick; }
void nothing(CollectiveContext&, std::uint64_t&) {}
constexpr Step barrier_steps[] = {
    {always,
     [](CollectiveContext& t, std::uint64_t&) {
       ++t.seq;
       t.own_slot().seq.store(t.seq, std::memory_order_release);  // pairs with slot_there
     }},
    {slot_there, nothing},
    {nullptr, nullptr},
};
constexpr Step slots_steps[] = {
    {always,
     [](CollectiveContext& t, std::uint64_t& value) {
       ++t.seq;
       t.own_slot().payload = value;
       t.own_slot().seq.store(t.seq, std::memory_order_release);  // pairs with slot_there
     }},
    {slot_there, [](CollectiveContext& t, std::uint64_t& value) { value += t.other_slot().payload; }},
    {nullptr, nullptr},
};
constexpr Step direct_steps[] = {
    {always,
     [](CollectiveContext& t, std::uint64_t& value) {
       t.mine->send = value;
       t.mine->posted.store(++t.tick, std::memory_order_release);  // pairs with tick_there
     }},
    {tick_there,
     [](CollectiveContext& t, std::uint64_t& value) {
       value = t.mine->send + t.other->send;
       t.mine->posted.store(++t.tick, std::memory_order_release);  // pairs with tick_there
     }},
    {tick_there, nothing},
    {nullptr, nullptr},
};

struct Form {
  const char* name;
  void (*plain)(CollectiveContext&, std::uint64_t&);
  void (*stack)(CollectiveContext&, std::uint64_t&);
  Task (*coroutine)(CollectiveContext&, std::uint64_t&);
  const Step* steps;
};
constexpr Form operations[] = {
    {"barrier", barrier<false>, barrier<true>, barrier_coroutine, barrier_steps},
    {"allreduce slots", slots<false>, slots<true>, slots_coroutine, slots_steps},
    {"allreduce direct", direct<false>, direct<true>, direct_coroutine, direct_steps},
};
constexpr const char* kinds[] = {"plain",       "stack", "coroutine", "steps", "stack, begun", "coroutine, begun",
                                 "steps, begun"};

struct OnStack {
  const Form& form;
  CollectiveContext& context;
  std::uint64_t& value;
};

void call(const Form& form, std::size_t kind, CollectiveContext& context, std::uint64_t& value, Fiber& fiber) {
  switch (kind) {
    case 0: return form.plain(context, value);
    case 1: return form.stack(context, value);
    case 2:
    case 5: {
      const Task task = form.coroutine(context, value);
      while (!task.handle.done()) {
        processor::await_loads();
        task.handle.resume();
      }
      return task.handle.destroy();
    }
    case 3:
    case 6:
      for (const Step* step = form.steps; step->ready; ++step) {
        while (!step->ready(context)) processor::await_loads();
        step->act(context, value);
      }
      return;
    default: {
      OnStack body{form, context, value};
      context.fiber = &fiber;
      fiber.start(
          [](void* context) {
            auto& on = *static_cast<OnStack*>(context);
            on.form.stack(on.context, on.value);
          },
          &body);
      while (!fiber.ended()) {
        processor::await_loads();
        fiber.resume();
      }
      context.fiber = nullptr;
    }
  }
}

}  // namespace

int main() {
  constexpr int rounds = 60, calls = 2000;
  auto* const shared = static_cast<Member*>(
      mmap(nullptr, 2 * sizeof(Member), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const bool second = fork() == 0;
  CollectiveContext context{shared + second, shared + !second};
  Fiber fiber;
  std::vector<double> times[std::size(operations)][std::size(kinds)];
  for (int round = 0; round < rounds; ++round)
    for (std::size_t o = 0; o < std::size(operations); ++o)
      for (std::size_t k = 0; k < std::size(kinds); ++k) {
        std::uint64_t value = 1, none = 0;
        barrier<false>(context, none);
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) call(operations[o], k, context, value, fiber);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        times[o][k].push_back(took.count() / calls);
      }
  if (second) _exit(0);
  wait(nullptr);
  for (std::size_t o = 0; o < std::size(operations); ++o)
    for (std::size_t k = 0; k < std::size(kinds); ++k) {
      auto& all = times[o][k];
      std::ranges::nth_element(all, all.begin() + rounds / 2);
      std::printf("%-18s %-18s %7.1f ns\n", operations[o].name, kinds[k], all[rounds / 2]);
    }
}
