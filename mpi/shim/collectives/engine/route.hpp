// Who serves a collective call, and why. This is decided here and nowhere else, for all forms, and it is equal on all
// ranks (law 1 of docs/dev/architecture.md): route() is a pure function of facts on which they agree.
//
//   Communicator    what its ranks agreed on or its first rank published    facts()         --+
//   CalledFunction  which function the program has called                   at compile time --+--> route()
//   OrderFacts      a reduction's type, operator and count                  of()            --+
//
// A fact is an Equal. Only these three make one; none of them is given an address, a layout, a setting or a library of
// its rank. What only this rank knows (wrong arguments, a revoked communicator) makes its call wrong, and is the host's
// before route() is asked.
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

// What there is for a communicator's collectives.
enum class TeamStanding : std::uint8_t {
  groups,   // an intercommunicator
  untried,  // it is yet to have a team
  begun,    // its team is being made (async_creation.hpp)
  team,
  nodes,  // a hierarchy
  none,   // no team can be had
};

// Whom of its ranks messages of ours reach: there are none of ours, none by the hint, not all, all; not asked.
enum class MessageReach : std::uint8_t { none, off, not_all, all, unasked };

// Hosts that get right calls wrong, as far as deferred communicators hand them such (docs/dev/decisions.md).
enum class HostKind : std::uint8_t { other, intel_mpi, open_mpi };
inline constinit HostKind host_kind{};

struct CommunicatorFacts {
  Equal<TeamStanding> standing;
  Equal<MessageReach> reach;
  Equal<bool> on;                 // by the hint, and since nobody has lacked memory
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

// Of a reduction on a deferred communicator. Hosts combine operands in orders of their own, and what is rounded one way
// at first and another way later differs.
struct OrderFacts {
  static constexpr std::uint64_t any = ~std::uint64_t{0};
  Equal<bool> shows{false};         // the result depends on the order of more than two operands
  Equal<std::uint64_t> bytes{any};  // of an operand that we can combine
  static OrderFacts of(const ReductionArguments& reduction);
};

enum class Server : std::uint8_t {
  team,
  nodes,     // by the hierarchy
  messages,  // as edges
  // The others are no direct way.
  host,
  host_gathers,  // the host hands operands round, each rank combines them in order
  // It is too early to say; afterwards route() is asked again.
  after_creation,  // when the team that is being made is there
  make_team,
  begin_team,  // to be made while calls wait for it
};

struct Route {
  Server who;
  Reason reason = Reason::communicator;  // why the host
  constexpr bool operator==(const Route&) const = default;
};

constexpr bool is_of_messages(collectives::Collective collective) {
  return std::size_t(collective) >= collectives::collective_count;
}

// Whether its route depends on whom messages reach.
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
  // Nobody else takes part, and a host's copy costs no more than ours. Windows of one rank need a team.
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
