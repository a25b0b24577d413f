// Creation of a team and its contexts.
//
//   every member                                     published to the others
//   1. allocates its block in its own segment
//   2. bootstrap allgather of a Hello                 node, identity, offset of the block, CPUs
//   3. sends its segment to members that lack it      (mailbox.hpp; each pair of processes once); members that get
//                                                     no letter take it from the owner's table of descriptors
//   4. tries the memory mappers for each new peer
//      The first two measure the distance of their cores (calibrating.hpp); the first one completes the plan
//   5. bootstrap agreement: all members have attached all segments, or none uses the team
//   6. reads the plan, which is complete since the agreement
//
// Members on several nodes, or a failure of one member, mean an Error on all: the host serves that communicator.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/context/pool.hpp"
#include "engine/creation/calibrating.hpp"
#include "engine/creation/create.hpp"
#include "engine/creation/team_creation.hpp"
#include "engine/machine/cpus.hpp"

namespace nearfield::creation {

using team::Bootstrap, team::MemberControlBlock, team::Process, team::Plan, team::Team, context::ContextGate,
    context::ContextControlBlock;
using team::line, team::room_for;

namespace {

// version of everything that processes share; raised with every change of layout
constexpr std::uint32_t protocol = 20;

// Follows the first member's MemberBlock.
struct LeaderBlock {
  ContextGate gate;
  alignas(line) Plan plan;  // first member, before creation is agreed
  Calibrating::ControlBlock calibration;
};
struct MemberBlock {
  ContextControlBlock context;
  MemberControlBlock words;
};

constexpr std::size_t offset_of_leader = (sizeof(MemberBlock) + line - 1) / line * line;
constexpr int shifts = 32;  // number of different lines at which blocks begin

int sharing(std::span<const Hello> hellos, int rank) {
  int members = 0;
  for (const auto& h : hellos) {
    bool shared = false;
    for (int w = 0; w < 16; ++w) shared |= (h.cpus[w] & hellos[rank].cpus[w]) != 0;
    members += shared;
  }
  return members;
}

// Returns how many consecutive members share a cache or package, if all groups but the last have as many; otherwise 0.
std::uint32_t stretch(std::span<const Hello> hellos, std::int64_t Hello::*what) {
  const std::size_t p = hellos.size();
  std::size_t first = 1;
  while (first < p && hellos[first].*what == hellos[0].*what) ++first;
  for (std::size_t r = 0; r < p; ++r) {
    const bool starts = r % first == 0;
    if (hellos[r].*what < 0 || (r > 0 && starts == (hellos[r].*what == hellos[r - 1].*what))) return 0;
  }
  return std::uint32_t(first);
}

// The first member decides the team's shape.
void plan_shape(Plan& plan, Process& process, std::span<const Hello> hellos, int sharing_cpus, bool one_group,
                const PairCosts& found) {
  Machine& machine = plan.machine = process.machine();
  const bool oversubscribed = process.policy().oversubscribed;
  plan.states = machine::pair_states(process.machine());
  plan.one_group = one_group;
  plan.ranks_per_cpu = oversubscribed ? std::max(1.01, sharing_cpus / process.cpus().available()) : 1;
  if (machine.cores > 0) plan.group = std::uint32_t(machine.cores);
  else if (!oversubscribed) plan.group = stretch(hellos, &Hello::cache);
  if (machine.sockets > 1) plan.package = std::uint32_t(machine.cpus / machine.sockets);
  else if (!oversubscribed) plan.package = stretch(hellos, &Hello::package);
  plan.meeting = process.settings().meeting;
  if (plan.meeting == Meeting::automatic)
    plan.meeting = team::meeting_for(int(hellos.size()), int(plan.group), oversubscribed);
  plan.buffer_bytes = team::buffer_bytes_for(oversubscribed);
  if (found.line == 0) return;
  // Virtual CPUs may be far apart although the system calls them near, so measured figures are used.
  const bool several_caches = plan.group > 1 && plan.group < hellos.size();
  const bool several_packages = plan.package > 0 && plan.package < hellos.size();
  const PairCosts* const beyond =
      several_caches ? slower_pair(process.machine(), found.line, several_packages) : nullptr;
  if (found.fill > 0) machine.near_pair = found;
  machine.far_pair = beyond ? *beyond : PairCosts{};
  machine.line = several_caches ? std::max(machine.line, machine.far_pair.line) : found.line;
  machine.near = several_caches ? found.line : 0;
}

// Nanoseconds between attempts to take missing segments from their owners' tables: strangers may keep a mailbox full.
constexpr std::uint64_t patience = 300'000'000;

// Sends our segment to the members that lack it and collects theirs. Letters for other teams may arrive in between, so
// every segment is kept under its owner's identity.
std::string swap_segments(Process& process, std::span<const Hello> hellos, int rank, MemberControlBlock& mine,
                          Bootstrap& bootstrap) {
  std::string error;
  const std::uint64_t start = waiting::nanoseconds();
  std::uint64_t next_fetch = start + patience;
  std::vector<int> to_send, to_receive;
  reach::Peers& reach = process.reach();
  std::unique_lock lock(reach.mutex);
  auto met = [&](int r) { return reach.find(hellos[std::size_t(r)].card.address.identity()); };
  for (int r = 0; r < int(hellos.size()); ++r) {
    if (r == rank) continue;
    if (!reach.has_segment(hellos[std::size_t(r)].card.address)) to_send.push_back(r);
    if (!met(r)) to_receive.push_back(r);
  }
  auto words_of = [&](int r) -> const MemberControlBlock* {
    const team::Peer* const peer = met(r);
    if (!peer) return nullptr;
    return &reinterpret_cast<MemberBlock*>(peer->segment.base() + hellos[std::size_t(r)].block)->words;
  };
  while (!to_send.empty() || !to_receive.empty()) {
    bool moved = false;
    std::erase_if(to_send, [&](int r) {
      const MemberControlBlock* const words = words_of(r);
      if (words && words->segments_complete.load(std::memory_order_acquire))  // SYNC: segments-complete
        reach.note_sent(hellos[std::size_t(r)].card.address);
      return reach.has_segment(hellos[std::size_t(r)].card.address);
    });
    for (std::size_t i = 0; i < to_send.size();) {
      auto sent = reach.send_segment(hellos[std::size_t(to_send[i])].card.address);
      if (!sent) return sent.error().text;
      if (!*sent) {
        ++i;
        continue;
      }
      to_send.erase(to_send.begin() + std::ptrdiff_t(i));
      moved = true;
    }
    auto came = reach.collect();
    if (!came) return came.error().text;
    moved |= *came;
    const std::uint64_t now = waiting::nanoseconds();
    if (now > next_fetch) {
      for (const int r : to_receive) {
        if (met(r)) continue;
        auto fetched = reach.fetch(hellos[std::size_t(r)].card);
        if (!fetched) error = fetched.error().text;
      }
      next_fetch = now + patience;
    }
    std::erase_if(to_receive, [&](int r) { return met(r) != nullptr; });
    if (to_receive.empty()) mine.segments_complete.store(1, std::memory_order_release);  // SYNC: segments-complete
    if (!moved) {
      if (now - start > 30'000'000'000u)
        return "no segment from " + std::to_string(to_receive.size()) + " member(s) within 30 s" +
               (error.empty() ? "" : ": " + error);
      // Another thread may be creating another team; the holder of the lock receives for both.
      lock.unlock();
      bootstrap.idle();
      lock.lock();
    }
  }
  return {};
}

}  // namespace

void decline_team(int size, Bootstrap& bootstrap) {
  const Hello absent{};
  auto hellos = room_for<Hello>(size);
  bootstrap.allgather(&absent, hellos.data(), sizeof absent);
}

std::size_t block_bytes(bool leader, std::size_t shared_configuration_bytes) {
  return shifts * line + offset_of_leader + (leader ? sizeof(LeaderBlock) + shared_configuration_bytes : 0);
}

// Local: step 1.
std::unique_ptr<Team> TeamCreation::prepare() try {
  std::unique_ptr<Team> team(new Team(process_, rank_, size_));
  // The block starts at another line for each rank, so that peers' blocks do not compete for one cache set.
  const std::size_t shift = std::size_t(rank_ % shifts) * line;
  const std::size_t configuration = process_.services().configuration_bytes();
  auto allocation = process_.arena().allocate(block_bytes(rank_ == 0, configuration), 4096);
  if (!allocation) {
    error_ = allocation.error().text;
    return team;
  }
  team->block_allocation_ = *allocation;
  const std::size_t offset = *allocation + shift;
  auto* const block = new (process_.segment().base() + offset) MemberBlock{};
  team->member_[std::size_t(rank_)] = &block->words;
  if (rank_ == 0) {
    auto* const leader = new (process_.segment().base() + offset + offset_of_leader) LeaderBlock{};
    leader->calibration.wanted = together_ && calibrating_.is_wanted(size_);
    leader->plan.check = process_.settings().check;
    leader->plan.deferred = std::uint32_t(std::min<std::uint64_t>(process_.settings().deferred_calls, ~0u));
    if (configuration) {
      auto* const room = reinterpret_cast<std::byte*>(leader) + sizeof *leader;
      std::memset(room, 0, configuration);
      process_.services().begin_configuration(process_.settings(), room, size_);
    }
  }
  // All memory is allocated before the members agree.
  auto contexts = std::make_unique<context::ContextPool>(*team);
  team->context_ = &contexts->first.context;
  team->contexts_ = contexts.get();
  team->state_ = std::move(contexts);
  team->block_offset_ = offset;
  return team;
} catch (const std::bad_alloc&) {
  error_ = "out of memory";
  return nullptr;
}

// Local: fills in the team from the others' hellos, once their segments are mapped.
void TeamCreation::fill_in(std::span<const Hello> hellos) {
  Team& team = *team_;
  const std::lock_guard lock(process_.reach().mutex);
  team.mappers_ = ~0u;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) {
      team.base_[r] = process_.segment().base();
    } else {
      team::Peer& peer = process_.reach().meet(hellos[r].card);
      team.peer_[r] = &peer;
      team.base_[r] = peer.segment.base();
    }
    team.mappers_ &= hellos[r].card.mappers;
  }
  team.context().prepare();
  for (int r = 0; r < size_; ++r) {
    auto* const block = reinterpret_cast<MemberBlock*>(team.base_[r] + hellos[r].block);
    team.member_[r] = &block->words;
    team.context().place_control_block(r, &block->context);
  }
  auto* const leader = reinterpret_cast<LeaderBlock*>(team.base_[0] + hellos[0].block + offset_of_leader);
  team.plan_ = &leader->plan;
  team.shared_configuration_ = reinterpret_cast<std::byte*>(leader) + sizeof *leader;
  team.context().place_gate(&leader->gate);
  const int shared = sharing(hellos, rank_);
  const bool one_group = std::ranges::all_of(hellos, [&](const Hello& h) { return h.group == hellos[0].group; });
  process_.tune(shared, one_group);
  const PairCosts found = rank_ < 2 ? calibrating_.run(rank_, leader->calibration, team.base_[0]) : PairCosts{};
  if (rank_ == 0) plan_shape(leader->plan, process_, hellos, shared, one_group, found);
}

