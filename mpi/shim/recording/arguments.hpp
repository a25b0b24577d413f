// What a call says of itself, found in the text of its parameters (mpi/functions.def) when its function is bound: its
// communicator, its partner, and the bytes that its rank gives (of Scatter and Scatterv: gets), of a block where the
// operation has one for each rank. Of receives that is the room they offer. Neighbours' lists count as nothing.
#pragma once
#include <cstdint>
#include <string_view>

#include "mpi/shim/host.hpp"

namespace nearfield::mpi::recording {

// Positions of parameters; -1: there is none.
struct Side {
  int buffer = -1, count = -1, type = -1;
  bool varying = false;  // lists of counts, and perhaps of types
  bool typed = false;
  bool wide = false;  // lists of MPI_Count
};
struct Places {
  int communicator = -1, window = -1, partner = -1;
  Side first, last;  // of what is moved; the same where there is one
  bool neighbors = false, reduces = false, scatters = false;
};

// `name`: of an MPI function without MPI_. `parameters`: their types, as "(const void*, int, MPI_Datatype)".
Places places_in(std::string_view name, std::string_view parameters);

// The same of one call, out of its arguments, a word each (calls::Words).
MPI_Comm communicator_in(const Places& places, const std::uint64_t* words);
int partner_in(const Places& places, const std::uint64_t* words);
std::uint64_t bytes_in(const Places& places, const std::uint64_t* words);

}  // namespace nearfield::mpi::recording
