// A collective in chunks: each goes through the same stages, one stage a step, several chunks at once.
//
//   step        0      1      2      3      4
//   chunk 0     node   start  next   node                  a stage that starts a transfer does not wait for it: the
//   chunk 1            node   start  next   node           chunk's next stage does, after the node phases of others
#pragma once
#include <initializer_list>

#include "engine/base/function_ref.hpp"

namespace nearfield::hierarchy {

// Chunks that are on their way at the same time; each may keep what it needs under its number modulo this.
inline constexpr std::size_t chunks_under_way = 4;

// pre: at most chunks_under_way stages.
inline void pipeline(std::size_t chunks, std::initializer_list<FunctionRef<void(std::size_t chunk)>> stages) {
  const std::size_t last = stages.size();
  for (std::size_t step = 0; step + 1 < chunks + last; ++step)
    for (std::size_t i = last; i-- > 0;)
      if (step >= i && step - i < chunks) stages.begin()[i](step - i);
}

// The `index`th of `parts` nearly equal parts of `total`.
struct Stretch {
  std::size_t begin, count;
};
inline Stretch stretch(std::size_t total, std::size_t parts, std::size_t index) {
  const std::size_t begin = total * index / parts;
  return {begin, total * (index + 1) / parts - begin};
}

}  // namespace nearfield::hierarchy
