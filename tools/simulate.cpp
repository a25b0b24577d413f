// nearfield-simulate RANKS SIZES [FILE] [warm|live] [SHIFT]   runs every order of alltoall in simulated caches
//
// Prints one JSON line per number of ranks, size and order: the counts of one call of all ranks, after two calls that
// fill the caches. Every rank has a core of its own. The simulation runs the engine's orders (orders/orders.hpp) and
// the parts of their copies (copying::parts_of), line by line; the core whose clock is lowest makes the next step.
//
//   warm   the program does not touch the buffers, as in benchmarks
//   live   ranks rewrite what they send before each call, and read what they have received after it (default). These
//          accesses are not counted, but they decide in which caches lines lie
//   SHIFT  bytes by which a rank's buffers lie further into their huge page than those of the rank before (default 0:
//          all at the same place)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <queue>
#include <sstream>
#include <string>
#include <vector>

#include "engine/collectives/pieces/exchange.hpp"
#include "engine/machine/cpus.hpp"
#include "tools/json.hpp"
#include "tools/simulation/caches.hpp"

namespace {

using namespace nearfield;
using collectives::ExchangeRow;
using simulation::Caches;
using simulation::LineId;

struct Layout {
  std::size_t block, stride, shift;  // bytes; each rank's send buffer begins at rank * 2 * stride, then its recv buffer
  std::size_t send(int rank) const { return std::size_t(rank) * (2 * stride + shift); }
  std::size_t recv(int rank) const { return send(rank) + stride; }
};

// A copy that is made line by line of its target.
class Copying {
 public:
  Copying(const Layout& layout, int source, int destination, copying::Stores stores)
      : from_(layout.send(source) + std::size_t(destination) * layout.block),
        to_(layout.recv(destination) + std::size_t(source) * layout.block),
        end_(to_ + layout.block),
        parts_(copying::parts_of(to_, layout.block, stores)),
        streams_from_(to_ + parts_.head) {}
  bool over() const { return to_ >= end_; }
  void step(Caches& caches, int core) {
    const std::size_t next = std::min(end_, to_ / 64 * 64 + 64), bytes = next - to_;
    caches.read(core, LineId(from_ / 64));
    if (from_ / 64 != (from_ + bytes - 1) / 64) caches.read(core, LineId((from_ + bytes - 1) / 64));
    const std::size_t whole = to_ >= streams_from_ ? (to_ - streams_from_) / 64 : parts_.lines;
    if (whole < parts_.lines && whole % 8 < parts_.streamed) caches.stream(core, LineId(to_ / 64));
    else caches.write(core, LineId(to_ / 64));
    from_ += bytes;
    to_ = next;
  }

