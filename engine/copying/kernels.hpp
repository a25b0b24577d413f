// Loops that copy whole lines of 64 bytes by the widest vectors that the processor has.
#pragma once
#include <cstddef>

namespace nearfield::copying {

using CopyLines = void(std::byte* to, const std::byte* from, std::size_t lines);

// Streaming, to be finished by processor::finish_streams(). pre: `to` is a multiple of 64.
CopyLines& streaming_lines() noexcept;
// Always by vector loads and stores. No alignment is needed.
CopyLines& vector_lines() noexcept;

}  // namespace nearfield::copying
