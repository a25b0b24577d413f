// The process's one global object: its segment, the peers whose segments it has mapped, its wait policy.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/settings.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/copy_buffers.hpp"
#include "engine/memory/segment.hpp"
#include "engine/reach/mailbox.hpp"
#include "engine/reach/noticeboard.hpp"
#include "engine/reach/reach.hpp"
#include "engine/reach/shared_heap.hpp"
#include "engine/team/shape.hpp"
#include "engine/track/runner.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::team {

class Track;

// At offset 0 of every segment.
struct ProcessHeader {
  std::uint64_t probe;              // owner, before the segment is passed on: what a CMA probe must read
  std::atomic<std::uint32_t> left;  // owner: 1 once it has left MPI in good order

  // Contexts that processes have closed (messages/closing.cpp).
  static constexpr std::uint32_t most_closed = 448;
  std::atomic<std::uint32_t> closed;            // owner: how many of the next; pairs with Messenger::look_for_closed
  std::uint64_t closed_context[most_closed];    // owner, published by `closed`
  std::atomic<std::uint32_t> closed_by_anyone;  // in the first member's: everybody adds one after its own `closed`
};
static_assert(sizeof(ProcessHeader) <= 4096);

// Told with a descriptor (Mailbox::send): the shared heap of that generation is gone, the descriptor is any.
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
  memory::Mailbox& mailbox() { return mailbox_; }
  const memory::Cpus& cpus() const { return cpus_; }
  std::uint64_t node_id() const { return node_id_; }
  int shared_cache() const { return shared_cache_; }          // memory::shared_cache of our CPUs
  int shared_package() const { return shared_package_; }      // memory::shared_package
  int scheduling_group() const { return scheduling_group_; }  // memory::scheduling_group
  const Machine& machine() const { return machine_; }
  void learn(const Handing& found);  // and stores it for the next programs
  bool has_calibrated = false;
  ProcessHeader& header() { return *reinterpret_cast<ProcessHeader*>(segment_.base()); }
  waiting::Policy& policy() { return policy_; }

  // What every wait keeps going.
  waiting::Progress progress;
  // What the first member of a team keeps for others beside the plan: so many bytes, which begin() fills before the
  // team is agreed on.
  struct Annex {
    std::size_t bytes = 0;
    void (*begin)(const Settings& settings, std::byte* room, int size) = nullptr;
  } annex;

  // Peers by identity; guarded by `peers_mutex` while teams are created.
  std::unordered_map<std::string, std::unique_ptr<Peer>> peers;
  std::unordered_map<std::string, bool> sent;  // who has our segment already
  std::mutex peers_mutex;

  // Takes in what peers have passed to us: segments and shared heaps; whether anything came. A known peer's segment is
  // never replaced, its heap only by a later one. Under peers_mutex.
  Result<bool> collect();
  // Without a letter: descriptor `fd` of process `pid`, whose segment's header must hold `probe`. Under peers_mutex.
  Result<void> fetch_segment(const std::string& identity, pid_t pid, int fd, std::uint64_t probe);

  // Where peers find a buffer of ours; `exposed_` must tell about it already (Track::meet_exposed).
  std::uint64_t place_of(const void* buffer, std::size_t bytes) const;
  const memory::SharedHeap* heap() const { return heap_; }

  // What others read and we write again; made when it is first asked for. Throws std::bad_alloc.
  memory::CopyBuffers& copy_buffers();
  void drop_copy_buffers() { copy_buffers_.reset(); }  // nobody uses any

  // Tracks that hold copy buffers, chained by Track::next_holder_; guards what each of them holds as well.
  std::mutex holders_mutex;
  Track* holders = nullptr;

  // Bodies of operations that may overlap others.
  Runner runner;

  // Buffers that a fork must look at.
  memory::Noticeboard noticeboard;

  // The wait policy, once it is known how many ranks of this node share our CPUs.
  // `one_group`: they let each other run by yielding.
  void tune(int sharing_ranks, bool one_group);

 private:
  Node(Settings settings, memory::Segment segment, memory::Mailbox mailbox);
  Settings settings_;
  memory::Segment segment_;
  std::unique_ptr<memory::Arena> arena_;
  memory::Mailbox mailbox_;
  memory::Cpus cpus_;
  void watch_forks();
  void admit(const std::string& identity, memory::PeerSegment segment, pid_t pid);
  const memory::SharedHeap* heap_ = nullptr;
  std::uint64_t node_id_ = 0;
  int shared_cache_ = -1, shared_package_ = -1, scheduling_group_ = 0;
  Machine machine_;
  waiting::Policy policy_;
  int sharing_ranks_ = 0;
  std::mutex copy_buffers_mutex_;
  std::optional<memory::CopyBuffers> copy_buffers_;
};

}  // namespace nearfield::team
