#include "mpi/shim/collectives/engine/young.hpp"

#include "mpi/shim/collectives/engine/combining.hpp"
#include "mpi/shim/handles/contents.hpp"

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
  return reduction.gathers && !describe_reduction(call, reduction.count, reduction.type, reduction.op) &&
         call.bytes * std::size_t(c.size) <= most_gathered;
}

std::optional<int> combine_young(Collective collective, const char* function, const void* send, void* recv,
                                 const Reduction& reduction, int root, MPI_Comm comm) {
  Communicator* const c = communicator_of(comm);
  const bool rooted = collective == Collective::reduce;
  if (!c || c->size <= 2 || !in_order(reduction.type, reduction.op) || (rooted && (root < 0 || root >= c->size)))
    return std::nullopt;
  std::optional<int> code;
  const int failed = with_memory(*c, function, [&] {
    combining::Combining work(*c, collective, root, {send, recv, reduction.count, reduction.type, reduction.op});
    if (!work.right() || work.whole().bytes == 0) return MPI_SUCCESS;
    work.prepare(combining::Way::whole);
    if (code = work.load(); *code != MPI_SUCCESS) return MPI_SUCCESS;
    const collectives::Call moved = work.exchange();
    const int bytes = int(moved.bytes);
    code = to_host(collective, Reason::young, [&] {
      return rooted ? host.Gather(moved.send, bytes, host.byte, moved.recv, bytes, host.byte, root, comm)
                    : host.Allgather(moved.send, bytes, host.byte, moved.recv, bytes, host.byte, comm);
    });
    if (*code == MPI_SUCCESS) code = work.fold();
    if (*code == MPI_SUCCESS) code = work.store();
    return MPI_SUCCESS;
  });
  return failed == MPI_SUCCESS ? code : failed;
}

}  // namespace nearfield::mpi
