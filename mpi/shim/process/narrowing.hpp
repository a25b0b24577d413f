// Large-count calls with number of arrays of the sending side for hosts that have the int form alone: counts and
// displacements are narrowed, which is an error if one does not fit.
#pragma once
#include <tuple>
#include <vector>

#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

// Lengths of a call's arrays; those of the sending side come first if there are two sides.
struct ArrayLengths {
  std::size_t sends = 0, receives = 0;
  unsigned of_sends = 0;  // arrays
  unsigned seen = 0;
  std::size_t next() { return seen++ < of_sends ? sends : receives; }
};

inline std::size_t partners_in(MPI_Comm comm) {
  int inter = 0, n = 0;
  if (host.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return 0;
  const int code = inter ? host.Comm_remote_size(comm, &n) : host.Comm_size(comm, &n);
  return code == MPI_SUCCESS ? std::size_t(n) : 0;
}

// One argument of a large-count form, converted for its int form.
template <class Plain, class Large>
struct Argument {
  Argument(Large given, ArrayLengths&, bool&) : value(given) {}
  Plain get() const { return value; }
  Plain value;
};
template <>
struct Argument<int, MPI_Count> {
  Argument(MPI_Count given, ArrayLengths&, bool& fits) : value(narrow(given, fits)) {}
  int get() const { return value; }
  int value;
};
template <class Large>
struct Argument<const int*, const Large*> {
  Argument(const Large* given, ArrayLengths& lengths, bool& fits) {
    const std::size_t length = lengths.next();
    if (!given) return;
    values.reserve(length + 1);  // some hosts refuse an array with a null address
    for (std::size_t i = 0; i < length; ++i) values.push_back(narrow(MPI_Count(given[i]), fits));
  }
  const int* get() const { return values.data(); }
  std::vector<int> values;
};
template <>
struct Argument<const int*, const int*> {
  Argument(const int* given, ArrayLengths&, bool&) : value(given) {}
  const int* get() const { return value; }
  const int* value;
};

inline constexpr const char* too_large =
    "this MPI library has no large-count form, and a count or displacement exceeds an int";

// Calls the int form, or `otherwise()` if a value does not fit.
template <class... Narrow, class Otherwise, class... Arguments>
int narrowed(int (*plain)(Narrow...), ArrayLengths lengths, Otherwise otherwise, Arguments... arguments) {
  bool fits = true;
  const std::tuple<Argument<Narrow, Arguments>...> all{Argument<Narrow, Arguments>(arguments, lengths, fits)...};
  if (!fits) return otherwise();
  return std::apply([&](const auto&... each) { return plain(each.get()...); }, all);
}

// As large(), for a call that may have one array, with a count for every member of the own group.
template <class Large, class Plain, class... Arguments>
int large_with_counts(Large large_form, Plain plain_form, const char* function, MPI_Comm comm, Arguments... arguments) {
  if constexpr ((std::is_same_v<Arguments, const MPI_Count*> || ...)) {
    if (large_form) return large_form(arguments...);
    int own = 0;
    ArrayLengths lengths;
    if (host.Comm_size(comm, &own) == MPI_SUCCESS) lengths.receives = std::size_t(own);
    return narrowed(plain_form, lengths, [&] { return raise(comm, function, too_large); }, arguments...);
  } else {
    return large(large_form, plain_form, function, comm, arguments...);
  }
}

}  // namespace nearfield::mpi
