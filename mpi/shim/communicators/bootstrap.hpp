// Communication of a communicator's members while they prepare to share memory.
#pragma once
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

// For members that have no team yet: by non-blocking collectives of the host, with yields between tests, since blocking
// collectives of hosts use up whole time slices when there are more ranks than CPUs.
class HostBootstrap : public team::Bootstrap {
 public:
  explicit HostBootstrap(MPI_Comm comm) : comm_(comm) {}
  bool allgather(const void* mine, void* all, std::size_t bytes) override;
  std::uint32_t all_and(std::uint32_t bits) override;
  void idle() override;

 private:
  bool finish(MPI_Request& request);
  void look_for_late(std::uint64_t elapsed, bool& reported) const;
  MPI_Comm comm_;
};

// For members that have a team: by its first context, up to context::slot_payload bytes. No member may be in another
// call of the team meanwhile.
class TeamBootstrap final : public team::Bootstrap {
 public:
  explicit TeamBootstrap(team::Team& team) : team_(team) {}
  bool allgather(const void* mine, void* all, std::size_t bytes) override;
  std::uint32_t all_and(std::uint32_t bits) override;
  void idle() override {}

 private:
  team::Team& team_;
};

}  // namespace nearfield::mpi
