// The host's functions that may block, as the program calls them. A large-count form that the host lacks becomes its
// int form with narrowed arguments; programs take whatever is exported for existing, so what the host lacks altogether
// is an error.
#include "mpi/shim/blocking.hpp"

#include <cstring>
#include <string_view>
#include <tuple>
#include <vector>

#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/functions.hpp"

namespace nearfield::mpi {
namespace {

// How many elements the arrays of a call have: those of the sending side come first where there are two sides.
struct Lengths {
  std::size_t sends = 0, receives = 0;
  unsigned of_sends = 0;  // arrays
  unsigned seen = 0;
  std::size_t next() { return seen++ < of_sends ? sends : receives; }
};

// One argument of a large-count form, as its int form takes it.
template <class Plain, class Large>
struct Argument {
  Argument(Large given, Lengths&, bool&) : value(given) {}
  Plain get() const { return value; }
  Plain value;
};
template <>
struct Argument<int, MPI_Count> {
  Argument(MPI_Count given, Lengths&, bool& fits) : value(narrow(given, fits)) {}
  int get() const { return value; }
  int value;
};
template <class Large>
struct Argument<const int*, const Large*> {
  Argument(const Large* given, Lengths& lengths, bool& fits) {
    const std::size_t length = lengths.next();
    if (!given) return;
    values.reserve(length + 1);  // an array of nothing is not null either: Open MPI takes that for an error
    for (std::size_t i = 0; i < length; ++i) values.push_back(narrow(MPI_Count(given[i]), fits));
  }
  const int* get() const { return values.data(); }
  std::vector<int> values;
};
template <>
struct Argument<const int*, const int*> {
  Argument(const int* given, Lengths&, bool&) : value(given) {}
  const int* get() const { return value; }
  const int* value;
};

std::size_t partners(MPI_Comm comm) {
  int inter = 0, n = 0;
  if (host.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return 0;
  const int code = inter ? host.Comm_remote_size(comm, &n) : host.Comm_size(comm, &n);
  return code == MPI_SUCCESS ? std::size_t(n) : 0;
}

Lengths neighbors(MPI_Comm comm) {
  int kind = MPI_UNDEFINED, in = 0, out = 0, rank = 0, weighted = 0;
  host.Topo_test(comm, &kind);
  if (kind == MPI_CART) {
    host.Cartdim_get(comm, &in);
    in = out = 2 * in;
  } else if (kind == MPI_GRAPH) {
    host.Comm_rank(comm, &rank);
    host.Graph_neighbors_count(comm, rank, &in);
    out = in;
  } else if (kind == MPI_DIST_GRAPH) {
    host.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  }
  return {std::size_t(out), std::size_t(in)};
}

// Arrays count where the standard calls them significant: at the root alone in some calls.
Lengths lengths_of(std::string_view name, MPI_Comm comm, int root) {
  if (name.find("Neighbor_") != name.npos) {
    Lengths lengths = neighbors(comm);
    lengths.of_sends = name.find("alltoallv") != name.npos ? 2 : name.find("alltoallw") != name.npos ? 1 : 0;
    return lengths;
  }
  const bool rooted = name.find("Gatherv") != name.npos || name.find("Scatterv") != name.npos;
  if (!rooted) return {0, partners(comm)};
  int inter = 0, rank = 0;
  host.Comm_test_inter(comm, &inter);
  host.Comm_rank(comm, &rank);
  return {0, (inter ? root == MPI_ROOT : root == rank) ? partners(comm) : 0};
}

constexpr const char* too_large =
    "this MPI library has no large-count form, and a count or displacement exceeds an int";

template <auto member, class Function>
struct Blocking;
template <auto member, class... Arguments>
struct Blocking<member, int (*)(Arguments...)> {
  static inline HostCalls record;

  static int call(Arguments... arguments) {
    const HostCall blocks(record);
    return (host.*member)(arguments...);
  }
  static int lack(Arguments...) {
    if (!node()) return MPI_ERR_UNSUPPORTED_OPERATION;  // there may be no communicator to raise it on
    return raise(host.world, record.name, "this MPI library does not have it", MPI_ERR_UNSUPPORTED_OPERATION);
  }
};

template <auto member, auto plain, class Large, class Plain>
struct LargeForm;
template <auto member, auto plain, class... Arguments, class... Narrow>
struct LargeForm<member, plain, int (*)(Arguments...), int (*)(Narrow...)> {
  using Record = Blocking<member, int (*)(Arguments...)>;
  static int call(Arguments... arguments) {
    const std::tuple<Arguments...> all(arguments...);
    constexpr bool of_file = std::is_same_v<std::tuple_element_t<0, decltype(all)>, const MPI_File>;
    Lengths lengths;
    if constexpr (!of_file) {
      // The communicator comes last, after the root if there is one.
      constexpr std::size_t n = sizeof...(Arguments);
      int root = 0;
      if constexpr (std::is_same_v<std::tuple_element_t<n - 2, decltype(all)>, const int>) root = std::get<n - 2>(all);
      lengths = lengths_of(Record::record.name, std::get<n - 1>(all), root);
    }
    bool fits = true;
    const std::tuple<Argument<Narrow, Arguments>...> narrowed{Argument<Narrow, Arguments>(arguments, lengths, fits)...};
    if (!fits) {
      if constexpr (!of_file) return raise(std::get<sizeof...(Arguments) - 1>(all), Record::record.name, too_large);
      log_line(LogLevel::error, "%s: %s", Record::record.name, too_large);
      if constexpr (of_file) host.File_call_errhandler(std::get<0>(all), MPI_ERR_OTHER);
      return MPI_ERR_OTHER;
    }
    const HostCall blocks(Record::record);
    return std::apply([](const auto&... each) { return (host.*plain)(each.get()...); }, narrowed);
  }
};

template <auto member>
using Of = Blocking<member, std::remove_reference_t<decltype(host.*member)>>;

template <auto member>
void* bound(const char* name) {
  enter(Of<member>::record, name);
  return reinterpret_cast<void*>(host.*member ? &Of<member>::call : &Of<member>::lack);
}

template <auto member, auto plain>
void* bound_large(const char* name) {
  if (host.*member || !(host.*plain)) return bound<member>(name);
  enter(Of<member>::record, name);
  using Form = LargeForm<member, plain, std::remove_reference_t<decltype(host.*member)>,
                         std::remove_reference_t<decltype(host.*plain)>>;
  return reinterpret_cast<void*>(&Form::call);
}

}  // namespace

void* blocking_function(const char* name) {
#define F(function, types) \
  if (!std::strcmp(name, #function)) return bound<&Host::function>(*name == 'X' ? "MPI" #function : "MPI_" #function);
#define L(function, types)                \
  if (!std::strcmp(name, #function "_c")) \
    return bound_large<&Host::function##_c, &Host::function>("MPI_" #function "_c");
#include "mpi/shim/signatures.def"
#undef F
#undef L
  return nullptr;
}

}  // namespace nearfield::mpi