 private:
  std::size_t from_, to_, end_;
  copying::Parts parts_;
  std::size_t streams_from_;
};

// Makes the copies of all ranks, each rank's in its order. The rank whose clock is earliest copies the next line.
void call(Caches& caches, const team::Shape& shape, const ExchangeRow& exchange, const Layout& layout) {
  const int p = shape.size, group = shape.group_size();
  const auto stores =
      collectives::blend(shape, exchange.variant.hybrid, 2.0 * double(layout.block) * p * p, layout.block);
  const auto ranks = std::size_t(p);
  std::vector<std::vector<Copying>> copies(ranks);
  for (int me = 0; me < p; ++me)
    orders::each_copy(
        exchange.variant.order, exchange.variant.direction, p, group < p ? group : std::min(4, p), me,
        [&](int source, int destination) {
          copies[std::size_t(me)].push_back(
              {layout, source, destination, source / group == destination / group ? stores.near : stores.far});
        });
  using Turn = std::pair<double, int>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  std::vector<std::size_t> at(ranks, 0);
  for (int me = 0; me < p; ++me) turns.push({caches.now(me), me});
  while (!turns.empty()) {
    const int me = turns.top().second;
    turns.pop();
    auto& mine = copies[std::size_t(me)];
    auto& k = at[std::size_t(me)];
    for (int line = 0; line < 4 && k < mine.size(); ++line) {
      mine[k].step(caches, me);
      if (mine[k].over()) ++k;
    }
    if (k < mine.size()) turns.push({caches.now(me), me});
  }
}

void touch(Caches& caches, int p, const Layout& layout, bool writes) {
  const std::size_t lines = layout.block * std::size_t(p) / 64;
  for (int me = 0; me < p; ++me)
    for (std::size_t i = 0; i <= lines; ++i) {
      if (writes) caches.write(me, LineId(layout.send(me) / 64 + i));
      else caches.read(me, LineId(layout.recv(me) / 64 + i));
    }
  caches.meet();
}

void simulate(const Machine& machine, int p, std::size_t block, bool live, std::size_t shift) {
  const team::Shape shape = team::shape_for(p, machine);
  constexpr std::size_t page = 2 << 20;
  Layout layout{block, (block * std::size_t(p) + page) / page * page, shift};
  if (double(layout.send(p)) / 64 > 3e8) {
    std::fprintf(stderr, "%d ranks, %zu bytes: too many cache lines to simulate\n", p, block);
    return;
  }
  for (const ExchangeRow& exchange : collectives::exchanges) {
    collectives::Call mine{collectives::Collective::alltoall, block};
    if (!exchange.applies(shape, mine)) continue;
    Caches caches(machine, p, layout.send(p) / 64 + 1);
    simulation::Counts counts;
    double ns = 0, use = 0;
    for (int round = 0; round < 3; ++round) {
      if (live) touch(caches, p, layout, true);
      caches.meet();
      const auto before = caches.counts();
      const double start = caches.now(0);
      call(caches, shape, exchange, layout);
      caches.meet();
      counts = caches.counts();
      counts -= before;
      ns = caches.now(0) - start;
      if (live) touch(caches, p, layout, false);
      use = caches.now(0) - start - ns;
    }
    print({{"simulated", true},
           {"ranks", p},
           {"bytes", block},
           {"state", live ? "live" : "warm"},
           {"shift", shift},
           {"order", exchange.name},
           {"accesses", counts.accesses},
           {"l1_misses", counts.l1_misses},
           {"l2_misses", counts.l2_misses},
           {"near", counts.near},
           {"far", counts.far},
           {"sockets", counts.sockets},
           {"memory", counts.memory},
           {"written", counts.written},
           {"invalidations", counts.invalidations},
           {"conflicts", counts.conflicts},
           {"ns", rounded(ns, 0)},
           {"use_ns", rounded(use, 0)}});
  }
}

std::vector<std::size_t> numbers(const std::string& text) {
  std::vector<std::size_t> values;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) values.push_back(std::strtoull(word.c_str(), nullptr, 10));
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s RANKS SIZES [FILE|-] [warm|live] [SHIFT]\n", argv[0]);
    return 2;
  }
  Machine machine;
  if (argc > 3 && std::strcmp(argv[3], "-")) {
    auto read = read_machine(argv[3]);
    if (!read) {
      std::fprintf(stderr, "%s\n", read.error().text.c_str());
      return 2;
    }
    machine = *read;
  }
  const machine::Cpus cpus = machine::available_cpus();
  if (machine.cpus == 0) machine.cpus = cpus.available();
  if (machine.cache == 0) machine.cache = double(machine::read_caches(cpus).largest);
  for (const std::size_t p : numbers(argv[1])) {
    if (p < 2 || double(p) > machine.cpus) {
      std::fprintf(stderr, "%zu ranks: simulated ranks have a core each, and the machine has %.0f\n", p, machine.cpus);
      return 2;
    }
    for (const std::size_t bytes : numbers(argv[2]))
      simulate(machine, int(p), bytes, argc < 5 || std::strcmp(argv[4], "warm"),
               argc > 5 ? std::strtoull(argv[5], nullptr, 10) : 0);
  }
}
