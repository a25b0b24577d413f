// What is measured: operations by name, with what a program does around each call.
#pragma once
#include <mpi.h>

#include <cctype>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/messages.hpp"
#include "bench/own_work.hpp"
#include "bench/ranks.hpp"
#include "engine/collectives/operations.hpp"

namespace bench {

// The collective whose non-blocking form `name` is (ibcast), which is waited for at once; any other name itself.
inline std::string blocking_form(const std::string& name) {
  for (const auto& op : nearfield::collectives::table::rows)
    if (name.starts_with('i') && op.name == name.substr(1)) return name.substr(1);
  return name;
}

inline bool without_size(const std::string& name) { return blocking_form(name) == "barrier" || finds_nothing(name); }

// How many times the bytes of a message, vector or block each of a rank's buffers has: as much as all send to one.
inline std::size_t blocks_in_buffer(const std::string& name) {
  return point_to_point(name) ? blocks_of_messages(name) : std::size_t(size);
}

inline Traffic traffic_of(const std::string& name, std::size_t bytes) {
  if (point_to_point(name)) return traffic_of_messages(name, bytes);
  // Rank 0 is the root of what has one.
  for (const auto& op : nearfield::collectives::table::rows) {
    if (op.name != blocking_form(name)) continue;
    return {op.gives.blocks(rank, size, 0) * bytes, op.gets.blocks(rank, size, 0) * bytes};
  }
  return {bytes, bytes};
}

// One after the other in a call of the operation: what a row's time is divided by.
inline double parts_of_a_call(const std::string& name) { return point_to_point(name) ? messages_in_a_call(name) : 1; }

// `count` elements of `type` per rank's vector or block; where lengths may differ, equal ones.
struct Elements {
  int count;
  MPI_Datatype type;
  std::vector<int> counts, places, byte_places;
  std::vector<MPI_Datatype> types;
  Elements(int n, MPI_Datatype t) : count(n), type(t), counts(std::size_t(size), n), types(std::size_t(size), t) {
    int bytes = 1;
    MPI_Type_size(type, &bytes);
    for (int r = 0; r < size; ++r) places.push_back(r * n), byte_places.push_back(r * n * bytes);
  }
};

// A call of a function, by the class of its parameters; rank 0 is the root.
template <class... Parameters>
struct Takes {};
using Doubles = double*;
using Counts = const int*;
using Send = const void*;
using Recv = void*;

template <class F>
Operation call_of(Takes<MPI_Comm>, F f, const Elements&) {
  return surrounded([=](Doubles, Doubles) { f(comm); });
}
template <class F>
Operation call_of(Takes<Recv, int, MPI_Datatype, int, MPI_Comm>, F f, const Elements& e) {
  return surrounded([=](Doubles s, Doubles) { f(s, e.count, e.type, 0, comm); });
}
template <class F>
Operation call_of(Takes<Send, int, MPI_Datatype, Recv, int, MPI_Datatype, MPI_Comm>, F f, const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.count, e.type, comm); });
}
template <class F>
Operation call_of(Takes<Send, int, MPI_Datatype, Recv, int, MPI_Datatype, int, MPI_Comm>, F f, const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.count, e.type, 0, comm); });
}
template <class F>
Operation call_of(Takes<Send, Recv, int, MPI_Datatype, MPI_Op, MPI_Comm>, F f, const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, r, e.count, e.type, MPI_SUM, comm); });
}
template <class F>
Operation call_of(Takes<Send, Recv, int, MPI_Datatype, MPI_Op, int, MPI_Comm>, F f, const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, r, e.count, e.type, MPI_SUM, 0, comm); });
}
// Of one vector, to all as equally as they can have it.
template <class F>
Operation call_of(Takes<Send, Recv, Counts, MPI_Datatype, MPI_Op, MPI_Comm>, F f, Elements e) {
  for (int r = 0; r < size; ++r) e.counts[std::size_t(r)] = e.count / size + (r < e.count % size);
  return surrounded([=](Doubles s, Doubles r) { f(s, r, e.counts.data(), e.type, MPI_SUM, comm); });
}
template <class F>
Operation call_of(Takes<Send, int, MPI_Datatype, Recv, Counts, Counts, MPI_Datatype, MPI_Comm>, F f,
                  const Elements& e) {
  return surrounded(
      [=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.counts.data(), e.places.data(), e.type, comm); });
}
template <class F>
Operation call_of(Takes<Send, int, MPI_Datatype, Recv, Counts, Counts, MPI_Datatype, int, MPI_Comm>, F f,
                  const Elements& e) {
  return surrounded(
      [=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.counts.data(), e.places.data(), e.type, 0, comm); });
}
template <class F>
Operation call_of(Takes<Send, Counts, Counts, MPI_Datatype, Recv, int, MPI_Datatype, int, MPI_Comm>, F f,
                  const Elements& e) {
  return surrounded(
      [=](Doubles s, Doubles r) { f(s, e.counts.data(), e.places.data(), e.type, r, e.count, e.type, 0, comm); });
}
template <class F>
Operation call_of(Takes<Send, Counts, Counts, MPI_Datatype, Recv, Counts, Counts, MPI_Datatype, MPI_Comm>, F f,
                  const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) {
    f(s, e.counts.data(), e.places.data(), e.type, r, e.counts.data(), e.places.data(), e.type, comm);
  });
}
template <class F>
Operation call_of(Takes<Send, Counts, Counts, const MPI_Datatype*, Recv, Counts, Counts, const MPI_Datatype*, MPI_Comm>,
                  F f, const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) {
    f(s, e.counts.data(), e.byte_places.data(), e.types.data(), r, e.counts.data(), e.byte_places.data(),
      e.types.data(), comm);
  });
}
template <class... Others, class F>
Operation call_of(Takes<Others...>, F,
                  const Elements&) {  // of neighbours by types and addresses, which is not measured
  return {};
}

