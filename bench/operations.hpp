// What is measured: operations by name, with what a program does around each call.
#pragma once
#include <mpi.h>

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

// `count` elements of `type` per rank's vector or block.
inline Operation operation(const std::string& name, int count, MPI_Datatype type) {
  using Doubles = double*;
  if (point_to_point(name)) return message_operation(name, count, type);
  if (name == "barrier") return surrounded([](Doubles, Doubles) { MPI_Barrier(comm); });
  if (name == "bcast") return surrounded([=](Doubles s, Doubles) { MPI_Bcast(s, count, type, 0, comm); });
  if (name == "reduce")
    return surrounded([=](Doubles s, Doubles r) { MPI_Reduce(s, r, count, type, MPI_SUM, 0, comm); });
  if (name == "allreduce")
    return surrounded([=](Doubles s, Doubles r) { MPI_Allreduce(s, r, count, type, MPI_SUM, comm); });
  if (name == "allgather")
    return surrounded([=](Doubles s, Doubles r) { MPI_Allgather(s, count, type, r, count, type, comm); });
  if (name == "alltoall")
    return surrounded([=](Doubles s, Doubles r) { MPI_Alltoall(s, count, type, r, count, type, comm); });
  if (name == "gather")
    return surrounded([=](Doubles s, Doubles r) { MPI_Gather(s, count, type, r, count, type, 0, comm); });
  if (name == "scatter")
    return surrounded([=](Doubles s, Doubles r) { MPI_Scatter(s, count, type, r, count, type, 0, comm); });
  if (name == "reduce_scatter_block")
    return surrounded([=](Doubles s, Doubles r) { MPI_Reduce_scatter_block(s, r, count, type, MPI_SUM, comm); });
  if (name == "scan") return surrounded([=](Doubles s, Doubles r) { MPI_Scan(s, r, count, type, MPI_SUM, comm); });
  if (name == "exscan") return surrounded([=](Doubles s, Doubles r) { MPI_Exscan(s, r, count, type, MPI_SUM, comm); });
  // Those of lengths that may differ, with equal ones.
  std::vector<int> counts(std::size_t(size), count), places(std::size_t(size), 0);
  int bytes = 1;
  if (name == "alltoallw") MPI_Type_size(type, &bytes);
  for (int r = 0; r < size; ++r) places[std::size_t(r)] = r * count * bytes;
  const std::vector<MPI_Datatype> types(std::size_t(size), type);
  if (name == "allgatherv")
    return surrounded(
        [=](Doubles s, Doubles r) { MPI_Allgatherv(s, count, type, r, counts.data(), places.data(), type, comm); });
  if (name == "gatherv")
    return surrounded(
        [=](Doubles s, Doubles r) { MPI_Gatherv(s, count, type, r, counts.data(), places.data(), type, 0, comm); });
  if (name == "scatterv")
    return surrounded(
        [=](Doubles s, Doubles r) { MPI_Scatterv(s, counts.data(), places.data(), type, r, count, type, 0, comm); });
  if (name == "reduce_scatter") {  // of one vector, to all as equally as they can have it
    for (int r = 0; r < size; ++r) counts[std::size_t(r)] = count / size + (r < count % size);
    return surrounded([=](Doubles s, Doubles r) { MPI_Reduce_scatter(s, r, counts.data(), type, MPI_SUM, comm); });
  }
  if (name == "alltoallv")
    return surrounded([=](Doubles s, Doubles r) {
      MPI_Alltoallv(s, counts.data(), places.data(), type, r, counts.data(), places.data(), type, comm);
    });
  if (name == "alltoallw")
    return surrounded([=](Doubles s, Doubles r) {
      MPI_Alltoallw(s, counts.data(), places.data(), types.data(), r, counts.data(), places.data(), types.data(), comm);
    });
  std::fprintf(stderr, "unknown operation %s\n", name.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  return {};
}

}  // namespace bench
