// What became of this process in MPI_Init: a line at NEARFIELD_LOG=info of the first rank, and a word for `nearfield
// run` (engine/base/outcome.hpp).
#pragma once
#include <string>

#include "engine/team/team.hpp"

namespace nearfield::mpi {

// The ranks of the world on this node, and the ways of reaching memory that all of them have.
struct Near {
  int ranks = 1;
  std::uint32_t ways = 0;
  void note(const team::Team* team) {
    if (team) *this = {team->size(), team->mappers()};
  }
};

struct Outcome {
  int rank, size;     // in the world
  bool ready;         // what we keep for communicators can be kept
  bool enabled;       // NEARFIELD
  bool collectively;  // all ranks came together: messages can be carried
  const Near& near;
  const std::string& why_none;
};
void tell_outcome(const Outcome& outcome);

}  // namespace nearfield::mpi
