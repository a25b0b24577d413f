// Makes the hierarchy of a communicator over several nodes, in its first collective call.
//
//   every rank                                           result
//   1. allgather by the host: its home, whether it can   the ranks of each node; if one cannot, the host serves all
//   2. the host splits off its node's ranks, which       a team (none if alone on a node). MPI_Comm_split blocks, but
//      make a team                                       all ranks are in this call
//   3. agreement by the host: all ranks have created everything, or the host serves all calls
//   4. bcast along lane 0 and the teams: settings of the first rank, and its shape
//
// A rank's home is the lowest rank that the messenger reaches: the same for all ranks of a node, which share one
// messenger.
#include "engine/base/out_of_memory.hpp"
#include "engine/creation/create.hpp"
#include "engine/hierarchy/groups.hpp"
#include "mpi/shim/communicators/bootstrap.hpp"
#include "mpi/shim/communicators/host_transport.hpp"

namespace nearfield::mpi {
namespace {

struct RankDescription {
  int home;
  bool willing, reproducible;
};

// Decided by the first rank.
struct HierarchySetup {
  hierarchy::HierarchyShape shape;
  Choosing choosing;
  bool reproducible;
  char algorithm[512];
};
static_assert(std::is_trivially_copyable_v<HierarchySetup>);

hierarchy::Placement placement_of(std::span<const RankDescription> all) {
  std::vector<int> home;
  for (const RankDescription& each : all) home.push_back(each.home);
  return hierarchy::Placement(home);
}

// Collective over a node's ranks. Makes their team; false on all: it cannot be created.
bool make_near(hierarchy::Hierarchy::Near& near, MPI_Comm within) {
  int local = 0, locals = 1;
  host.Comm_rank(within, &local);
  host.Comm_size(within, &locals);
  if (locals == 1) return true;
  HostBootstrap bootstrap(within);
  try {
    near.chooser = std::make_unique<choosing::Chooser>();
  } catch (const OutOfMemory&) {
    creation::decline_team(locals, bootstrap);
    return false;
  }
  auto team = creation::create_team(*process_ever(), local, locals, bootstrap);
  if (!team) return false;
  near.team = std::move(*team);
  near.chooser->serve(*near.team);
  near.team->takes_less = takes_less;
  return true;
}

}  // namespace

bool make_hierarchy(Communicator& state, team::Bootstrap& bootstrap) {
  auto all = team::room_for<RankDescription>(state.size);
  std::unique_ptr<hierarchy::HierarchyChooser> chooser;
  const bool in_order = state.reproducible || (process_ever() && process_ever()->settings().reproducible);
  RankDescription mine{lowest_near(state), false, in_order};
  try {
    chooser = std::make_unique<hierarchy::HierarchyChooser>();
    mine.willing = process_ever() != nullptr;
  } catch (const OutOfMemory&) {
  }
  bool one_node = true, alone = true, willing = bootstrap.allgather(&mine, all.data(), sizeof mine);
  for (int r = 0; r < state.size; ++r) {
    const RankDescription& each = all[std::size_t(r)];
    willing &= each.willing;
    one_node &= each.home == all[0].home;
    alone &= each.home == r;  // true while every rank is alone on its node
  }
  if (one_node) return false;
  alone &= !all[0].reproducible;
  if (!willing || alone) {
    log_line(LogLevel::info, "the host serves a communicator of %d ranks: %s", state.size,
             alone ? "each of them is alone on its node" : "a rank cannot take part");
    return true;
  }
  MPI_Comm within = host.comm_null;
  std::unique_ptr<hierarchy::Hierarchy> made;
  if (host.Comm_split(state.comm, mine.home, state.rank, &within) == MPI_SUCCESS) {
    hierarchy::Hierarchy::Near near;
    auto assemble = [&] {
      hierarchy::Placement placement = placement_of(all);
      auto transport = std::make_unique<HostTransport>(state.comm, within, placement, state.rank);
      within = host.comm_null;
      made = std::make_unique<hierarchy::Hierarchy>(*process_ever(), std::move(placement), state.rank, std::move(near),
                                                    std::move(transport));
    };
    if (make_near(near, within)) try {
        assemble();
      } catch (const OutOfMemory&) {
      }
    if (near.team) team::Team::close(std::move(near.team));
  }
  if (!bootstrap.all_and(made != nullptr)) {
    if (within != host.comm_null) host.Comm_free(&within);
    log_line(LogLevel::info, "the host serves a communicator of %d ranks: the ranks of a node cannot share memory",
             state.size);
    return true;
  }
  const Settings& settings = process_ever()->settings();
  HierarchySetup words{};
  words.shape = made->shape();
  words.choosing = settings.choosing;
  words.reproducible = in_order;
  settings.algorithm.copy(words.algorithm, sizeof words.algorithm - 1);
  hierarchy::bcast_from_first(*made, &words, sizeof words);
  made->set_shape(words.shape);
  made->reproducible = words.reproducible;
  chooser->serve(words.choosing, words.algorithm);
  state.hierarchy_chooser = std::move(chooser);
  state.hierarchy = std::move(made);
  return true;
}

// If each rank is alone on its node, a hierarchy is made only when reductions must keep the rank order.
void keep_order(Communicator& state, bool keep) {
  state.reproducible = keep;
  if (state.hierarchy) {
    state.hierarchy->reproducible = keep;
    state.hierarchy_chooser->begin_anew();
  } else if (!state.team && keep) {
    state.team_tried = state.inter || state.size == 1;
  }
}

}  // namespace nearfield::mpi
