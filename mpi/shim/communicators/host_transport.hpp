// Transport between nodes: lanes are communicators of the host, transfers are its non-blocking collectives.
#pragma once
#include <array>
#include <atomic>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/hierarchy/placement.hpp"
#include "engine/hierarchy/transport.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Number of transfers that this process has under way; while there are any, every wait progresses the host.
inline constinit std::atomic<int> transfers_under_way{0};

class HostTransport final : public hierarchy::Transport {
 public:
  // `comm`: the program's communicator; `within`: that of our node's ranks, which is freed here. Throws std::bad_alloc.
  HostTransport(MPI_Comm comm, MPI_Comm within, const hierarchy::Placement& placement, int rank);
  ~HostTransport() override;
  void open(int lane) override;
  void start(unsigned slot, int lane, const hierarchy::LaneTransfer& transfer) override;
  // Starts another non-blocking call and returns its error code.
  int start(unsigned slot, FunctionRef<int(MPI_Request*)> call);
  bool done(unsigned slot) override;
  std::size_t longest() const override;
  // Returns memory for two counts per rank, for the arguments of such a call.
  template <class Count>
  Count* counts() {
    static_assert(sizeof(Count) <= sizeof(MPI_Count));
    return reinterpret_cast<Count*>(counts_.data());
  }

 private:
  // Lengths and displacements for the host, which must exist as long as it may read them.
  struct Amounts {
    std::vector<int> bytes, at;
    std::vector<MPI_Count> many;
    std::vector<MPI_Aint> far;
    void set(const hierarchy::MemberParts& parts, bool large);
  };
  struct Slot {
    MPI_Request request;
    Amounts from, into;
    bool busy = false;
  };
  const MPI_Comm comm_;
  MPI_Comm within_;
  const hierarchy::Placement placement_;
  const int rank_;
  std::vector<MPI_Comm> lanes_;
  std::vector<bool> open_;
  std::array<Slot, slots> slots_;
  std::vector<std::byte> counts_;
};

}  // namespace nearfield::mpi