TeamCreation::TeamCreation(Process& process, int rank, int size, bool together)
    : process_(process), rank_(rank), size_(size), together_(together), calibrating_(process), team_(prepare()) {
  mine_.block = team_ ? team_->block_offset_ : 0;
  mine_.card = process.reach().card();
  mine_.node = process.node_id();
  mine_.protocol = protocol;
  mine_.enabled = process.settings().enabled;
  mine_.group = process.scheduling_group();
  mine_.cache = process.shared_cache();
  mine_.package = process.shared_package();
  for (std::size_t cpu = 0; cpu < 1024; ++cpu)
    if (process.cpus().allowed.bits[cpu]) mine_.cpus[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
}

std::string TeamCreation::judge(std::span<const Hello> hellos) const {
  for (int r = 0; r < size_; ++r) {
    if (!hellos[r].enabled) return "Nearfield is switched off or has no shared memory in rank " + std::to_string(r);
    if (hellos[r].protocol != protocol) return "another version of Nearfield is loaded in rank " + std::to_string(r);
    if (hellos[r].node != hellos[0].node) return "the members live on several nodes";
    if (!hellos[r].block)
      return "rank " + std::to_string(r) + " has no shared memory" + (error_.empty() ? "" : ": " + error_);
  }
  for (int r = 0; r < size_; ++r)
    for (int s = 0; s < r; ++s)
      if (!std::memcmp(hellos[r].card.address.name, hellos[s].card.address.name, sizeof hellos[r].card.address.name))
        return "two members are one process";
  return {};
}

bool TeamCreation::met_all(std::span<const Hello> hellos) const {
  const std::lock_guard lock(process_.reach().mutex);
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && !process_.reach().find(hellos[r].card.address.identity())) return false;
  return true;
}

