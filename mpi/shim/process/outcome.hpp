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
  bool ready;         // state can be attached to communicators
  bool enabled;       // NEARFIELD
  bool collectively;  // all ranks have called it together, so messages can be served
  const Near& near;
  const std::string& why_none;
};
void report_outcome(const Outcome& outcome);

}  // namespace nearfield::mpi
