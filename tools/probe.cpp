// nearfield-probe: prints the properties of this machine as one JSON object. `nearfield info` shows them.
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "engine/collectives/table.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/machine/machine.hpp"
#include "engine/machine/topology.hpp"
#include "engine/memory/madvise.hpp"
#include "engine/memory/numa.hpp"
#include "engine/memory/placer.hpp"
#include "engine/memory/segment.hpp"
#include "engine/reach/peers.hpp"
#include "engine/settings/settings.hpp"
#include "tools/json.hpp"

namespace {

using namespace nearfield;

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

Json topology() {
  auto t = machine::Topology::load();
  if (!t) return {{"error", t.error().text}};
  Json groups = Json::array();
  for (const auto& group : t->l3_groups) groups.push_back(group.list());
  return {{"packages", t->packages}, {"cores", t->cores}, {"l1d", t->l1d}, {"l2", t->l2}, {"l3", t->l3},
          {"l3_groups", groups}};
}

// Describes the NUMA nodes, the node that each word of a placement stands for here, and what NEARFIELD_MEMORY asks for.
Json placement() {
  const auto& nodes = machine::memory_nodes();
  if (!nodes) return {{"error", nodes.error().text}};
  const machine::CpuSet& cpus = memory::vantage().cpus;
  auto value = [](memory::Value v) { return v.value ? Json{{"value", v.value}, {"own", v.own}} : Json(nullptr); };
  Json all = Json::array(), words, components = Json::array();
  for (const auto& node : *nodes) {
    const std::size_t room = memory::numa::room(node.number);
    all.push_back({{"node", node.number},
                   {"bytes", node.bytes},
                   {"room", room == SIZE_MAX ? Json(nullptr) : Json(room)},
                   {"cpus", node.cpus.list()},
                   {"bandwidth", value(memory::bandwidth(node, cpus))},
                   {"latency", value(memory::latency(node, cpus))}});
  }
  for (const char* word : {"bandwidth", "latency", "capacity", "local"})
    words[word] = memory::Placer::describe(*memory::parse_wish(word));
  std::string complaints;
  const Settings settings = read_settings(complaints);
  for (std::size_t c = 0; c < memory::component_count; ++c) {
    const auto& wish = settings.memory.of[c];
    components.push_back({{"name", name(memory::Component(c))},
                          {"about", about(memory::Component(c))},
                          {"asked", wish ? Json(wish->text) : Json(nullptr)},
                          {"gets", wish ? memory::Placer::describe(*wish) : "where the kernel puts it"}});
  }
  return {{"nodes", all}, {"words", words}, {"components", components}, {"complaints", complaints}};
}

Json cpus() {
  const auto c = machine::available_cpus();
  return {{"allowed", c.allowed.list()},
          {"quota", std::isinf(c.quota) ? Json(nullptr) : Json(c.quota)},
          {"available", c.available()}};
}

Json describe(const char* name, const char* about, const Result<void>& tried) {
  return {{"name", name},
          {"about", about},
          {"works", bool(tried)},
          {"why", tried ? "tried with another process" : tried.error().text}};
}

// The process whose memory is probed writes this for the process that probes it.
struct ProbedMemory {
  reach::Card card;
  reach::RemoteBuffer place;
  std::uint64_t address;
};

// Stores a byte into `probed` by that way only. Returns the error; "" if the store succeeded.
std::string use_way(const reach::MemoryMapper& way, reach::Peers& peers, const ProbedMemory& probed) {
  reach::Peer* peer = nullptr;
  for (int i = 0; i < 2000 && !(peer = peers.find(probed.card.address.identity())); ++i, usleep(1000))
    if (auto came = peers.collect(); !came) return came.error().text;
  if (!peer) return "a segment passed to another process did not arrive";
  peers.meet(probed.card);
  if (auto reached = way.meet(peers, *peer, probed.card.advertised[reach::index_of(way)]); !reached)
    return reached.error().text;
  const auto value = std::byte{42};
  if (!way.attach) {
    auto written = way.write(*peer, &value, probed.address, 1);
    return written ? "" : written.error().text;
  }
  const reach::Region region = reach::Region::of(probed.place);
  const reach::Attached attached = way.attach(peers, *peer, region);
  if (attached.state != reach::Attached::State::yes) return attached.why;
  attached.at[probed.place.offset() - region.begin] = value;
  return "";
}

// Tries way number w between this process and a forked one.
Result<void> try_way(std::size_t w) {
  const reach::MemoryMapper& way = *reach::mappers()[w];
  const auto begin = [&](memory::Segment& segment) -> Result<std::unique_ptr<reach::Peers>> {
    if (auto reserved = segment.reserve(0, 8192); !reserved) return reserved.error();
    (new (segment.base()) reach::SegmentHeader{})->probe = std::uint64_t(getpid());
    auto peers = reach::Peers::create(segment, ~(1u << w));
    if (!peers) return peers.error();
    if (!(*peers)->open())
      if (auto opened = way.open(**peers); !opened) return opened.error();
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
    ProbedMemory probed;
    if (own) {
      auto met = begin(*own);
      if (met) {
        const reach::Card card = (*met)->card();
        if (write(back[1], &card, sizeof card) == sizeof card &&
            read(there[0], &probed, sizeof probed) == sizeof probed)
          trouble = use_way(way, **met, probed);
      } else {
        trouble = met.error().text;
      }
    }
    if (write(back[1], trouble.c_str(), trouble.size() + 1) < 0) _exit(1);
    _exit(0);
  }
  close(back[1]);
  std::byte* const at = segment->base() + 4096;  // memory that every way reaches
  const reach::RemoteBuffer place = (*peers)->place(at, 1, 1u << w);
  reach::Card card;
  std::string why = "the other process ended early";
  if (read(back[0], &card, sizeof card) == sizeof card) {
    if (auto sent = (*peers)->send_segment(card.address); !sent) why = sent.error().text;
    const ProbedMemory probed{(*peers)->card(), place, std::uint64_t(at)};
    char text[1024] = "";
    if (write(there[1], &probed, sizeof probed) == sizeof probed && read(back[0], text, sizeof text - 1) > 0)
      why = text;
  }
  waitpid(child, nullptr, 0);
  for (const int fd : {there[0], there[1], back[0]}) close(fd);
  if (why.empty() && *at != std::byte{42}) why = "what another process stored did not arrive";
  if (!why.empty()) return Error{why};
  return {};
}

// Describes the ways that users can name, and copy buffers, which work if segments can be mapped.
Json all_ways() {
  Json all = Json::array();
  const Result<void> mapped = try_way(0);
  for (std::size_t w = 0; w < reach::mapper_count; ++w) {
    const reach::MemoryMapper& way = *reach::mappers()[w];
    if (!way.part_of) all.push_back(describe(way.name, way.about, w == 0 ? mapped : try_way(w)));
  }
  all.push_back(describe("copy-buffers", "two copies through a segment", mapped));
  return all;
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

Json pages() {
  const auto collapse = try_collapse();
  return {{"transparent", first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
          {"shared", first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled")},
          {"collapse", bool(collapse)},
          {"collapse_why", collapse ? "" : collapse.error().text}};
}

// Describes the figures by which algorithms are chosen: the stored ones, which ranks have measured, if there are any.
Json figures() {
  auto stored = read_stored_machine(stored_machine());
  Machine machine = stored ? *stored : Machine{};
  Json figures = Json::array();
  for (const auto& field : machine_fields())
    figures.push_back({{"name", field.name}, {"value", field.value(machine)}, {"meaning", field.meaning}});
  return {{"file", stored_machine()}, {"stored", bool(stored)}, {"figures", figures}};
}

Json all_settings() {
  Json rows = Json::array();
  for (const auto& row : settings_table())
    rows.push_back({{"variable", row.variable},
                    {"default", row.fallback},
                    {"decides", name(row.decides)},
                    {"meaning", row.meaning}});
  return rows;
}

Json algorithms() {
  Json all;
  for (std::size_t c = 0; c < collectives::collective_count; ++c) {
    Json& rows = all[collectives::name(collectives::Collective(c))] = Json::array();
    for (const auto& row : collectives::algorithms(collectives::Collective(c)))
      rows.push_back({{"name", row.name}, {"about", row.about}, {"direct", row.reach != collectives::staged}});
  }
  return all;
}

}  // namespace

int main() {
  utsname system{};
  uname(&system);
  struct statvfs shm {};
  const bool has_shm = statvfs("/dev/shm", &shm) == 0;
  print({{"topology", topology()},
         {"placement", placement()},
         {"cpus", cpus()},
         {"reach", all_ways()},
         {"pages", pages()},
         {"kernel", system.release},
         {"session_groups", machine::scheduling_group()},
         {"ptrace_scope", first_line("/proc/sys/kernel/yama/ptrace_scope")},
         {"dev_shm_bytes", has_shm ? std::uint64_t(shm.f_blocks) * shm.f_frsize : 0},
         {"settings", all_settings()},
         {"machine", figures()},
         {"algorithms", algorithms()}},
        1);
}
