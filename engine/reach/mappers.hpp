// How a peer's bytes are got at. Each mapper is one file and one row; the rows stand in the order in which they are
// preferred. Who wants to reach something asks Peers, and names no mapper.
//
//   mapped   the bytes lie in the peer's segment: plain load and store
//   heap     they lie in its shared heap: the same, once that is mapped
//   xpmem    a kernel module maps any of its pages: the same, attached piece by piece
//   cma      process_vm_readv and process_vm_writev: one copy by system call
//
// What none of them reaches goes through copy buffers, which all peers have.
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

// What a mapper keeps, of this process or of a peer; its own file knows the type.
struct MapperState {
  virtual ~MapperState() = default;
};
using MapperStates = std::array<std::unique_ptr<MapperState>, mapper_count>;

// Nanoseconds, of a usual machine; what decides is tried.
struct Costs {
  double access;  // of a byte that is loaded and stored, or read by a call
  double call;    // of one access
  double attach;  // of a region that is not attached yet
  double page;    // of each of its pages, at the first touch
};

// What a mapper makes of a region.
struct Attached {
  enum class State : std::uint8_t { no, not_yet, yes } state = State::no;
  std::byte* at = nullptr;                // yes: where the region begins here
  std::shared_ptr<const void> keep = {};  // yes: it stays attached while this lives
  std::string why = {};                   // no
};

// A row names what its mapper has. All functions but `place`, `gives`, `read` and `write` are called under
// Peers::mutex. Errors say what was tried.
struct MemoryMapper {
  const char* name;               // NEARFIELD_REACH=^name leaves it out
  const char* title;              // in reports
  const char* part_of = nullptr;  // and so does ^that
  const char* about;
  Costs costs;
  bool standing = false;  // peers have attached it before they ask: its place needs no agreement

  // Probe. Once per process: what peers are told of it. An Error: the mapper is out.
  Result<std::uint64_t> (*open)(Peers& self);
  // Once per peer that has told that: whether the mapper reaches it.
  Result<void> (*meet)(Peers& self, Peer& peer, std::uint64_t told);

  // Describe. Where peers find `bytes` > 0 at `address`; out of reach: not by this mapper. Where a fork must know what
  // peers are using, the noticeboard tells it already. `mapper`: this row.
  RemoteBuffer (*place)(const Peers& self, std::size_t mapper, const void* address, std::size_t bytes) = nullptr;

  // Whether the kernel lets others have it: asked about regions that nobody has attached, before peers are told.
  bool (*gives)(const Peers& self, const Region& region) = nullptr;

  // Attach. Passes the peer what it needs for that region of ours; whether it has it now. False: again; an Error: it
  // has been told that it will not get it.
  Result<bool> (*offer)(Peers& self, Peer& peer, const Region& region) = nullptr;
  // A descriptor of memory of ours of that generation, which the caller closes, -1: it is gone. For peers to whom no
  // letter comes.
  int (*descriptor)(const Peers& self, std::uint64_t generation) = nullptr;
  // What the peer has passed; nullptr: that generation is gone.
  void (*take)(Peers& self, Peer& peer, std::uint64_t generation,
               std::shared_ptr<memory::PeerSegment> mapped) = nullptr;
  Attached (*attach)(Peers& self, Peer& peer, const Region& region) = nullptr;

  // Instead of loads and stores of what is attached: whole transfers of any length.
  Result<void> (*read)(const Peer& peer, void* to, std::uint64_t address, std::size_t bytes) = nullptr;
  Result<void> (*write)(const Peer& peer, const void* from, std::uint64_t address, std::size_t bytes) = nullptr;

  // Detach. The peer has gone: what is held of it is given up, as far as nobody uses it.
  void (*part)(Peers& self, Peer& peer) = nullptr;
  // Revoke. The process leaves, or has nothing that peers may reach any more.
  void (*close)(Peers& self) = nullptr;

  // Nanoseconds that `bytes` take, once they are attached.
  double time(double bytes) const { return costs.call + costs.access * bytes; }
};

// The rows, one a file.
extern const MemoryMapper segment_mapper, heap_mapper, xpmem_mapper, cma_mapper;
inline constexpr std::array<const MemoryMapper*, mapper_count> rows = {&segment_mapper, &heap_mapper, &xpmem_mapper,
                                                                       &cma_mapper};
constexpr std::span<const MemoryMapper* const> mappers() { return rows; }
constexpr std::size_t index_of(const MemoryMapper& mapper) {
  std::size_t w = 0;
  while (rows[w] != &mapper) ++w;
  return w;
}

// "^cma,^xpmem" as a mask with bit 1 << i for row i. Copy buffers cannot be left out.
Result<std::uint32_t> parse_left_out(const std::string& text);

}  // namespace nearfield::reach
