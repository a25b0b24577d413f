// Pieces of reductions.
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

// Returns the operands of all members in rank order: ours at `own`, that of member r at theirs(r).
template <class Theirs>
std::span<const void*> operands(CollectiveContext& context, const void* own, Theirs theirs) {
  const auto inputs = context.inputs();
  for (int r = 0; r < context.size(); ++r) inputs[r] = r == context.rank() ? own : theirs(r);
  return inputs;
}

// Combines `count` elements of each operand, from left to right, into `out`.
inline void combine(const Call& call, void* out, std::span<const void* const> operands, std::size_t count) {
  call.fold(&out, 1, operands.data(), operands.size(), count);
}

// Combines `ins` piece by piece in the first-level cache, and copies each piece by `stage` to all of `others`: other
// cores have read those lines, so a kernel's own stores would fetch them first. `own`: our copy of the result, may be
// null. Advances `ins`.
template <class Stage>
void fold_for_others(const Call& call, std::byte* own, std::span<void* const> others, std::span<const void*> ins,
                     std::size_t count, Stage stage) {
  constexpr std::size_t piece_bytes = 8 << 10, page = 4096;
  alignas(page) std::byte room[piece_bytes + page];
  // At the inputs' offset in their page, so that loads do not wait for stores to the same offset of another page.
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
