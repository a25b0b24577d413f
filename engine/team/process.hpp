// The process's one global object: its segment, its peers, its wait policy.
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
  // `refusal`: who ends the program where memory cannot be placed as its settings force it.
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
  void learn(const Handing& found);  // and stores it for the next programs
  bool has_calibrated = false;
  // Counts where the pages of the shared heap lie, if that was asked for.
  void count_heap();
  // Nothing of this process is to be had any more, and others need not wait for it.
  void leave();
  ProcessHeader& header() { return header_at(segment_.base()); }
  waiting::Policy& policy() { return policy_; }

  // Whom waits tell what they wait for; nullptr: nobody. Never destroyed.
  hang_report::HangReporter* hang_reporter = nullptr;

  // What every wait keeps going.
  waiting::Progress progress;
  // What the first member of a team keeps for others beside the plan: so many bytes, which begin() fills before the
  // team is agreed on.
  struct SharedConfiguration {
    std::size_t bytes = 0;
    void (*begin)(const Settings& settings, std::byte* room, int size) = nullptr;
  } shared_configuration;

  // What a word of ContextControlBlock::doing tells, for reports; by whoever enters calls.
  std::string (*describe)(std::uint64_t doing) = [](std::uint64_t) { return std::string("in a call"); };
  std::uint64_t doing_length = 0;  // its bits that tell a length

  // The other processes, and how their memory is got at.
  reach::Peers& reach() { return *reach_; }

  // What others read and we write again; made when it is first asked for. Throws std::bad_alloc.
  memory::CopyBuffers& copy_buffers();
  void drop_copy_buffers() { copy_buffers_.reset(); }  // nobody uses any

  // ContextPool that hold copy buffers, chained by CollectiveContext::next_holder_; guards what each of them holds as
  // well.
  std::mutex holders_mutex;
  context::CollectiveContext* holders = nullptr;

  // Locks of windows that this process holds, of all its windows.
  std::atomic<int> window_locks{0};

  // The wait policy, once it is known how many ranks of this node share our CPUs.
  // `one_group`: they let each other run by yielding.
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
  // Bodies of operations that may overlap others. Behind the segment, which it refers to.
  fibers::Runner runner{segment_, header().asleep_on};
};

}  // namespace nearfield::team
