#include "engine/team/process.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/base/files.hpp"
#include "engine/reach/shared_heap.hpp"

namespace nearfield::team {
namespace {

std::uint64_t mix(std::uint64_t hash, std::string_view text) {  // FNV-1a
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3u;
  return hash;
}

// Processes with the same identity can meet: same boot of the same kernel, same network namespace (abstract sockets
// live there), same user, same pretended node.
std::uint64_t identify_node(const Settings& settings) {
  std::string boot = contents("/proc/sys/kernel/random/boot_id");
  if (boot.ends_with('\n')) boot.pop_back();
  if (boot.empty()) {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    boot = host;
  }
  struct stat network {};
  if (stat("/proc/self/ns/net", &network)) network.st_ino = 0;
  const std::string all =
      boot + "/" + std::to_string(network.st_ino) + "/" + std::to_string(geteuid()) + "/" + settings.node;
  return mix(0xcbf29ce484222325u, all);
}

}  // namespace

const Services& Process::no_services() {
  static const Services none;
  return none;
}

Process::~Process() = default;

Process::Process(const Settings& settings, const Services& services, memory::Segment segment,
                 memory::Placer::Refusal refusal)
    : settings_(settings), services_(services), segment_(std::move(segment)), placer_(settings_.memory, refusal) {
  progress_.add(runner_);
}

Result<std::unique_ptr<Process>> Process::create(const Settings& settings, const Services& services,
                                                 memory::Placer::Refusal refusal) {
  const std::size_t memory = std::size_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  auto segment = memory::Segment::create(memory::segment_bytes(memory, std::size_t(sysconf(_SC_NPROCESSORS_ONLN))));
  if (!segment) return segment.error();
  if (memory::address_space_limit() != SIZE_MAX)
    log_line(LogLevel::info,
             "address space is limited (ulimit -v), so the segment has %zu MiB and there is no shared heap",
             segment->size() >> 20);
  std::unique_ptr<Process> process(new Process(settings, services, std::move(*segment), refusal));
  process->collapsing_.begin(nanoseconds());
  process->arena_ = std::make_unique<memory::Arena>(process->segment_, 0, &process->placer_);
  // The first allocation, so it lies at offset 0.
  if (auto reserved = process->arena_->allocate(header_bytes, header_bytes); !reserved) return reserved.error();
  auto* header = new (process->segment_.base()) ProcessHeader{};
  if (getrandom(&header->probe, sizeof header->probe, 0) != sizeof header->probe)
    header->probe = waiting::nanoseconds();
  auto peers = reach::Peers::create(process->segment_, settings.ways_left_out);
  if (!peers) return peers.error();
  process->reach_ = std::move(*peers);
  process->cpus_ = machine::available_cpus();
  const machine::Caches caches = machine::read_caches(process->cpus_);
  process->shared_cache_ = caches.shared_by(process->cpus_);
  process->shared_package_ = machine::shared_package(process->cpus_);
  process->scheduling_group_ = machine::scheduling_group();
  process->node_id_ = identify_node(settings);
  process->machine_ = settings.machine;
  if (process->machine_.cache == 0) process->machine_.cache = double(caches.largest);
  Machine& machine = process->machine_;
  if (machine.own == 0) machine.own = double(caches.own);
  if (machine.own == 0) machine.own = machine.l2;
  if (machine.span == 0)
    machine.span = double(
        memory::span_for(std::size_t(machine.own), std::size_t(machine.cache), std::size_t(caches.neighbors.count())));
  if (process->machine_.cpus == 0) process->machine_.cpus = process->cpus_.available();
  process->tune(1, true);
  process->place_heap();
  return process;
}

void Process::learn(const PairCosts& found) {
  machine::learn(machine_, found);
  Machine stored = settings_.machine;  // without figures that the system reports
  machine::learn(stored, found);
  if (auto done = store_machine(stored_machine(), stored); !done)
    log_line(LogLevel::info, "the measured figures of this machine could not be stored: %s", done.error().text.c_str());
}

memory::CopyBuffers& Process::copy_buffers() {
  const std::lock_guard lock(copy_buffers_mutex_);
  if (!copy_buffers_) copy_buffers_.emplace(segment_, *arena_, std::size_t(machine_.span), collapsing_);
  return *copy_buffers_;
}

// Pages come as the program touches them, so the kernel decides once a node is full.
void Process::place_heap() {
  const memory::Wish* const wish = placer_.wish(memory::Component::heap);
  if (!wish) return;
  const memory::Placer::Asked asked = memory::Placer::decide(*wish);
  const auto& [nodes, others, doubt] = asked.order;
  std::string trouble = asked.trouble;
  if (const reach::SharedHeap* const heap = reach::SharedHeap::find(); !heap) {
    trouble = "there is no shared heap";
  } else if (!nodes.empty()) {
    nearfield_heap_placement placement{};
    for (const int node : std::span(nodes).first(wish->interleave ? nodes.size() : 1))
      if (node < int(8 * sizeof placement.nodes)) placement.nodes[node / 64] |= std::uint64_t{1} << node % 64;
    placement.most = wish->most;
    placement.rest = others.empty() ? -1 : others[0];
    if (auto placed = heap->place(placement); !placed) trouble = placed.error().text;
  }
  if (!trouble.empty()) static_cast<void>(placer_.miss(memory::Component::heap, *wish, true, trouble));
}

void Process::count_heap() {
  const reach::SharedHeap* const heap = reach::SharedHeap::find();
  if (!heap || !placer_.wish(memory::Component::heap)) return;
  const reach::SharedHeap::View now = heap->current();
  if (now.base) placer_.count(memory::Component::heap, now.base, now.used);
}

void Process::leave() {
  reach_->close();
  header().left.store(1, std::memory_order_release);  // SYNC: left
}

void Process::tune(int sharing_ranks, bool one_group) {
  if (sharing_ranks <= sharing_ranks_) return;
  sharing_ranks_ = sharing_ranks;
  policy_.oversubscribed = sharing_ranks > cpus_.available() + 0.01;
  policy_.may_sleep = true;
  policy_.spins = waiting::pauses_in(50'000);
  // In one scheduling group a yield hands the CPU on. Where launchers give every rank a session, hence a group, of its
  // own, it does so late: ranks that yield for long take the CPU from the one that works. With a dozen ranks to a CPU,
  // which one call wakes together, it costs least to sleep at once.
  const bool apart = policy_.oversubscribed && !one_group;
  policy_.patience =
      apart ? policy_.contended : waiting::Policy::Patience{policy_.oversubscribed ? 100u : 2000u, 1'000'000};
  policy_.apart = apart;
  policy_.sleep_at_once = apart && sharing_ranks >= 12 * cpus_.available();
  policy_.contention = nullptr;
  switch (settings_.wait) {
    case WaitStyle::automatic: policy_.contention = &contention_; break;
    case WaitStyle::spin:
      policy_.oversubscribed = false;
      policy_.may_sleep = false;
      break;
    case WaitStyle::yield:
      policy_.oversubscribed = true;
      policy_.may_sleep = false;
      break;
    case WaitStyle::sleep:
      policy_.oversubscribed = true;
      policy_.patience.yields = 3;
      break;
  }
}

}  // namespace nearfield::team
