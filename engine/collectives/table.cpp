#include "engine/collectives/table.hpp"

namespace nearfield::collectives {

const char* name(Collective collective) noexcept {
  static constexpr const char* names[] = {"barrier",  "bcast",  "reduce",  "allreduce",           "allgather",
                                          "alltoall", "gather", "scatter", "reduce_scatter_block"};
  static_assert(sizeof names / sizeof *names == collective_count);
  return collective < Collective::count ? names[std::size_t(collective)] : "unknown";
}

std::span<const Algorithm> algorithms(Collective collective) {
  using Rows = std::span<const Algorithm> (*)();
  static constexpr Rows rows[] = {barrier_rows,  bcast_rows,  reduce_rows,  allreduce_rows,           allgather_rows,
                                  alltoall_rows, gather_rows, scatter_rows, reduce_scatter_block_rows};
  static_assert(sizeof rows / sizeof *rows == collective_count);
  return rows[std::size_t(collective)]();
}

}  // namespace nearfield::collectives
