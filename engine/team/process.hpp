// State of this process that its teams share: segment, peers, wait policy.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/fibers/runner.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/copy_buffers.hpp"
#include "engine/memory/placer.hpp"
#include "engine/memory/segment.hpp"
#include "engine/reach/peers.hpp"
#include "engine/settings/settings.hpp"
#include "engine/team/process_header.hpp"
#include "engine/team/shape.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::hang_report {
class HangReporter;
}

namespace nearfield::context {
class CollectiveContext;
}

namespace nearfield::team {

using reach::Peer;

class Process {
 public:
  // Creates the segment and the socket; cheap enough for start-up (no communication).
  // `refusal`: ends the program where memory cannot be placed as its settings force it.
  static Result<std::unique_ptr<Process>> create(const Settings& settings, memory::Placer::Refusal refusal = nullptr);
  ~Process();

  const Settings& settings() const { return settings_; }
  memory::Segment& segment() { return segment_; }
  memory::Arena& arena() { return *arena_; }
  memory::Placer& placer() { return placer_; }
  const memory::Cpus& cpus() const { return cpus_; }
  std::uint64_t node_id() const { return node_id_; }
  int shared_cache() const { return shared_cache_; }          // memory::shared_cache of our CPUs
  int shared_package() const { return shared_package_; }      // memory::shared_package
  int scheduling_group() const { return scheduling_group_; }  // memory::scheduling_group
  const Machine& machine() const { return machine_; }
  void learn(const Handing& found);  // stores them for later programs as well
  bool has_calibrated = false;
  // Counts the pages of the shared heap by node, if it has a wish.
  void count_heap();
  // The process leaves MPI: peers attach nothing of it any more, and do not wait for it.
  void leave();
  ProcessHeader& header() { return header_at(segment_.base()); }
  waiting::Policy& policy() { return policy_; }

  // Hang reporter that blocked waits register with; may be null. Never destroyed.
  hang_report::HangReporter* hang_reporter = nullptr;

  // Every wait progresses these.
  waiting::Progress progress;
  // Configuration that the first member of a team keeps for the others beside the plan: `bytes` bytes, which begin()
  // fills before the team is agreed on.
  struct SharedConfiguration {
    std::size_t bytes = 0;
    void (*begin)(const Settings& settings, std::byte* room, int size) = nullptr;
  } shared_configuration;

  // Describes a word of ContextControlBlock::doing in reports; set by the layer that enters calls.
  std::string (*describe)(std::uint64_t doing) = [](std::uint64_t) { return std::string("in a call"); };
  std::uint64_t doing_length = 0;  // mask of its bits that hold a length

  // The other processes of this node.
  reach::Peers& reach() { return *reach_; }

  // The process's copy buffers, made at the first call. Throws std::bad_alloc.
  memory::CopyBuffers& copy_buffers();
  void drop_copy_buffers() { copy_buffers_.reset(); }  // pre: none is in use

  // Contexts that hold copy buffers, chained by CollectiveContext::next_holder_. The mutex also guards the buffers that
  // each of them holds.
  std::mutex holders_mutex;
  context::CollectiveContext* holders = nullptr;

  // Number of locks that this process holds in all its windows.
  std::atomic<int> window_locks{0};

  // Sets the wait policy for `sharing_ranks` ranks of this node on our CPUs. `one_group`: they are in one scheduling
  // group, so a yield lets the others run.
  void tune(int sharing_ranks, bool one_group);

 private:
  Process(Settings settings, memory::Segment segment, memory::Placer::Refusal refusal);
  void place_heap();
  Settings settings_;
  memory::Segment segment_;
  memory::Placer placer_;
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<reach::Peers> reach_;
  memory::Cpus cpus_;
  std::uint64_t node_id_ = 0;
  int shared_cache_ = -1, shared_package_ = -1, scheduling_group_ = 0;
  Machine machine_;
  waiting::Policy policy_;
  int sharing_ranks_ = 0;
  std::mutex copy_buffers_mutex_;
  std::optional<memory::CopyBuffers> copy_buffers_;

 public:
  // Runs bodies of operations that may overlap others. Declared after the segment, which it refers to.
  fibers::Runner runner{segment_, header().asleep_on};
};

}  // namespace nearfield::team
