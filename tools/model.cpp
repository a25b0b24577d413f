// nearfield-model predict OP RANKS SIZES [FILE]   what each algorithm is estimated to cost, one JSON line per cell
// nearfield-model explain OP RANKS BYTES [FILE]   the same of one cell, and what is known of each algorithm
// nearfield-model calibrate                       measures this machine's figures in about a second, stores them,
// prints
//                                                 the file's name
//
// RANKS and SIZES are lists separated by commas. Without FILE: the stored figures, or the built-in ones.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/settings.hpp"
#include "engine/choosing/choose.hpp"
#include "engine/copying/copy.hpp"
#include "engine/machine/calibration.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/memory/copy_buffers.hpp"
#include "engine/waiting/wait.hpp"
#include "tools/json.hpp"

namespace {

using namespace nearfield;
using waiting::nanoseconds;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

collectives::Collective collective_of(const std::string& op) {
  if (const auto which = collectives::collective_named(op)) return *which;
  std::fprintf(stderr, "%s is not a collective of Nearfield\n", op.c_str());
  std::exit(2);
}

collectives::Call call_of(collectives::Collective which, const std::string& bytes) {
  collectives::Call call{which, std::strtoull(bytes.c_str(), nullptr, 10)};
  call.count = std::max<std::size_t>(call.bytes / 8, 1);
  return call;
}

void print_prediction(const team::Shape& shape, const collectives::Call& call) {
  const auto chosen = choosing::choose(shape, "", call);
  Json costs = Json::object(), behind = Json::object(), promising = Json::array();
  for (const auto& row : collectives::algorithms(call.collective)) {
    if (!row.applies(shape, call)) continue;
    const double cost = row.cost(shape, call);
    if (cost >= 1e11) continue;
    costs[row.name] = rounded(cost, 1);
    if (const double later = choosing::left_behind(shape, row, call); later > 0) behind[row.name] = rounded(later, 1);
  }
  for (const auto* row : chosen.promising) promising.push_back(row->name);
  print({{"op", collectives::name(call.collective)},
         {"ranks", shape.size},
         {"bytes", call.bytes},
         {"chosen", chosen.best->name},
         {"staged", (chosen.staged ? chosen.staged : chosen.best)->name},
         {"promising", promising},
         {"ns", costs},
         {"behind", behind}});
}

int predict(const std::string& op, const std::string& ranks, const std::string& sizes, const Machine& machine) {
  const auto which = collective_of(op);
  for (const auto& p : split(ranks))
    for (const auto& bytes : split(sizes))
      print_prediction(team::shape_for(std::max(2, std::atoi(p.c_str())), machine), call_of(which, bytes));
  return 0;
}

// Every row of the table: whether it applies, what it costs, and how much of that does not depend on the length.
int explain(const std::string& op, const std::string& ranks, const std::string& bytes, const Machine& machine) {
  const auto which = collective_of(op);
  const team::Shape shape = team::shape_for(std::max(2, std::atoi(ranks.c_str())), machine);
  const auto call = call_of(which, bytes), nothing = call_of(which, "1");
  print_prediction(shape, call);
  constexpr const char* reach[] = {"no", "send buffers", "receive buffers", "all buffers"};
  for (const auto& row : collectives::algorithms(which))
    print({{"name", row.name},
           {"applies", row.applies(shape, call)},
           {"ns", rounded(row.cost(shape, call), 1)},
           {"fixed", rounded(row.cost(shape, nothing), 1)},
           {"behind", rounded(choosing::left_behind(shape, row, call), 1)},
           {"reach", reach[row.reach]},
           {"about", row.about}});
  return 0;
}

// ---------------------------------------------------------------- calibration: processes on CPUs of their own

struct Shared {
  alignas(128) std::atomic<std::uint64_t> flag[64][16];  // one writer each, monotone
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

// Runs `body(me)` in processes pinned to `cpus`; each result comes back.
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

// The second process works on what the first has just written.
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

// The first CPU that has another last-level cache than the first two, which share theirs; -1: there is none.
int beyond_the_cache(const std::vector<int>& cpus) {
  auto cache = [](int cpu) {
    memory::Cpus one{};
    one.allowed.bits.set(std::size_t(cpu));
    return memory::shared_cache(one);
  };
  if (cache(cpus[0]) != cache(cpus[1])) return -1;
  const auto other = std::ranges::find_if(cpus, [&](int cpu) { return cache(cpu) != cache(cpus[0]); });
  return other == cpus.end() ? -1 : *other;
}

Machine calibrate() {
  Machine machine;
  if (auto known = read_stored_machine(stored_machine()))
    machine.handing = known->handing, machine.far_handing = known->far_handing;
  const memory::Cpus available = memory::available_cpus();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < 1024; ++cpu)
    if (available.allowed.bits[std::size_t(cpu)]) cpus.push_back(cpu);
  auto& shared = *reinterpret_cast<Shared*>(shared_bytes(sizeof(Shared)));
  constexpr std::size_t near = 256 << 10, far = 96 << 20;
  std::byte *const a = shared_bytes(near), *const b = shared_bytes(near), *const c = shared_bytes(near);
  if (cpus.size() >= 2) {
    const std::vector<int> two = {cpus[0], cpus[1]};
    auto line = [&](int other) {
      return run(shared, {cpus[0], other}, [&](int me) { return line_time(shared, me); })[0];
    };
    machine.line = line(cpus[1]);
    if (const int other = beyond_the_cache(cpus); other >= 0) {
      machine.near = machine.line;
      machine.line = line(other);
    }
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
  if (cpus.size() >= 2) {
    memory::Cpus one{};
    one.allowed.bits.set(std::size_t(cpus[0]));
    const std::size_t span =
        memory::span_for(memory::private_cache(one), memory::last_level_cache(), memory::cache_sharers(one));
    auto& words = *reinterpret_cast<Calibration::Words*>(shared_bytes(sizeof(Calibration::Words)));
    auto& found = *reinterpret_cast<Handing*>(shared_bytes(sizeof(Handing)));
    std::byte* const rooms = shared_bytes(span);
    auto measure = [&](int other) {
      std::memset(static_cast<void*>(&words), 0, sizeof words);
      found = {};
      run(shared, {cpus[0], other}, [&](int me) {
        Calibration pair{words, a, {rooms, span}};
        if (me == 1) pair.second();
        else if (const auto handing = pair.first([](double) { return true; })) found = *handing;
        return 0.0;
      });
      if (found.fill > 0) learn(machine, found);
    };
    measure(cpus[1]);
    if (const int other = beyond_the_cache(cpus); other >= 0) measure(other);
  }
  std::byte *const from = shared_bytes(far), *const to = shared_bytes(far);
  machine.memory = run(shared, {cpus[0]}, [&](int) { return out_of_cache(from, to, far); })[0];
  const std::size_t workers = std::min<std::size_t>(cpus.size(), 16), part = far / workers / 4096 * 4096;
  const auto together =
      run(shared, std::vector<int>(cpus.begin(), cpus.begin() + std::ptrdiff_t(workers)),
          [&](int me) { return out_of_cache(from + std::size_t(me) * part, to + std::size_t(me) * part, part); });
  machine.all_memory = *std::max_element(together.begin(), together.end()) / double(workers);
  // Eight processes on one CPU meet again and again.
  constexpr int crowd = 8, meetings = 300;
  const auto turns = run(shared, std::vector<int>(crowd, cpus[0]), [&](int) {
    auto& gate = shared.flag[0][0];
    auto meet = [&](std::uint64_t n) {
      if (gate.fetch_add(1, std::memory_order_acq_rel) + 1 == n * crowd) return;
      while (gate.load(std::memory_order_acquire) < n * crowd) sched_yield();
    };
    meet(1);
    const auto start = nanoseconds();
    for (std::uint64_t n = 2; n <= meetings; ++n) meet(n);
    return double(nanoseconds() - start) / (meetings - 1) / crowd;
  });
  machine.turn = median(turns) / 2;  // collectives/costs.hpp, around(): so deep a crowd takes twice its turns
  return machine;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && !std::strcmp(argv[1], "calibrate")) {
    const auto stored = store_machine(stored_machine(), calibrate());
    if (!stored) std::fprintf(stderr, "%s\n", stored.error().text.c_str());
    else std::puts(stored_machine().c_str());
    return stored ? 0 : 1;
  }
  const std::string command = argc > 1 ? argv[1] : "";
  if ((argc == 5 || argc == 6) && (command == "predict" || command == "explain")) {
    Machine machine;
    auto read = argc == 6 ? read_machine(argv[5]) : read_stored_machine(stored_machine());
    if (read) {
      machine = *read;
    } else if (argc == 6) {
      std::fprintf(stderr, "%s\n", read.error().text.c_str());
      return 2;
    }
    if (machine.cpus == 0) machine.cpus = memory::available_cpus().available();
    if (machine.cache == 0) machine.cache = memory::last_level_cache();
    if (machine.own == 0)
      machine.own = argc == 6 ? machine.l2 : double(memory::private_cache(memory::available_cpus()));
    return (command == "predict" ? predict : explain)(argv[2], argv[3], argv[4], machine);
  }
  std::fprintf(stderr, "usage: %s predict OP RANKS SIZES [FILE] | explain OP RANKS BYTES [FILE] | calibrate\n",
               argv[0]);
  return 2;
}
