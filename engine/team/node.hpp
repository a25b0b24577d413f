// The process's one global object: its segment, the peers whose segments it has mapped, its wait policy.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/memory/arena.hpp"
#include "engine/memory/cpus.hpp"
#include "engine/memory/exchange.hpp"
#include "engine/memory/reach.hpp"
#include "engine/memory/segment.hpp"
#include "engine/memory/shared_heap.hpp"
#include "engine/result.hpp"
#include "engine/settings.hpp"
#include "engine/team/shape.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::team {

class Team;
struct Plan;

// At offset 0 of every segment.
struct ProcessHeader {
  std::uint64_t probe;              // owner, before the segment is passed on: what a CMA probe must read
  std::atomic<std::uint32_t> left;  // owner: 1 once it has left MPI in good order
};

// Told with a descriptor (Exchange::send): the shared heap of that generation is gone, the descriptor is any.
inline constexpr std::uint64_t heap_gone = std::uint64_t{1} << 63;

// Another process of this node whose segment is mapped here. Never unmapped before exit.
struct Peer {
  Peer(memory::PeerSegment mapped, pid_t process) : segment(std::move(mapped)), pid(process) {}
  memory::PeerSegment segment;
  pid_t pid = 0;  // 0: not visible from our pid namespace
  int pidfd = -1;
  memory::Address address{};
  std::uint64_t probe_address = 0;
  bool cma = false;
  std::string cma_why;
  // The newest shared heap that the peer has passed to us; what it lies in stays mapped until nobody uses it.
  std::shared_ptr<memory::PeerSegment> heap;
  std::uint64_t heap_generation = 0;
  std::uint64_t heap_sent = 0;  // generation of our heap that the peer has been given
  bool gone() const;            // the process has ended
  bool left() const {
    return reinterpret_cast<const ProcessHeader*>(segment.base())->left.load(std::memory_order_acquire);
  }
};

class Node {
 public:
  // Creates the segment and the socket; cheap enough for start-up (no communication).
  static Result<std::unique_ptr<Node>> create(const Settings& settings);
  ~Node();

  const Settings& settings() const { return settings_; }
  memory::Segment& segment() { return segment_; }
  memory::Arena& arena() { return *arena_; }
  memory::Exchange& exchange() { return exchange_; }
  const memory::Cpus& cpus() const { return cpus_; }
  std::uint64_t node_id() const { return node_id_; }
  int shared_cache() const { return shared_cache_; }          // memory::shared_cache of our CPUs
  int shared_package() const { return shared_package_; }      // memory::shared_package
  int scheduling_group() const { return scheduling_group_; }  // memory::scheduling_group
  const Machine& machine() const { return machine_; }
  ProcessHeader& header() { return *reinterpret_cast<ProcessHeader*>(segment_.base()); }
  waiting::Policy& policy() { return policy_; }

  // Called inside waits; set by the shim.
  void (*progress)() = [] {};
  // Whether a rank that sleeps must look around often: for messages of ours, for what the host has under way.
  bool (*messages_need_us)() = [] { return false; };
  bool (*host_needs_us)() = [] { return false; };
  // Called for the first member of a new team: adds what the plan needs from elsewhere.
  std::function<void(Plan& plan, int size)> amend_plan;
  // Tells a fork which bytes of messages peers may be reading or writing now; set by the messenger.
  std::function<void(memory::SharedHeap::Keep keep, void* context)> visit_messages;

  // Peers by identity; guarded by `peers_mutex` while teams are created.
  std::unordered_map<std::string, std::unique_ptr<Peer>> peers;
  std::unordered_map<std::string, bool> sent;  // who has our segment already
  std::mutex peers_mutex;

  // Takes in what peers have passed to us: segments and shared heaps; whether anything came. Under peers_mutex.
  Result<bool> collect();

  // Where peers find a buffer of ours; `exposed_` must tell about it already (Team::meet_exposed).
  std::uint64_t place_of(const void* buffer, std::size_t bytes) const;
  const memory::SharedHeap* heap() const { return heap_; }

  // Teams whose buffers a fork must look at.
  std::vector<Team*> teams;
  std::mutex teams_mutex;

  // The wait policy, once it is known how many ranks of this node share our CPUs.
  // `one_group`: they let each other run by yielding.
  void tune(int sharing_ranks, bool one_group);

 private:
  Node(Settings settings, memory::Segment segment, memory::Exchange exchange);
  Settings settings_;
  memory::Segment segment_;
  std::unique_ptr<memory::Arena> arena_;
  memory::Exchange exchange_;
  memory::Cpus cpus_;
  void watch_forks();
  const memory::SharedHeap* heap_ = nullptr;
  std::uint64_t node_id_ = 0;
  int shared_cache_ = -1, shared_package_ = -1, scheduling_group_ = 0;
  Machine machine_;
  waiting::Policy policy_;
  int sharing_ranks_ = 0;
};

}  // namespace nearfield::team
