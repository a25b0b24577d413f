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

inline bool without_size(const std::string& name) { return name == "barrier" || finds_nothing(name); }

// How many times the bytes of a message, vector or block each of a rank's buffers has: as much as all send to one.
inline std::size_t blocks_in_buffer(const std::string& name) {
  return point_to_point(name) ? blocks_of_messages(name) : std::size_t(size);
}

inline Traffic traffic_of(const std::string& name, std::size_t bytes) {
  if (point_to_point(name)) return traffic_of_messages(name, bytes);
  // Rank 0 is the root of what has one.
  for (const auto& op : nearfield::collectives::table::rows) {
    if (op.name != name) continue;
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
using Doubles = double*;
inline Operation call_of(int (*f)(MPI_Comm), const Elements&) {
  return surrounded([=](Doubles, Doubles) { f(comm); });
}
inline Operation call_of(int (*f)(void*, int, MPI_Datatype, int, MPI_Comm), const Elements& e) {
  return surrounded([=](Doubles s, Doubles) { f(s, e.count, e.type, 0, comm); });
}
inline Operation call_of(int (*f)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm),
                         const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.count, e.type, comm); });
}
inline Operation call_of(int (*f)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm),
                         const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.count, e.type, 0, comm); });
}
inline Operation call_of(int (*f)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm), const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, r, e.count, e.type, MPI_SUM, comm); });
}
inline Operation call_of(int (*f)(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm), const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) { f(s, r, e.count, e.type, MPI_SUM, 0, comm); });
}
// Of one vector, to all as equally as they can have it.
inline Operation call_of(int (*f)(const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm), Elements e) {
  for (int r = 0; r < size; ++r) e.counts[std::size_t(r)] = e.count / size + (r < e.count % size);
  return surrounded([=](Doubles s, Doubles r) { f(s, r, e.counts.data(), e.type, MPI_SUM, comm); });
}
inline Operation call_of(int (*f)(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                                  MPI_Comm),
                         const Elements& e) {
  return surrounded(
      [=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.counts.data(), e.places.data(), e.type, comm); });
}
inline Operation call_of(int (*f)(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, int,
                                  MPI_Comm),
                         const Elements& e) {
  return surrounded(
      [=](Doubles s, Doubles r) { f(s, e.count, e.type, r, e.counts.data(), e.places.data(), e.type, 0, comm); });
}
inline Operation call_of(int (*f)(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype, int,
                                  MPI_Comm),
                         const Elements& e) {
  return surrounded(
      [=](Doubles s, Doubles r) { f(s, e.counts.data(), e.places.data(), e.type, r, e.count, e.type, 0, comm); });
}
inline Operation call_of(int (*f)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                                  MPI_Datatype, MPI_Comm),
                         const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) {
    f(s, e.counts.data(), e.places.data(), e.type, r, e.counts.data(), e.places.data(), e.type, comm);
  });
}
inline Operation call_of(int (*f)(const void*, const int*, const int*, const MPI_Datatype*, void*, const int*,
                                  const int*, const MPI_Datatype*, MPI_Comm),
                         const Elements& e) {
  return surrounded([=](Doubles s, Doubles r) {
    f(s, e.counts.data(), e.byte_places.data(), e.types.data(), r, e.counts.data(), e.byte_places.data(),
      e.types.data(), comm);
  });
}
template <class Function>
Operation call_of(Function*, const Elements&) {  // of neighbours by types and addresses, which is not measured
  return {};
}

inline Operation operation(const std::string& name, int count, MPI_Datatype type) {
  if (point_to_point(name)) return message_operation(name, count, type);
  const auto is = [&](std::string function) {
    for (char& letter : function) letter = char(std::tolower(letter));
    return name == function;
  };
#define COLLECTIVE(function, ...) \
  if (is(#function)) return call_of(&MPI_##function, Elements(count, type));
#include "mpi/functions.def"
  std::fprintf(stderr, "unknown operation %s\n", name.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  return {};
}

}  // namespace bench