bool TeamCreation::join(std::span<const Hello> hellos, Bootstrap* bootstrap) {
  try {
    if (bootstrap) error_ = swap_segments(process_, hellos, rank_, team_->words(rank_), *bootstrap);
    else if (!met_all(hellos)) error_ = "its members have not met";
    if (error_.empty()) fill_in(hellos);
  } catch (const std::bad_alloc&) {
    error_ = "out of memory";
  }
  return error_.empty();
}

std::unique_ptr<Team> TeamCreation::finish() {
  const Plan& plan = team_->plan();
  team_->shape_ = {size_,           plan.ranks_per_cpu, plan.meeting, plan.one_group != 0, plan.buffer_bytes,
                   int(plan.group), int(plan.package),  plan.machine, plan.states};
  team_->context().barrier.join_tree();
  return std::move(team_);
}

Result<std::unique_ptr<Team>> create_team(Process& process, int rank, int size, Bootstrap& bootstrap) {
  TeamCreation creation(process, rank, size, true);
  auto hellos = room_for<Hello>(size);
  if (!bootstrap.allgather(&creation.mine(), hellos.data(), sizeof(Hello))) return Error{"the host's allgather failed"};
  if (std::string why = creation.judge(hellos); !why.empty()) return Error{std::move(why)};
  constexpr std::uint32_t complete = 1;
  const bool joined = creation.join(hellos, &bootstrap);
  const std::uint32_t agreed = bootstrap.all_and(joined ? complete : 0);
  if (!(agreed & complete)) return Error{joined ? "another member could not map all segments" : creation.error()};
  return creation.finish();
}

}  // namespace nearfield::creation
