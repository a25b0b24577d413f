// Placement: on which NUMA nodes memory should lie. What is asked for is a Wish, which is read from text; where it
// leads to on a machine is decided here from a list of its nodes, without asking the system anything.
//
//   NEARFIELD_MEMORY = SENTENCE { ";" SENTENCE }       SENTENCE = COMPONENT ":" WISH
//   WISH = WORD { "," WORD }                           of an info key it is all there is
//   WORD = "bandwidth" | "latency" | "capacity" | "local" | NUMBER | "interleave" | "max=" SIZE | "forced"
//
// docs/placement.md says what they mean, and in which order what does not fit falls back.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/base/result.hpp"
#include "engine/machine/memory_nodes.hpp"

namespace nearfield::memory {

// Of what Nearfield allocates.
enum class Component : std::uint8_t { fastboxes, copy_buffers, windows, heap, control, alloc_mem };
inline constexpr std::size_t component_count = 6;
const char* name(Component component);   // as in the grammar
const char* about(Component component);  // what lies in it

struct Wish {
  enum class Target : std::uint8_t { bandwidth, latency, capacity, local, numbers, every_node };
  Target target = Target::every_node;
  std::vector<int> numbers;     // of Target::numbers
  bool interleave = false;      // page by page over the nodes asked for
  bool forced = false;          // elsewhere is an error
  std::size_t most = SIZE_MAX;  // bytes of this process there; of an info key: bytes of that allocation
  std::string text;             // as it was written
};
// The error says what is wrong, and what would be right.
Result<Wish> parse_wish(std::string_view words);

struct Wishes {
  std::array<std::optional<Wish>, component_count> of;
  bool empty() const;
};
Result<Wishes> parse_wishes(std::string_view sentences);

// From where nodes are looked at.
struct Vantage {
  CpuSet cpus;   // that the process may use
  int cpu = -1;  // that it runs on; -1: unknown
};

// Numbers of nodes, best first.
struct NodeOrder {
  std::vector<int> asked;   // where the wish is fulfilled
  std::vector<int> others;  // where memory falls back to
  std::string doubt;        // why `asked` is not quite what was asked for; a forced wish fails for it
};
NodeOrder order(const Wish& wish, std::span<const MemoryNode> nodes, const Vantage& from);

// The value that counts for these CPUs: the best of those published for CPUs among them; else, with `own` false, the
// best that is published for others. 0: none.
struct Value {
  std::uint64_t value = 0;
  bool own = false;
};
Value bandwidth(const MemoryNode& node, const CpuSet& cpus);  // MB/s
Value latency(const MemoryNode& node, const CpuSet& cpus);    // ns

// A part of a range and where it goes: to one node, by turns to several, or, where there is none, to whatever the
// kernel finds.
struct Piece {
  std::size_t bytes;
  std::vector<int> nodes;
  bool asked;
};
// Cuts `bytes` into pieces at whole pages: the nodes of the order are filled one after another, those asked for with
// `left` bytes at most. `room`: bytes that a node has to give.
std::vector<Piece> divide(const Wish& wish, const NodeOrder& order, std::size_t bytes, std::size_t left,
                          FunctionRef<std::size_t(int node)> room);

}  // namespace nearfield::memory
