// nearfield-probe: what this machine offers, as one JSON object on standard output. `nearfield info` renders it.
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/base/settings.hpp"
#include "engine/collectives/table.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/machine/machine.hpp"
#include "engine/machine/topology.hpp"
#include "engine/memory/madvise.hpp"
#include "engine/memory/segment.hpp"
#include "engine/reach/peers.hpp"

namespace {

using namespace nearfield;

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

template <class Range, class Write>
std::string list(const Range& range, Write write) {
  std::string out = "[";
  for (const auto& item : range) out += (out.size() > 1 ? ", " : "") + write(item);
  return out + "]";
}

std::string topology() {
  auto t = memory::Topology::load();
  if (!t) return "{\"error\": " + quote(t.error().text) + "}";
  std::ostringstream out;
  out << "{\"packages\": " << t->packages << ", \"cores\": " << t->cores << ", \"l1d\": " << t->l1d
      << ", \"l2\": " << t->l2 << ", \"l3\": " << t->l3
      << ", \"l3_groups\": " << list(t->l3_groups, [](const auto& g) { return quote(g.list()); }) << ", \"memory\": "
      << list(t->memory,
              [](const auto& m) {
                return "{\"node\": " + std::to_string(m.os_index) + ", \"bytes\": " + std::to_string(m.bytes) +
                       ", \"cpus\": " + quote(m.cpus.list()) +
                       ", \"high_bandwidth\": " + (m.high_bandwidth ? "true" : "false") + "}";
              })
      << "}";
  return out.str();
}

std::string cpus() {
  const auto c = memory::available_cpus();
  std::ostringstream out;
  out << "{\"allowed\": " << quote(c.allowed.list()) << ", \"quota\": ";
  if (std::isinf(c.quota)) out << "null";
  else out << c.quota;
  out << ", \"available\": " << c.available() << "}";
  return out.str();
}

std::string describe(const char* name, const char* about, const Result<void>& tried) {
  return "{\"name\": " + quote(name) + ", \"about\": " + quote(about) + ", \"works\": " + (tried ? "true" : "false") +
         ", \"why\": " + quote(tried ? "tried with another process" : tried.error().text) + "}";
}

// What the process that is to be reached tells the one that reaches it.
struct Told {
  reach::Card card;
  reach::Place place;
  std::uint64_t address;
};

// Stores into `told` by that way alone; what fails.
std::string use_way(const reach::Way& way, reach::Peers& peers, const Told& told) {
  reach::Peer* peer = nullptr;
  for (int i = 0; i < 2000 && !(peer = peers.find(told.card.address.identity())); ++i, usleep(1000))
    if (auto came = peers.collect(); !came) return came.error().text;
  if (!peer) return "a segment passed to another process did not arrive";
  peers.meet(told.card);
  if (auto reached = way.meet(peers, *peer, told.card.told[reach::index_of(way)]); !reached)
    return reached.error().text;
  const auto value = std::byte{42};
  if (!way.attach) {
    auto written = way.write(*peer, &value, told.address, 1);
    return written ? "" : written.error().text;
  }
  const reach::Region region = reach::Region::of(told.place);
  const reach::Attached attached = way.attach(peers, *peer, region);
  if (attached.state != reach::Attached::State::yes) return attached.why;
  attached.at[told.place.offset() - region.begin] = value;
  return "";
}

// Between this process and a forked one.
Result<void> try_way(std::size_t w) {
  const reach::Way& way = *reach::ways()[w];
  const auto begin = [&](memory::Segment& segment) -> Result<std::unique_ptr<reach::Peers>> {
    if (auto reserved = segment.reserve(0, 8192); !reserved) return reserved.error();
    (new (segment.base()) reach::ProcessHeader{})->probe = std::uint64_t(getpid());
    auto peers = reach::Peers::create(segment, ~(1u << w));
    if (!peers) return peers.error();
    if (!(*peers)->open())
      if (auto told = way.open(**peers); !told) return told.error();
    return peers;
  };
  auto segment = memory::Segment::create(16 << 20);
  if (!segment) return segment.error();
  auto peers = begin(*segment);
  if (!peers) return peers.error();
  int there[2], back[2];
  if (pipe(there) || pipe(back)) return system_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    auto own = memory::Segment::create(16 << 20);
    std::string trouble = own ? "" : own.error().text;
    Told told;
    if (own) {
      auto met = begin(*own);
      if (met) {
        const reach::Card card = (*met)->card();
        if (write(back[1], &card, sizeof card) == sizeof card && read(there[0], &told, sizeof told) == sizeof told)
          trouble = use_way(way, **met, told);
      } else {
        trouble = met.error().text;
      }
    }
    if (write(back[1], trouble.c_str(), trouble.size() + 1) < 0) _exit(1);
    _exit(0);
  }
  close(back[1]);
  std::byte* const at = segment->base() + 4096;  // memory that every way reaches
  const reach::Place place = (*peers)->place(at, 1, 1u << w);
  reach::Card card;
  std::string why = "the other process ended early";
  if (read(back[0], &card, sizeof card) == sizeof card) {
    if (auto sent = (*peers)->send_segment(card.address); !sent) why = sent.error().text;
    const Told told{(*peers)->card(), place, std::uint64_t(at)};
    char text[1024] = "";
    if (write(there[1], &told, sizeof told) == sizeof told && read(back[0], text, sizeof text - 1) > 0) why = text;
  }
  waitpid(child, nullptr, 0);
  for (const int fd : {there[0], there[1], back[0]}) close(fd);
  if (why.empty() && *at != std::byte{42}) why = "what another process stored did not arrive";
  if (!why.empty()) return Error{why};
  return {};
}

