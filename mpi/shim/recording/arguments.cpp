#include "mpi/shim/recording/arguments.hpp"

#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/handles/types.hpp"

namespace nearfield::mpi::recording {
namespace {

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  if (count <= 0 || type == host.type_null) return 0;
  if (const TypeInfo* const info = find_type(type)) return std::uint64_t(count) * info->bytes;
  MPI_Count bytes = 0;
  if (host.Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return std::uint64_t(count) * std::uint64_t(bytes);
}

// The number of entries of a list with one entry per rank, and the index of ours; 0 if unknown.
struct Extent {
  int rank = 0, size = 0;
};
// `local`: use the local group of an intercommunicator, as reductions do, not the remote one.
Extent extent_of(MPI_Comm communicator, bool local) {
  if (communicator == host.comm_null) return {};
  const Communicator* const state = communicator_of(communicator);
  if (!state) return {};
  Extent ranks{state->rank, state->size};
  if (local && state->inter && host.Comm_size(communicator, &ranks.size) != MPI_SUCCESS) return {};
  return ranks;
}

template <class T>
T argument(const std::uint64_t* words, int at) {
  return calls::from_word<T>(words[at]);
}

std::uint64_t bytes_of_list(const FunctionTraits& r, const SideRoles& side, const std::uint64_t* words,
                            bool own_alone) {
  if (r.neighbors || r.communicator < 0 || !words[side.count]) return 0;
  const Extent ranks = extent_of(communicator_in(r, words), r.operation >= 0);
  std::uint64_t sum = 0;
  for (int i = own_alone ? ranks.rank : 0; i < (own_alone ? ranks.rank + 1 : ranks.size); ++i) {
    const std::int64_t count =
        r.large ? argument<const MPI_Count*>(words, side.count)[i] : argument<const int*>(words, side.count)[i];
    sum += bytes_of(count, side.typed ? argument<const MPI_Datatype*>(words, side.type)[i]
                                      : argument<MPI_Datatype>(words, side.type));
  }
  return sum;
}

std::uint64_t bytes_at(const FunctionTraits& r, const SideRoles& side, const std::uint64_t* words, bool own_alone) {
  if (side.type < 0) return 0;
  if (side.lists) return bytes_of_list(r, side, words, own_alone);
  const std::int64_t count = side.count < 0 ? 1 : std::int64_t(words[side.count]);
  return bytes_of(count, argument<MPI_Datatype>(words, side.type));
}

}  // namespace

MPI_Comm communicator_in(const FunctionTraits& r, const std::uint64_t* words) {
  return r.communicator < 0 ? host.comm_null : argument<MPI_Comm>(words, r.communicator);
}

int partner_in(const FunctionTraits& r, const std::uint64_t* words) {
  return r.partner() < 0 ? -1 : int(words[r.partner()]);
}

std::uint64_t bytes_in(const FunctionTraits& r, const std::uint64_t* words) {
  const SideRoles &own = r.own_side(), &other = r.other_side();
  if (own.type >= 0 && own.type != other.type && argument<const void*>(words, own.buffer) == MPI_IN_PLACE)
    return r.sends.root_only && other.lists ? 0 : bytes_at(r, other, words, true);
  return bytes_at(r, own, words, false);
}

}  // namespace nearfield::mpi::recording
