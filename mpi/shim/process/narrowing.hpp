// Converts arguments of large-count calls for hosts that only have the int form: narrows counts and displacements, and
// tells whether all fit.
#pragma once
#include <climits>
#include <concepts>
#include <cstddef>
#include <vector>

#include "mpi/shim/process/host.hpp"
#include "mpi/traits.hpp"

namespace nearfield::mpi {

template <std::integral Large>
int narrow(Large value, bool& fits) {
  fits &= value <= Large(INT_MAX) && value >= Large(INT_MIN);
  return int(value);
}

// How many elements the array arguments of a call have. The arrays of the sending side come before the others.
struct ArrayLengths {
  std::size_t sends = 0, receives = 0;
  unsigned of_sends = 0;  // number of arrays of the sending side
  unsigned seen = 0;
  std::size_t next() { return seen++ < of_sends ? sends : receives; }
};
// pre: the function has array arguments. `root` and `send`: its arguments, if it has them.
ArrayLengths array_lengths(const FunctionTraits& traits, unsigned of_sends, MPI_Comm comm, int root, const void* send);

// One argument of a large-count form, converted for its int form.
template <class Plain, class Large>
struct Argument {
  static constexpr bool is_array = false;
  Argument(Large given, ArrayLengths&, bool&) : value(given) {}
  Plain get() const { return value; }
  Plain value;
};
template <std::integral Large>
  requires(sizeof(Large) > sizeof(int))
struct Argument<int, Large> {
  static constexpr bool is_array = false;
  Argument(Large given, ArrayLengths&, bool& fits) : value(narrow(given, fits)) {}
  int get() const { return value; }
  int value;
};
template <std::integral Large>
  requires(sizeof(Large) > sizeof(int))
struct Argument<const int*, const Large*> {
  static constexpr bool is_array = true;
  Argument(const Large* given, ArrayLengths& lengths, bool& fits) {
    const std::size_t length = lengths.next();
    if (!given) return;
    values.reserve(length + 1);  // a host may not like an array without an address
    for (std::size_t i = 0; i < length; ++i) values.push_back(narrow(given[i], fits));
  }
  const int* get() const { return values.data(); }
  std::vector<int> values;
};

inline constexpr const char* too_large =
    "this MPI library has no large-count form, and a count or displacement exceeds an int";

}  // namespace nearfield::mpi
