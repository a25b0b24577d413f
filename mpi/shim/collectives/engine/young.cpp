#include "mpi/shim/collectives/engine/young.hpp"

#include "engine/memory/temporaries.hpp"
#include "mpi/shim/handles/contents.hpp"
#include "mpi/shim/handles/devices.hpp"

namespace nearfield::mpi {
namespace {

constexpr std::size_t most_gathered = 32768;  // bytes of all operands; a team has better ways for more

// Returns whether the result depends on the order of more than two operands; equal on all ranks of a call that is
// right.
bool in_order(MPI_Datatype type, MPI_Op op) {
  const auto known = find_op(op);
  if (!known) return true;
  if (*known != reducing::Op::sum && *known != reducing::Op::prod) return false;
  if (const TypeInfo* const info = find_type(type)) return !reducing::associative(info->type);
  int numbers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  return type != host.type_null &&
         host.Type_get_envelope(type, &numbers, &addresses, &types, &combiner) == MPI_SUCCESS && predefined(combiner);
}

}  // namespace

bool host_may_serve(const Communicator& c, const Reduction& reduction) {
  if (c.size <= 2 || !in_order(reduction.type, reduction.op)) return true;
  collectives::Call call{Collective::allreduce};
  return reduction.gathers && !devices::possible() &&
         !describe_reduction(call, reduction.count, reduction.type, reduction.op) &&
         call.bytes * std::size_t(c.size) <= most_gathered;
}

std::optional<int> combine_young(Collective collective, const char* function, const void* send, void* recv,
                                 const Reduction& reduction, int root, MPI_Comm comm) {
  const Communicator* const c = communicator_of(comm);
  collectives::Call call{collective};
  if (!c || c->size <= 2 || !in_order(reduction.type, reduction.op) ||
      describe_reduction(call, reduction.count, reduction.type, reduction.op) || call.bytes == 0)
    return std::nullopt;
  const bool rooted = collective == Collective::reduce, in_place = send == MPI_IN_PLACE;
  if (rooted && (root < 0 || root >= c->size)) return std::nullopt;
  const bool gets = !rooted || c->rank == root;
  const void* const mine = in_place ? recv : send;
  // Arguments that the host must judge.
  if (!mine || (in_place && !gets) ||
      (gets && (!recv || recv == MPI_IN_PLACE || (host_rejects_aliases && send == recv))))
    return std::nullopt;
  const auto p = std::size_t(c->size);
  const int count = int(reduction.count);
  const memory::Temporary places(p * call.bytes);
  if (!places.data()) return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
  const int code = to_host(collective, Reason::young, [&] {
    return rooted ? host.Gather(mine, count, reduction.type, places.data(), count, reduction.type, root, comm)
                  : host.Allgather(mine, count, reduction.type, places.data(), count, reduction.type, comm);
  });
  if (code != MPI_SUCCESS || !gets) return code;
  constexpr std::size_t few = 16;
  const void* ins[few];
  for (std::size_t done = 0; done < p;) {
    std::size_t n = 0;
    if (done) ins[n++] = recv;  // what has been combined so far
    for (; n < few && done < p; ++n, ++done) ins[n] = places.data() + done * call.bytes;
    void* const outs[] = {recv};
    call.fold(outs, 1, ins, n, call.count);
  }
  return MPI_SUCCESS;
}

}  // namespace nearfield::mpi
