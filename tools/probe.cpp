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
#include "engine/reach/mailbox.hpp"
#include "engine/reach/reach.hpp"

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

std::string way(memory::Way which, const Result<void>& tried) {
  return "{\"name\": " + quote(memory::name(which)) + ", \"works\": " + (tried ? "true" : "false") +
         ", \"why\": " + quote(tried ? "tried with another process" : tried.error().text) + "}";
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
  const std::string ways = "[" + way(memory::Way::mapped, try_mapped()) + ", " + way(memory::Way::xpmem, try_xpmem()) +
                           ", " + way(memory::Way::cma, try_cma()) + ", " +
                           way(memory::Way::copy_buffers, try_mapped()) + "]";
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
                            ", \"decides\": " + quote(name(row.decides)) + ", \"meaning\": " + quote(row.meaning) + "}";
                   })
                  .c_str(),
              machine().c_str(), algorithms().c_str());
}
