// State of this process that its teams share: segment, peers, wait policy.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

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
#include "engine/team/services.hpp"
#include "engine/team/shape.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::hang_report {
class HangReporter;
}

namespace nearfield::team {

using reach::Peer;
class Team;

// Teams that we have closed but other members have not: their blocks must stay. A linked list (Team::next_closing_),
// since freeing a communicator must not need memory.
struct ClosingTeams {
  ~ClosingTeams();
  std::mutex mutex;
  Team* first = nullptr;
};

class Process {
 public:
  // Creates the segment and the socket; cheap enough for start-up (no communication).
  // `services` outlive the process. `refusal`: ends the program where memory cannot be placed as its settings force it.
  static Result<std::unique_ptr<Process>> create(const Settings& settings, const Services& services = no_services(),
                                                 memory::Placer::Refusal refusal = nullptr);
  ~Process();

  const Settings& settings() const { return settings_; }
  const Services& services() const { return services_; }
  memory::Segment& segment() { return segment_; }
  memory::Arena& arena() { return *arena_; }
  memory::Placer& placer() { return placer_; }
  const machine::Cpus& cpus() const { return cpus_; }
  std::uint64_t node_id() const { return node_id_; }
  int shared_cache() const { return shared_cache_; }          // machine::Caches::shared_by() of our CPUs
  int shared_package() const { return shared_package_; }      // machine::shared_package
  int scheduling_group() const { return scheduling_group_; }  // machine::scheduling_group
  const Machine& machine() const { return machine_; }
  // Whether a team of this process measures figures of the machine, or did. learn() stores them, for later programs
  // too.
  bool has_calibrated() const { return has_calibrated_; }
  void begin_calibration() { has_calibrated_ = true; }
  void learn(const PairCosts& found);
  // Counts the pages of the shared heap by NUMA node, if the settings place them.
  void count_heap();
  // The process leaves MPI: peers attach nothing of it any more, and do not wait for it.
  void leave();
  ProcessHeader& header() { return header_at(segment_.base()); }
  waiting::Policy& policy() { return policy_; }
  const waiting::Contention& contention() const { return contention_; }

  // Hang reporter that blocked waits register with; may be null. Never destroyed.
  hang_report::HangReporter* hang_reporter() const { return hang_reporter_; }
  void report_hangs_to(hang_report::HangReporter& reporter) { hang_reporter_ = &reporter; }

  // Every wait progresses these.
  waiting::Progress& progress() { return progress_; }
  // Runs bodies of operations that may overlap others.
  fibers::Runner& runner() { return runner_; }

  ClosingTeams& closing() { return closing_; }

  // The other processes of this node.
  reach::Peers& reach() { return *reach_; }

  // The process's copy buffers, made at the first call. Throws std::bad_alloc.
  memory::CopyBuffers& copy_buffers();
  void drop_copy_buffers() { copy_buffers_.reset(); }  // pre: none is in use

  // Sets the wait policy for `sharing_ranks` ranks of this node on our CPUs, if these are more than before.
  // `one_group`: they are in one scheduling group, so a yield lets the others run.
  void tune(int sharing_ranks, bool one_group);

 private:
  Process(const Settings& settings, const Services& services, memory::Segment segment, memory::Placer::Refusal refusal);
  static const Services& no_services();
  void place_heap();
  const Settings settings_;
  const Services& services_;
  memory::Segment segment_;
  memory::Placer placer_;
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<reach::Peers> reach_;
  machine::Cpus cpus_;
  std::uint64_t node_id_ = 0;
  int shared_cache_ = -1, shared_package_ = -1, scheduling_group_ = 0;
  Machine machine_;
  waiting::Policy policy_;
  waiting::Contention contention_{waiting::delay_of_this_thread, waiting::log_contention};
  int sharing_ranks_ = 0;
  std::mutex copy_buffers_mutex_;
  memory::Allowance collapsing_;
  std::optional<memory::CopyBuffers> copy_buffers_;
  hang_report::HangReporter* hang_reporter_ = nullptr;
  bool has_calibrated_ = false;
  waiting::Progress progress_;
  fibers::Runner runner_{segment_, header().asleep_on};
  ClosingTeams closing_;
};

}  // namespace nearfield::team
