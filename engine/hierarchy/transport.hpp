// Carries bytes from node to node: by the host MPI, or through memory in the engine's tests. It knows nothing of
// elements and operators: ranks combine operands themselves, in an order that the engine determines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace nearfield::hierarchy {

enum class Move : std::uint8_t { barrier, bcast, gather, scatter, allgather, alltoall };

// A buffer with a part for each member, `at` bytes from its start.
struct MemberParts {
  std::byte* buffer = nullptr;
  std::span<const std::size_t> bytes, at;
};

// A transfer among members. The members of a lane are nodes; those of a node (within_node) are its locals.
struct LaneTransfer {
  Move move;
  int root = 0;                    // bcast, gather, scatter
  const std::byte* one = nullptr;  // what a member gives in gather and allgather
  std::byte* to = nullptr;         // what it gets in scatter; in bcast the buffer of each member
  std::size_t bytes = 0;           // of `one` and `to`
  MemberParts from{}, into{};      // from: scatter, alltoall; into: gather, allgather, alltoall
};

class Transport {
 public:
  static constexpr unsigned slots = 32;   // transfers under way at once
  static constexpr int within_node = -1;  // instead of a lane: the ranks of this node

  virtual ~Transport() = default;
  // Collective over all ranks of the communicator: makes a lane ready, where it is not yet. Throws team::Broken.
  virtual void open(int lane) = 0;
  // All members of a lane call it, in the same order. What the transfer points to must stay valid until it is done.
  // Throws team::Broken.
  virtual void start(unsigned slot, int lane, const LaneTransfer& transfer) = 0;
  virtual bool done(unsigned slot) = 0;
  // Returns the most bytes that a buffer may have, the same on all ranks.
  virtual std::size_t longest() const = 0;
};

}  // namespace nearfield::hierarchy
