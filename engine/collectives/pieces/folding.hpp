// Pieces of reductions: whose operands, and what becomes of the result.
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

// Operands of all members in rank order: ours lies at `own`, that of member r where theirs(r) says.
template <class Theirs>
std::span<const void*> operands(CollectiveContext& context, const void* own, Theirs theirs) {
  const auto inputs = context.inputs();
  for (int r = 0; r < context.size(); ++r) inputs[r] = r == context.rank() ? own : theirs(r);
  return inputs;
}

// Their `count` elements each, from left to right, into `out`.
inline void combine(const Call& call, void* out, std::span<const void* const> operands, std::size_t count) {
  call.fold(&out, 1, operands.data(), operands.size(), count);
}

// Combines `ins` for others, piece by piece in the first-level cache, and copies each piece to all of `others`: they
// lie in lines that other cores have read, and that a kernel's own stores would fetch first. `own`: where we keep the
// result, nullptr: nowhere. `stage` copies. `ins` are advanced.
template <class Stage>
void fold_for_others(const Call& call, std::byte* own, std::span<void* const> others, std::span<const void*> ins,
                     std::size_t count, Stage stage) {
  constexpr std::size_t piece_bytes = 8 << 10, page = 4096;
  alignas(page) std::byte room[piece_bytes + page];
  // At the inputs' place in their page: loads do not wait for a store to the same place of another page then.
  std::byte* const scratch = room + reinterpret_cast<std::uintptr_t>(ins[0]) % page;
  const std::size_t element = call.bytes / call.count, piece = piece_bytes / element;
  for (std::size_t at = 0; at < count; at += piece) {
    const std::size_t n = std::min(piece, count - at);
    void* result = own ? own + at * element : scratch;
    call.fold(&result, 1, ins.data(), ins.size(), n);
    for (void* const other : others) stage(static_cast<std::byte*>(other) + at * element, result, n * element);
    for (const void*& in : ins) in = static_cast<const std::byte*>(in) + n * element;
  }
}

}  // namespace nearfield::collectives
