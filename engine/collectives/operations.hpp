// Properties of the collective operations, from operations.def. Names, buffers exchanged, checks, reports, statistics,
// costs of later calls, benchmarks and tests derive from them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace nearfield::collectives {

// Operations with algorithms come first, since only these have cells in choosers.
enum class Collective : std::uint8_t {
#define OPERATION(name, ...) name,
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"
#define OPERATION(name, ...)
#define OF_MESSAGES(name, ...) name,
#include "engine/collectives/operations.def"
};
// clang-format off
inline constexpr std::size_t collective_count = 0
#define OPERATION(name, ...) +1
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"
    ;
// clang-format on

// Members that contribute data, or that receive data.
enum class Who : std::uint8_t { nobody, root, others, all_but_first, all };
// Data of each of them: a block of the call's length, one block for every member, or the member's part of a block.
enum class Amount : std::uint8_t { block, blocks, part };

struct Contribution {
  Who who;
  Amount amount;

  constexpr bool has(int rank, int root) const {
    switch (who) {
      case Who::nobody: return false;
      case Who::root: return rank == root;
      case Who::others: return rank != root;
      case Who::all_but_first: return rank > 0;
      case Who::all: break;
    }
    return true;
  }
  // Blocks of a member that has data; a part counts as its whole block.
  constexpr std::size_t each(int size) const { return amount == Amount::blocks ? std::size_t(size) : 1; }
  constexpr std::size_t blocks(int rank, int size, int root) const { return has(rank, root) ? each(size) : 0; }
};

// Members whose operands a result combines, always from left to right in rank order.
enum class Combines : std::uint8_t { none, all_operands, up_to_own, before_own };
// In place: how the send buffer and the receive buffer of a member coincide.
enum class InPlace : std::uint8_t { never, same_address, own_block_of_recv, own_block_of_send };

struct Operation {
  std::string_view name;
  Contribution gives, gets;
  Combines combines;
  InPlace in_place;

  // One member gives or gets all data, and the others need not wait for each other.
  constexpr bool rooted() const { return gives.who == Who::root || gets.who == Who::root; }
  constexpr bool reduces() const { return combines != Combines::none; }
  // A result for each member: of the operands of the members before it, and in a scan of its own, too.
  constexpr bool scans() const { return combines == Combines::up_to_own || combines == Combines::before_own; }
  // Moves no data, so that a call of no bytes still has to run.
  constexpr bool moves_nothing() const { return gives.who == Who::nobody && gets.who == Who::nobody; }
  // Bytes from the start of the other buffer to an in-place member's own block.
  constexpr std::size_t in_place_at(int rank, std::size_t block) const {
    return in_place == InPlace::never || in_place == InPlace::same_address ? 0 : std::size_t(rank) * block;
  }
};

namespace table {
using enum Who;
using enum Amount;
using enum Combines;
using enum InPlace;
inline constexpr Operation rows[] = {
#define OPERATION(name, ...) {#name, __VA_ARGS__},
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"
#define OPERATION(name, ...)
#define OF_MESSAGES(name, ...) {#name, __VA_ARGS__},
#include "engine/collectives/operations.def"
};
}  // namespace table

inline constexpr std::size_t operation_count = std::size(table::rows);

constexpr const Operation& operation(Collective collective) { return table::rows[std::size_t(collective)]; }
constexpr const char* name(Collective collective) {
  return std::size_t(collective) < operation_count ? operation(collective).name.data() : "unknown";
}
constexpr bool rooted(Collective collective) { return operation(collective).rooted(); }

// Returns the collective with algorithms that has this name.
constexpr std::optional<Collective> collective_named(std::string_view name) {
  for (std::size_t c = 0; c < collective_count; ++c)
    if (name == table::rows[c].name) return Collective(c);
  return std::nullopt;
}

}  // namespace nearfield::collectives
