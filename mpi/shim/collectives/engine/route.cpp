// The facts that route() gets, and the steps that it asks for before it can name a server.
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/handles/contents.hpp"

namespace nearfield::mpi {
namespace {

bool depends_on_order(MPI_Datatype type, MPI_Op op) {
  const auto known = find_op(op);
  if (!known) return true;
  if (*known != reducing::Op::sum && *known != reducing::Op::prod) return false;
  if (const TypeInfo* const info = find_type(type)) return !reducing::associative(info->type);
  int numbers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  return type != host.type_null &&
         host.Type_get_envelope(type, &numbers, &addresses, &types, &combiner) == MPI_SUCCESS && predefined(combiner);
}

}  // namespace

OrderFacts OrderFacts::of(const ReductionArguments& reduction) {
  OrderFacts facts;
  collectives::Call call{collectives::Collective::allreduce};
  facts.shows = Equal(depends_on_order(reduction.type, reduction.op));
  if (facts.shows && !describe_reduction(call, reduction.count, reduction.type, reduction.op))
    facts.bytes = Equal(std::uint64_t(call.bytes));
  return facts;
}

Admission admit(const CallFacts& call, MPI_Comm comm, const ReductionArguments* reduction) {
  return admit_inline(call, comm, reduction);
}

Admission decide(Communicator& c, const CallFacts& call, const ReductionArguments* reduction) {
  for (;;) {
    const bool asks_order = reduction && c.deferred;
    const Route by = route(c.facts(asks_reach(call)), call, asks_order ? OrderFacts::of(*reduction) : OrderFacts{});
    switch (by.who) {
      case Server::after_creation:
        if (!c.async_creation->wait() || left_to_host(c.comm)) return {{Server::host}};
        break;
      case Server::make_team: make_team(c); break;
      case Server::begin_team: AsyncCreation::begin(c); break;
      case Server::host: c.deferred -= by.reason == Reason::deferred; return {by};
      default: c.deferred -= by.reason == Reason::deferred; return {by, &c};
    }
  }
}

}  // namespace nearfield::mpi
