// Communication of a communicator's members before they share memory: non-blocking collectives of the host, and yields,
// since hosts' blocking collectives use up whole time slices when ranks outnumber CPUs.
#pragma once
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

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

}  // namespace nearfield::mpi
