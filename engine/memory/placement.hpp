// Placement: on which NUMA nodes memory should lie. A Wish is parsed from text. order() and divide() decide to which
// nodes of a list the memory goes, without any system call.
//
//   NEARFIELD_MEMORY = SENTENCE { ";" SENTENCE }       SENTENCE = COMPONENT ":" WISH
//   WISH = WORD { "," WORD }                           an info key holds one
//   WORD = "bandwidth" | "latency" | "capacity" | "local" | NUMBER | "interleave" | "max=" SIZE | "forced"
//
// docs/reference/placement.md explains the words, and the order in which memory that does not fit falls back.
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

using machine::CpuSet, machine::MemoryNode;

enum class Component : std::uint8_t { fastboxes, copy_buffers, windows, heap, control, alloc_mem };
inline constexpr std::size_t component_count = 6;
const char* name(Component component);   // as in the grammar
const char* about(Component component);  // description for users

struct Wish {
  enum class Target : std::uint8_t { bandwidth, latency, capacity, local, numbers, every_node };
  Target target = Target::every_node;
  std::vector<int> numbers;     // for Target::numbers
  bool interleave = false;      // page by page over the nodes asked for
  bool forced = false;          // memory elsewhere is an error
  std::size_t most = SIZE_MAX;  // limit in bytes: of this process; in an info key, of that allocation
  std::string text;             // as it was written
};
// The Error says what is wrong and which words are valid.
Result<Wish> parse_wish(std::string_view words);

struct Wishes {
  std::array<std::optional<Wish>, component_count> of;
  bool empty() const;
};
Result<Wishes> parse_wishes(std::string_view sentences);

// The process's position: distances and values of nodes are relative to it.
struct Vantage {
  CpuSet cpus;   // that the process may use
  int cpu = -1;  // that it runs on; -1: unknown
};

// Numbers of nodes, best first.
struct NodeOrder {
  std::vector<int> asked;   // nodes that fulfil the wish
  std::vector<int> others;  // nodes that memory falls back to
  std::string doubt;        // why `asked` differs from the wish; a forced wish fails then
};
NodeOrder order(const Wish& wish, std::span<const MemoryNode> nodes, const Vantage& from);

// A node's value for given CPUs: the best of those published for some of them; else, with `own` false, the best
// published for other CPUs. 0: none.
struct Value {
  std::uint64_t value = 0;
  bool own = false;
};
Value bandwidth(const MemoryNode& node, const CpuSet& cpus);  // MB/s
Value latency(const MemoryNode& node, const CpuSet& cpus);    // ns

// A part of a range and its nodes: one, several by turns, or none if the kernel is to decide.
struct Piece {
  std::size_t bytes;
  std::vector<int> nodes;
  bool asked;
};
// Cuts `bytes` into pieces at whole pages: fills the nodes of the order one after another, those asked for with `left`
// bytes at most. `room`: returns a node's free bytes.
std::vector<Piece> divide(const Wish& wish, const NodeOrder& order, std::size_t bytes, std::size_t left,
                          FunctionRef<std::size_t(int node)> room);

}  // namespace nearfield::memory
