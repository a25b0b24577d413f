#include "tools/calibrate.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "engine/copying/copy.hpp"
#include "engine/machine/calibration.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/machine/states.hpp"
#include "engine/memory/copy_buffers.hpp"
#include "engine/processor/processor.h"
#include "engine/reducing/fold.hpp"
#include "engine/settings/settings.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield {
namespace {

using waiting::nanoseconds;

struct Shared {
  alignas(128) std::atomic<std::uint64_t> flag[64][16];  // monotone; one writer each, except of the gate for turns
  alignas(128) double result[16];
};

std::byte* shared_bytes(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::exit(3);
  std::memset(at, 1, bytes);
  return static_cast<std::byte*>(at);
}

void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

// Runs `body(me)` in one process for each of `cpus`, bound to that CPU. Returns their results.
std::vector<double> run(Shared& shared, const std::vector<int>& cpus, const std::function<double(int)>& body) {
  std::memset(static_cast<void*>(&shared), 0, sizeof shared);
  for (std::size_t me = 0; me < cpus.size(); ++me) {
    if (fork()) continue;
    setsid();  // as launchers do: a scheduling group of its own
    pin(cpus[me]);
    alarm(10);
    shared.result[me] = body(int(me));
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  return {shared.result, shared.result + cpus.size()};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void await(const std::atomic<std::uint64_t>& flag, std::uint64_t value) {
  while (flag.load(std::memory_order_acquire) < value) processor::pause();  // pairs with the release stores below
}

double line_time(Shared& shared, int me) {
  std::vector<double> rounds;
  std::uint64_t n = 0;
  for (int round = 0; round < 9; ++round) {
    const auto start = nanoseconds();
    for (int i = 0; i < 500; ++i) {
      ++n;
      if (me == 0) shared.flag[0][0].store(n, std::memory_order_release);
      await(shared.flag[1 - me][0], n);
      if (me == 1) shared.flag[1][0].store(n, std::memory_order_release);
    }
    rounds.push_back(double(nanoseconds() - start) / 1000);
  }
  return median(rounds);
}

// Returns the time that the second process needs to `work` on bytes that the first has just written.
double after_writing(Shared& shared, int me, std::byte* source, std::size_t bytes, const std::function<void()>& work) {
  std::vector<double> rounds;
  for (std::uint64_t n = 1; n <= 60; ++n) {
    if (me == 0) {
      std::memset(source, int(n), bytes);
      shared.flag[0][0].store(n, std::memory_order_release);
      await(shared.flag[1][0], n);
    } else {
      await(shared.flag[0][0], n);
      const auto start = nanoseconds();
      work();
      rounds.push_back(double(nanoseconds() - start));
      shared.flag[1][0].store(n, std::memory_order_release);
    }
  }
  return me ? median(rounds) : 0;
}

double out_of_cache(std::byte* from, std::byte* to, std::size_t bytes) {
  std::vector<double> rounds;
  for (int round = 0; round < 3; ++round) {
    const auto start = nanoseconds();
    copying::copy(to, from, bytes, copying::Store::streaming);
    rounds.push_back(double(nanoseconds() - start) / double(bytes));
  }
  return median(rounds);
}

// A pair of CPUs: the first one and `cpu`.
struct Way {
  int cpu;
  double line;        // ns
  bool shares_cache;  // the last-level one
};

// Measures the line from the first CPU to at most 24 others, spread evenly; this takes about a tenth of a second.
std::vector<Way> ways_to_others(Shared& shared, const std::vector<int>& cpus) {
  constexpr std::size_t most = 24;
  auto cache = [](int cpu) {
    machine::Cpus one{};
    one.allowed.bits.set(std::size_t(cpu));
    return machine::read_caches(one).shared_by(one);
  };
  std::vector<Way> ways;
  const std::size_t others = cpus.size() - 1, count = std::min(others, most);
  for (std::size_t i = 0; i < count; ++i) {
    const int cpu = cpus[1 + i * others / count];
    const double line = run(shared, {cpus[0], cpu}, [&](int me) { return line_time(shared, me); })[0];
    if (line > 0) ways.push_back({cpu, line, cache(cpu) == cache(cpus[0])});
  }
  return ways;
}

// Stores the time of a line between caches; and that within a cache, if it is another state of the machine.
void take_lines(Machine& machine, const std::vector<Way>& ways) {
  std::vector<double> within, between;
  for (const Way& way : ways) (way.shares_cache ? within : between).push_back(way.line);
  machine.line = median(between.empty() ? within : between);
  if (!between.empty() && !within.empty() && !like(median(within), machine.line)) machine.near = median(within);
}

// Returns for each state of the machine the pair of CPUs whose line is nearest to the middle of the state.
std::vector<Way> one_of_each_state(const std::vector<Way>& ways) {
  std::vector<double> lines;
  for (const Way& way : ways) lines.push_back(way.line);
  std::vector<Way> found;
  for (const MachineState& state : find_states(lines))
    found.push_back(
        *std::ranges::min_element(ways, {}, [&](const Way& way) { return std::abs(way.line - state.middle); }));
  return found;
}

// Measures the cost of bytes that change cores, in each state of the machine.
void learn_states(Machine& machine, Shared& shared, int first, const std::vector<Way>& ways) {
  machine::Cpus one{};
  one.allowed.bits.set(std::size_t(first));
  const machine::Caches caches = machine::read_caches(one);
  const std::size_t span = memory::span_for(caches.own, caches.largest, std::size_t(caches.neighbors.count()));
  auto& words = *reinterpret_cast<Calibration::ControlBlock*>(shared_bytes(sizeof(Calibration::ControlBlock)));
  auto& found = *reinterpret_cast<PairCosts*>(shared_bytes(sizeof(PairCosts)));
  const std::span<std::byte> memory(shared_bytes(span), span);
  constexpr int attempts = 5;  // a process gives up if other programs take its CPU
  for (const Way& way : one_of_each_state(ways)) {
    found = {};
    for (int i = 0; i < attempts && found.fill == 0; ++i) {
      std::memset(static_cast<void*>(&words), 0, sizeof words);
      run(shared, {first, way.cpu}, [&](int me) {
        Calibration pair(words, memory.data());
        if (me == 1) pair.second();
        else if (const auto costs = pair.first([&](double) { return memory; })) found = *costs;
        return 0.0;
      });
    }
    if (found.fill == 0) continue;
    found.times = machine::measured_enough;
    found.hour = double(std::time(nullptr) / 3600);
    learn(machine, found);
  }
}

}  // namespace

double measure_line(int first, int second) {
  auto& shared = *reinterpret_cast<Shared*>(shared_bytes(sizeof(Shared)));
  const double line = run(shared, {first, second}, [&](int me) { return line_time(shared, me); })[0];
  munmap(&shared, sizeof shared);
  return line;
}

Machine calibrate() {
  Machine machine;
  if (auto known = read_stored_machine(stored_machine())) {
    machine.near_pair = known->near_pair, machine.far_pair = known->far_pair;
    std::ranges::copy(known->further, machine.further);
    machine.network = known->network;
  }
  const machine::Cpus available = machine::available_cpus();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < 1024; ++cpu)
    if (available.allowed.bits[std::size_t(cpu)]) cpus.push_back(cpu);
  auto& shared = *reinterpret_cast<Shared*>(shared_bytes(sizeof(Shared)));
  constexpr std::size_t near = 256 << 10, far = 96 << 20;
  std::byte *const a = shared_bytes(near), *const b = shared_bytes(near), *const c = shared_bytes(near);
  std::vector<Way> ways;
  if (cpus.size() >= 2) ways = ways_to_others(shared, cpus);
  if (!ways.empty()) {
    const std::vector<int> two = {cpus[0], cpus[1]};
    take_lines(machine, ways);
    machine.copy =
        run(shared, two,
            [&](int me) { return after_writing(shared, me, a, near, [&] { copying::copy(b, a, near); }); })[1] /
        double(near);
    const auto sum = reducing::fold(reducing::Op::sum, reducing::Type::f64);
    machine.fold = run(shared, two,
                       [&](int me) {
                         return after_writing(shared, me, a, near, [&] {
                           const void* const in[] = {a, b};
                           void* out = c;
                           sum(&out, 1, in, 2, near / 8);
                         });
                       })[1] /
                   double(2 * near);
  }
  if (!ways.empty()) learn_states(machine, shared, cpus[0], ways);
  std::byte *const from = shared_bytes(far), *const to = shared_bytes(far);
  machine.memory = run(shared, {cpus[0]}, [&](int) { return out_of_cache(from, to, far); })[0];
  const std::size_t workers = std::min<std::size_t>(cpus.size(), 16), part = far / workers / 4096 * 4096;
  const auto together =
      run(shared, std::vector<int>(cpus.begin(), cpus.begin() + std::ptrdiff_t(workers)),
          [&](int me) { return out_of_cache(from + std::size_t(me) * part, to + std::size_t(me) * part, part); });
  machine.all_memory = *std::max_element(together.begin(), together.end()) / double(workers);
  // The time of a turn: eight processes on one CPU meet again and again at a counter.
  constexpr int sharing = 8, meetings = 300;
  const auto turns = run(shared, std::vector<int>(sharing, cpus[0]), [&](int) {
    auto& gate = shared.flag[0][0];
    auto meet = [&](std::uint64_t n) {
      if (gate.fetch_add(1, std::memory_order_acq_rel) + 1 == n * sharing) return;
      while (gate.load(std::memory_order_acquire) < n * sharing) sched_yield();
    };
    meet(1);
    const auto start = nanoseconds();
    for (std::uint64_t n = 2; n <= meetings; ++n) meet(n);
    return double(nanoseconds() - start) / (meetings - 1) / sharing;
  });
  machine.turn = median(turns) / 2;  // collectives/costs.hpp, around(): so many ranks on a CPU take twice its turns
  return machine;
}

}  // namespace nearfield
