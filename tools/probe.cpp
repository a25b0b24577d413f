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

#include "engine/base/settings.hpp"
#include "engine/collectives/table.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/machine/machine.hpp"
#include "engine/machine/topology.hpp"
#include "engine/memory/madvise.hpp"
#include "engine/memory/segment.hpp"
#include "engine/reach/mailbox.hpp"
#include "engine/reach/reach.hpp"
#include "tools/json.hpp"

namespace {

using namespace nearfield;

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

Json topology() {
  auto t = memory::Topology::load();
  if (!t) return {{"error", t.error().text}};
  Json groups = Json::array(), nodes = Json::array();
  for (const auto& group : t->l3_groups) groups.push_back(group.list());
  for (const auto& node : t->memory)
    nodes.push_back({{"node", node.os_index},
                     {"bytes", node.bytes},
                     {"cpus", node.cpus.list()},
                     {"high_bandwidth", node.high_bandwidth}});
  return {{"packages", t->packages}, {"cores", t->cores}, {"l1d", t->l1d}, {"l2", t->l2}, {"l3", t->l3},
          {"l3_groups", groups},     {"memory", nodes}};
}

Json cpus() {
  const auto c = memory::available_cpus();
  return {{"allowed", c.allowed.list()},
          {"quota", std::isinf(c.quota) ? Json(nullptr) : Json(c.quota)},
          {"available", c.available()}};
}

Json way(memory::Way which, const Result<void>& tried) {
  return {{"name", memory::name(which)},
          {"works", bool(tried)},
          {"why", tried ? "tried with another process" : tried.error().text}};
}

// Passes a segment to a forked child, which writes into it.
Result<void> try_mapped() {
  auto segment = memory::Segment::create(16 << 20);
  if (!segment) return segment.error();
  if (auto reserved = segment->reserve(0, 4096); !reserved) return reserved;
  auto mailbox = memory::Mailbox::open();
  if (!mailbox) return mailbox.error();
  int ready[2];
  if (pipe(ready)) return system_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    auto own = memory::Mailbox::open();
    if (!own || write(ready[1], &own->address(), sizeof(memory::Address)) < 0) _exit(1);
    for (int i = 0; i < 2000; ++i, usleep(1000)) {
      auto arrived = own->receive();
      if (!arrived) _exit(2);
      if (!*arrived) continue;
      auto peer = memory::PeerSegment::map((*arrived)->fd);
      if (!peer) _exit(3);
      peer->base()[7] = std::byte{42};
      _exit(0);
    }
    _exit(4);
  }
  memory::Address address;
  if (read(ready[0], &address, sizeof address) == sizeof address) (void)!mailbox->send(address, segment->fd(), 0);
  int status = 0;
  waitpid(child, &status, 0);
  close(ready[0]);
  close(ready[1]);
  if (status || segment->base()[7] != std::byte{42}) return Error{"a segment passed to another process did not arrive"};
  return {};
}

Result<void> try_cma() {
  static std::uint64_t word = 0x6e656172;
  int hold[2];
  if (pipe(hold)) return system_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    char c;
    close(hold[1]);
    _exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
  }
  auto probed = memory::cma_probe(child, reinterpret_cast<std::uint64_t>(&word), word);
  close(hold[1]);
  waitpid(child, nullptr, 0);
  close(hold[0]);
  return probed;
}

Result<void> try_xpmem() {
  auto xpmem = memory::Xpmem::open();
  if (!xpmem) return xpmem.error();
  return {};
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

// The figures that algorithms are chosen by; those that ranks have measured here, where they are stored.
Json machine() {
  auto stored = read_stored_machine(stored_machine());
  Machine machine = stored ? *stored : Machine{};
  Json figures = Json::array();
  for (const auto& field : machine_fields())
    figures.push_back({{"name", field.name}, {"value", field.value(machine)}, {"meaning", field.meaning}});
  return {{"file", stored_machine()}, {"stored", bool(stored)}, {"figures", figures}};
}

Json settings() {
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
      rows.push_back({{"name", row.name}, {"about", row.about}});
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
         {"cpus", cpus()},
         {"reach",
          {way(memory::Way::mapped, try_mapped()), way(memory::Way::xpmem, try_xpmem()),
           way(memory::Way::cma, try_cma()), way(memory::Way::copy_buffers, try_mapped())}},
         {"pages", pages()},
         {"kernel", system.release},
         {"session_groups", memory::scheduling_group()},
         {"ptrace_scope", first_line("/proc/sys/kernel/yama/ptrace_scope")},
         {"dev_shm_bytes", has_shm ? std::uint64_t(shm.f_blocks) * shm.f_frsize : 0},
         {"settings", settings()},
         {"machine", machine()},
         {"algorithms", algorithms()}},
        1);
}
