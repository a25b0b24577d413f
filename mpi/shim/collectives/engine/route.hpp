// Who serves a collective call, and why. This is decided here and nowhere else, for all forms, and it is equal on all
// ranks (law 1 of docs/dev/architecture.md): route() is a pure function of facts on which they agree.
//
//   Communicator    what its ranks agreed on or its first rank published    facts()         --+
//   CalledFunction  which function the program has called                   at compile time --+--> route()
//   OrderFacts      a reduction's type, operator and count                  of()            --+
//
// A fact has the type Equal. Only the three sources above can make one, and none of them reads an address, a layout, a
// setting or a library of its own rank. If something that only this rank knows makes its call wrong (an argument, a
// revoked communicator), the call goes to the host and route() is not asked.
#pragma once
#include <cstdint>

#include "engine/collectives/operations.hpp"
#include "mpi/shim/statistics/counters.hpp"

namespace nearfield::mpi {

struct Communicator;
struct OrderFacts;
struct ReductionArguments;

enum class Form : std::uint8_t { blocking, nonblocking, persistent, window };

template <collectives::Collective collective, Form form>
struct CalledFunction;

template <class T>
class Equal {
 public:
  constexpr operator T() const { return value_; }  // NOLINT: a fact is read like its value

 private:
  constexpr explicit Equal(T value) : value_(value) {}
  friend Communicator;
  template <collectives::Collective, Form>
  friend struct CalledFunction;
  friend OrderFacts;
  friend struct DrawnFacts;  // of the test
  T value_;
};

// What serves a communicator's collectives, or whether that is still to be made.
enum class TeamStanding : std::uint8_t {
  groups,   // an intercommunicator
  untried,  // no team has been tried yet
  begun,    // its team is being made (async_creation.hpp)
  team,
  nodes,  // a hierarchy
  none,   // no team can be created
};

// Which ranks of a communicator our messages reach. none: there is no messenger; off: the hint `nearfield` is off.
enum class MessageReach : std::uint8_t { none, off, not_all, all, unasked };

// Hosts that make mistakes in valid calls which deferred communicators would pass to them (docs/dev/decisions.md).
enum class HostKind : std::uint8_t { other, intel_mpi, open_mpi };
inline constinit HostKind host_kind{};

struct CommunicatorFacts {
  Equal<TeamStanding> standing;
  Equal<MessageReach> reach;
  Equal<bool> on;                 // false: the hint is off, or a call has failed because a rank lacked memory
  Equal<bool> several_nodes;      // of the world
  Equal<std::uint32_t> deferred;  // number of next calls that the host serves before a team is made
  Equal<int> size;
  Equal<HostKind> host;
};

struct CallFacts {
  Equal<collectives::Collective> collective;
  Equal<Form> form;
};

template <collectives::Collective collective, Form form>
struct CalledFunction {
  static constexpr CallFacts facts{Equal(collective), Equal(form)};
};

// Facts of a reduction on a deferred communicator, whose first calls the host serves. Hosts may combine operands in
// another order than we do, so that results of the first calls could differ from those of later ones.
struct OrderFacts {
  static constexpr std::uint64_t any = ~std::uint64_t{0};
  Equal<bool> shows{false};         // the result depends on the order of more than two operands
  Equal<std::uint64_t> bytes{any};  // length of an operand; any: we cannot combine it
  static OrderFacts of(const ReductionArguments& reduction);
};

enum class Server : std::uint8_t {
  team,
  nodes,     // by the hierarchy
  messages,  // as edges (vector/exchange.hpp)
  // admit() returns the servers above at once.
  host,
  host_gathers,  // the host gathers operands, each rank combines them in order
  // What has to be done before route() is asked again.
  after_creation,  // wait until the team is created
  make_team,
  begin_team,  // begin to create it; calls are queued meanwhile (async_creation.hpp)
};

struct Route {
  Server who;
  Reason reason = Reason::communicator;  // why the host serves the call
  constexpr bool operator==(const Route&) const = default;
};

constexpr bool is_of_messages(collectives::Collective collective) {
  return std::size_t(collective) >= collectives::collective_count;
}

// Returns whether the route of the call depends on MessageReach.
constexpr bool asks_reach(const CallFacts& call) {
  return is_of_messages(call.collective) || call.form == Form::nonblocking || call.form == Form::persistent;
}

// Returns whether the host gets the call right with every argument that MPI allows.
constexpr bool host_is_right(HostKind host, const CallFacts& call) {
  // Intel MPI 2021.19 writes wrong data, also past the buffer, where ranks pass different types.
  if (host == HostKind::intel_mpi) return call.collective != collectives::Collective::allgather;
  // Open MPI 5.0.11 crashes where the communicator is freed before its non-blocking calls are complete.
  return host != HostKind::open_mpi || call.form != Form::nonblocking;
}

constexpr Route route(const CommunicatorFacts& c, const CallFacts& call, const OrderFacts& order) {
  using enum Reason;
  using collectives::Collective;
  constexpr std::uint64_t most_gathered = 32768;  // bytes of all operands; a team has better ways for more
  const bool overlaps = call.form == Form::nonblocking || call.form == Form::persistent;
  const bool edges = is_of_messages(call.collective) || c.standing == TeamStanding::groups;
  if (edges) {
    if (c.reach == MessageReach::all) return {Server::messages};
    const bool pairs = call.collective == Collective::alltoallv || call.collective == Collective::alltoallw;
    if (!pairs || overlaps || !c.several_nodes || c.standing == TeamStanding::groups)
      return {Server::host, c.reach == MessageReach::off ? off : communicator};
  }
  // No other rank takes part, and a copy by the host costs no more than ours. Windows of one rank need a team.
  if (c.size == 1 && c.standing != TeamStanding::groups && call.form != Form::window) return {Server::host, single};
  if (c.standing == TeamStanding::begun && call.form != Form::nonblocking) return {Server::after_creation};
  if (!c.on || (overlaps && (c.reach == MessageReach::none || c.reach == MessageReach::off)))
    return {Server::host, off};
  switch (c.standing) {
    case TeamStanding::begun: return {Server::team};
    case TeamStanding::team: return edges ? Route{Server::host} : Route{Server::team};
    case TeamStanding::nodes: return overlaps ? Route{Server::host} : Route{Server::nodes};
    case TeamStanding::untried: break;
    default: return {Server::host};
  }
  const bool needs_team = call.form == Form::persistent || call.form == Form::window;
  if (c.deferred && !needs_team && host_is_right(c.host, call)) {
    if (!order.shows || c.size <= 2) return {Server::host, deferred};
    const bool can_gather = call.collective == Collective::allreduce || call.collective == Collective::reduce;
    if (can_gather && !overlaps && order.bytes <= most_gathered / std::uint64_t(c.size))
      return {Server::host_gathers, deferred};
  }
  if (call.form != Form::nonblocking) return {Server::make_team};
  return c.reach == MessageReach::all ? Route{Server::begin_team} : Route{Server::host};
}

}  // namespace nearfield::mpi
