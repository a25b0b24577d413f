#include "engine/team/node.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>

namespace nearfield::team {
namespace {

std::uint64_t mix(std::uint64_t hash, std::string_view text) {  // FNV-1a
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3u;
  return hash;
}

// Processes with the same identity can meet: same boot of the same kernel, same network namespace (abstract sockets
// live there), same user, same pretended node.
std::uint64_t identify_node(const Settings& settings) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
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

// The last-level cache of CPU 0 as the kernel describes it: a full topology would cost milliseconds at start-up.
std::uint64_t last_level_cache() {
  std::uint64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::uint64_t value = 0;
    char unit = 0;
    if (!(file >> value)) break;
    file >> unit;
    value <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
    if (value > largest) largest = value;
  }
  return largest ? largest : 8u << 20;
}

}  // namespace

bool Peer::gone() const {
  if (pidfd >= 0) {
    pollfd ready{pidfd, POLLIN, 0};
    return poll(&ready, 1, 0) == 1;
  }
  return false;
}

Node::Node(Settings settings, memory::Segment segment, memory::Exchange exchange)
    : settings_(std::move(settings)), segment_(std::move(segment)), exchange_(std::move(exchange)) {}

Result<std::unique_ptr<Node>> Node::create(const Settings& settings) {
  const std::size_t memory = std::size_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  auto segment = memory::Segment::create(memory);
  if (!segment) return segment.error();
  auto exchange = memory::Exchange::open();
  if (!exchange) return exchange.error();
  std::unique_ptr<Node> node(new Node(settings, std::move(*segment), std::move(*exchange)));
  constexpr std::size_t header_bytes = 4096;
  if (auto reserved = node->segment_.reserve(0, header_bytes); !reserved) return reserved.error();
  auto* header = new (node->segment_.base()) ProcessHeader{};
  if (getrandom(&header->probe, sizeof header->probe, 0) != sizeof header->probe)
    header->probe = waiting::nanoseconds();
  node->arena_ = std::make_unique<memory::Arena>(node->segment_, header_bytes);
  node->cpus_ = memory::available_cpus();
  node->node_id_ = identify_node(settings);
  node->l3_bytes_ = last_level_cache();
  node->tune(1);
  return node;
}

Node::~Node() {
  for (auto& [name, peer] : peers)
    if (peer->pidfd >= 0) close(peer->pidfd);
}

void Node::tune(int sharing_ranks) {
  if (sharing_ranks <= sharing_ranks_) return;
  sharing_ranks_ = sharing_ranks;
  policy_.crowded = sharing_ranks > cpus_.available() + 0.01;
  policy_.may_sleep = true;
  policy_.spins = waiting::pauses_in(50'000);
  policy_.yields = policy_.crowded ? 100 : 2000;
  switch (settings_.wait) {
    case WaitStyle::automatic: break;
    case WaitStyle::spin:
      policy_.crowded = false;
      policy_.may_sleep = false;
      break;
    case WaitStyle::yield:
      policy_.crowded = true;
      policy_.may_sleep = false;
      break;
    case WaitStyle::sleep:
      policy_.crowded = true;
      policy_.yields = 3;
      break;
  }
}

}  // namespace nearfield::team
