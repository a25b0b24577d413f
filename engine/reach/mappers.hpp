// Memory mappers: ways to reach a peer's memory. Each is one file and one row, in the order of preference. Callers ask
// Peers and name no mapper.
//
//   mapped   the bytes lie in the peer's segment: plain load and store
//   heap     they lie in the peer's shared heap: plain load and store, once that is mapped
//   xpmem    a kernel module maps any page of the peer: plain load and store, attached piece by piece
//   cma      process_vm_readv and process_vm_writev: one copy by a system call
//
// Memory that none of them reaches goes through copy buffers, which all peers have mapped.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.hpp"
#include "engine/memory/segment.hpp"
#include "engine/reach/remote_buffer.hpp"

namespace nearfield::reach {

class Peers;
struct Peer;

inline constexpr std::size_t mapper_count = 4;

// State of a mapper, of this process or of a peer. The mapper's file derives a class from it.
struct MapperState {
  virtual ~MapperState() = default;
};
using MapperStates = std::array<std::unique_ptr<MapperState>, mapper_count>;

// Nanoseconds on a usual machine; trials decide.
struct Costs {
  double access;  // to load and store a byte, or to read it by a call
  double call;    // of one access
  double attach;  // of a region that is not attached yet
  double page;    // of each of its pages, at the first touch
};

// Result of attaching a region.
struct Attached {
  enum class State : std::uint8_t { no, not_yet, yes } state = State::no;
  std::byte* at = nullptr;                // yes: address of the region's begin here
  std::shared_ptr<const void> keep = {};  // yes: it stays attached while this lives
  std::string why = {};                   // no: the reason
};

// All functions but `place`, `gives`, `read` and `write` are called under Peers::mutex. Errors say what was tried.
struct MemoryMapper {
  const char* name;               // NEARFIELD_REACH=^name leaves it out
  const char* title;              // in reports
  const char* part_of = nullptr;  // ^part_of leaves it out, too
  const char* about;
  Costs costs;
  bool standing = false;  // its regions are attached from the beginning, so they need no agreement

  // Probes the mapper, once per process. Returns a word for its peers (Card::advertised); an Error: it is not used.
  Result<std::uint64_t> (*open)(Peers& self);
  // Called once per peer with the peer's word. An Error: the mapper does not reach that peer.
  Result<void> (*meet)(Peers& self, Peer& peer, std::uint64_t advertised);

  // Describes `bytes` > 0 at `address` to peers. Returns RemoteBuffer() if this mapper does not reach them. `mapper`:
  // index of this row. pre: the buffer is noted as in flight, if a fork must know of it.
  RemoteBuffer (*place)(const Peers& self, std::size_t mapper, const void* address, std::size_t bytes) = nullptr;

  // Returns whether the kernel lets peers access the region; asked before an unattached region is published.
  bool (*gives)(const Peers& self, const Region& region) = nullptr;

  // Sends the peer what it needs to attach that region of ours. False: call again. An Error: the region cannot be
  // attached, and the peer has been told so.
  Result<bool> (*offer)(Peers& self, Peer& peer, const Region& region) = nullptr;
  // Returns a descriptor of our memory of that generation, which the caller closes; -1: that memory is gone. For peers
  // that get no letter.
  int (*descriptor)(const Peers& self, std::uint64_t generation) = nullptr;
  // Keeps what the peer has sent. `mapped` an Error: that generation is gone, or cannot be mapped here.
  void (*take)(Peers& self, Peer& peer, std::uint64_t generation, Result<memory::PeerSegment> mapped) = nullptr;
  Attached (*attach)(Peers& self, Peer& peer, const Region& region) = nullptr;

  // Transfers of any length by calls, for a mapper that attaches nothing.
  Result<void> (*read)(const Peer& peer, void* to, std::uint64_t address, std::size_t bytes) = nullptr;
  Result<void> (*write)(const Peer& peer, const void* from, std::uint64_t address, std::size_t bytes) = nullptr;

  // Detaches all memory of a peer that has ended, except what is in use.
  void (*part)(Peers& self, Peer& peer) = nullptr;
  // Revokes what peers can reach of this process, which leaves MPI.
  void (*close)(Peers& self) = nullptr;

  // Returns the estimate in nanoseconds for `bytes` that are attached.
  double time(double bytes) const { return costs.call + costs.access * bytes; }
};

// The rows.
extern const MemoryMapper segment_mapper, heap_mapper, xpmem_mapper, cma_mapper;
inline constexpr std::array<const MemoryMapper*, mapper_count> rows = {&segment_mapper, &heap_mapper, &xpmem_mapper,
                                                                       &cma_mapper};
constexpr std::span<const MemoryMapper* const> mappers() { return rows; }
constexpr std::size_t index_of(const MemoryMapper& mapper) {
  std::size_t w = 0;
  while (rows[w] != &mapper) ++w;
  return w;
}

// Returns what `mapper` keeps of this process (Peers) or of another (Peer); the first call makes it.
template <class State, class Owner>
State& kept(Owner& owner, const MemoryMapper& mapper) {
  auto& state = owner.kept[index_of(mapper)];
  if (!state) state = std::make_unique<State>();
  return static_cast<State&>(*state);
}

// "^cma,^xpmem" as a mask with bit 1 << i for row i. Copy buffers cannot be left out.
Result<std::uint32_t> parse_left_out(const std::string& text);

}  // namespace nearfield::reach
