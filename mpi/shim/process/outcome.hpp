// Reports the outcome of MPI_Init: a line of the first rank at NEARFIELD_LOG=info, and a line for `nearfield run`
// (engine/base/outcome.hpp).
#pragma once
#include <string>

#include "engine/team/team.hpp"

namespace nearfield::mpi {

// Number of ranks of the world on this node, and the memory mappers that all of them have.
struct Near {
  int ranks = 1;
  std::uint32_t ways = 0;
  void note(const team::Team* team) {
    if (team) *this = {team->size(), team->mappers()};
  }
};

struct Outcome {
  int rank, size;     // in the world
  bool ready;         // the host lets us attach state to communicators
  bool enabled;       // the setting NEARFIELD
  bool collectively;  // all ranks have called start_node() together, so Nearfield can serve messages
  const Near& near;
  const std::string& why_none;
};
void report_outcome(const Outcome& outcome);

}  // namespace nearfield::mpi