// All parameters but the last one.
template <class... Done, class Last>
Takes<Done...> without_last(Takes<Done...>, Takes<Last>) {
  return {};
}
template <class... Done, class Next, class... Rest>
  requires(sizeof...(Rest) > 0)
auto without_last(Takes<Done...>, Takes<Next, Rest...>) {
  return without_last(Takes<Done..., Next>{}, Takes<Rest...>{});
}

template <class... Parameters>
Operation blocking_call(int (*f)(Parameters...), const Elements& e) {
  return call_of(Takes<Parameters...>{}, f, e);
}
template <class... Parameters>
Operation waited_call(int (*f)(Parameters...), const Elements& e) {
  const auto waited = [f](auto... arguments) {
    MPI_Request request;
    f(arguments..., &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  return call_of(without_last(Takes<>{}, Takes<Parameters...>{}), waited, e);
}

inline Operation operation(const std::string& name, int count, MPI_Datatype type) {
  if (point_to_point(name)) return message_operation(name, count, type);
  const auto is = [&](std::string function) {
    for (char& letter : function) letter = char(std::tolower(letter));
    return name == function;
  };
#define COLLECTIVE(function, ...) \
  if (is(#function)) return blocking_call(&MPI_##function, Elements(count, type));
// Besides these, the collective functions that all hosts have are the non-blocking forms.
#define OURS(function, result, parameters, kind, ...) BENCH_##kind(function)
#define BENCH_collective(function) \
  if (is(#function)) return waited_call(&MPI_##function, Elements(count, type));
#define BENCH_communicator(function)
#define BENCH_completion(function)
#define BENCH_message(function)
#define BENCH_neighbors(function)
#define BENCH_other(function)
#define BENCH_window(function)
#define OPTIONAL(...)
#define HANDLE(...)
#include "mpi/functions.def"
  std::fprintf(stderr, "unknown operation %s\n", name.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  return {};
}

}  // namespace bench