// What counts as one of them for the user, and copy buffers, which work where segments do.
std::string all_ways() {
  std::string out;
  const Result<void> mapped = try_way(0);
  for (std::size_t w = 0; w < reach::way_count; ++w) {
    const reach::Way& way = *reach::ways()[w];
    if (!way.part_of) out += (out.empty() ? "[" : ", ") + describe(way.name, way.about, w == 0 ? mapped : try_way(w));
  }
  return out + ", " + describe("copy-buffers", "two copies through a segment", mapped) + "]";
}

Result<void> try_collapse() {
  constexpr std::size_t huge = 2 << 20;
  auto segment = memory::Segment::create(16 << 20);
  if (!segment) return segment.error();
  if (auto reserved = segment->reserve(0, 3 * huge); !reserved) return reserved;
  auto* at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(segment->base()) + huge - 1) / huge * huge);
  *at = std::byte{1};
  if (madvise(at, huge, MADV_COLLAPSE)) return system_error("MADV_COLLAPSE");
  return {};
}

std::string pages() {
  const auto collapse = try_collapse();
  return "{\"transparent\": " + quote(first_line("/sys/kernel/mm/transparent_hugepage/enabled")) +
         ", \"shared\": " + quote(first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled")) +
         ", \"collapse\": " + (collapse ? "true" : "false") +
         ", \"collapse_why\": " + quote(collapse ? "" : collapse.error().text) + "}";
}

// The figures that algorithms are chosen by; those that ranks have measured here, where they are stored.
std::string machine() {
  auto stored = read_stored_machine(stored_machine());
  Machine machine = stored ? *stored : Machine{};
  return "{\"file\": " + quote(stored_machine()) + ", \"stored\": " + (stored ? "true" : "false") + ", \"figures\": " +
         list(machine_fields(),
              [&](const auto& field) {
                return "{\"name\": " + quote(field.name) + ", \"value\": " + std::to_string(field.value(machine)) +
                       ", \"meaning\": " + quote(field.meaning) + "}";
              }) +
         "}";
}

std::string algorithms() {
  std::string out = "{";
  for (std::size_t c = 0; c < collectives::collective_count; ++c) {
    const auto collective = collectives::Collective(c);
    out += (c ? ", " : "") + quote(collectives::name(collective)) + ": " +
           list(collectives::algorithms(collective), [](const auto& row) {
             return "{\"name\": " + quote(row.name) + ", \"about\": " + quote(row.about) + "}";
           });
  }
  return out + "}";
}

}  // namespace

int main() {
  utsname system{};
  uname(&system);
  struct statvfs shm {};
  const bool has_shm = statvfs("/dev/shm", &shm) == 0;
  const std::string ways = all_ways();
  std::printf(
      "{\"topology\": %s,\n \"cpus\": %s,\n \"reach\": %s,\n \"pages\": %s,\n \"kernel\": %s,\n \"session_groups\": "
      "%s,\n "
      "\"ptrace_scope\": %s,\n \"dev_shm_bytes\": %llu,\n",
      topology().c_str(), cpus().c_str(), ways.c_str(), pages().c_str(), quote(system.release).c_str(),
      memory::scheduling_group() ? "true" : "false", quote(first_line("/proc/sys/kernel/yama/ptrace_scope")).c_str(),
      has_shm ? (unsigned long long)(shm.f_blocks) * shm.f_frsize : 0ull);
  std::printf(" \"settings\": %s,\n \"machine\": %s,\n \"algorithms\": %s}\n",
              list(settings_table(),
                   [](const auto& row) {
                     return "{\"variable\": " + quote(row.variable) + ", \"default\": " + quote(row.fallback) +
                            ", \"meaning\": " + quote(row.meaning) + "}";
                   })
                  .c_str(),
              machine().c_str(), algorithms().c_str());
}
