// Who serves a collective call, and why: every row of route() (mpi/shim/collectives/engine/route.hpp), without MPI.
#include "mpi/shim/collectives/engine/route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <type_traits>
#include <vector>

namespace nearfield::mpi {

using collectives::Collective;

struct DrawnFacts {
  template <class T>
  static constexpr Equal<T> of(T value) {
    return Equal<T>(value);
  }
};

namespace {

// Nobody else makes a fact of a value; so none can be one rank's own.
static_assert(!std::is_constructible_v<Equal<bool>, bool> && !std::is_convertible_v<bool, Equal<bool>>);
static_assert(!std::is_default_constructible_v<CommunicatorFacts>);

struct Given {
  TeamStanding standing = TeamStanding::untried;
  MessageReach reach = MessageReach::all;
  bool on = true, several_nodes = false;
  std::uint32_t deferred = 0;
  int size = 3;
  HostKind host = HostKind::other;
  Collective collective = Collective::bcast;
  Form form = Form::blocking;
  bool shows = false;
  std::uint64_t bytes = OrderFacts::any;
};

constexpr Route routed(const Given& g) {
  using F = DrawnFacts;
  const CommunicatorFacts c{F::of(g.standing), F::of(g.reach), F::of(g.on),  F::of(g.several_nodes),
                            F::of(g.deferred), F::of(g.size),  F::of(g.host)};
  return route(c, {F::of(g.collective), F::of(g.form)}, {F::of(g.shows), F::of(g.bytes)});
}

// Nothing but its arguments decides: the compiler can say.
static_assert(routed({.deferred = 8}) == Route{Server::host, Reason::deferred});
static_assert(routed({}) == Route{Server::make_team});

struct Row {
  const char* what;
  Given given;
  Route expected;
};

constexpr Route by_host{Server::host, Reason::communicator}, off{Server::host, Reason::off},
    of_one{Server::host, Reason::single}, while_deferred{Server::host, Reason::deferred};
using enum Form;
using enum Collective;

const Row rows[] = {
    {"one rank", {.deferred = 8, .size = 1}, of_one},
    {"one rank, later", {.size = 1, .form = nonblocking}, of_one},
    {"one rank, planned", {.size = 1, .form = persistent}, of_one},
    {"one rank, parts", {.size = 1, .collective = alltoallv}, {Server::messages}},
    {"one rank, neighbours", {.size = 1, .collective = neighbor_alltoall}, {Server::messages}},
    {"one rank, after a window", {.standing = TeamStanding::team, .size = 1}, of_one},
    {"one rank's window", {.deferred = 8, .size = 1, .form = window}, {Server::make_team}},
    {"one rank to a group", {.standing = TeamStanding::groups, .size = 1}, {Server::messages}},
    {"two groups", {.standing = TeamStanding::groups, .deferred = 8}, {Server::messages}},
    {"two groups, later", {.standing = TeamStanding::groups, .form = nonblocking}, {Server::messages}},
    {"two groups on nodes",
     {.standing = TeamStanding::groups, .reach = MessageReach::not_all, .several_nodes = true},
     by_host},
    {"two groups, pairs",
     {.standing = TeamStanding::groups, .reach = MessageReach::not_all, .several_nodes = true, .collective = alltoallv},
     by_host},
    {"two groups, by the hint", {.standing = TeamStanding::groups, .reach = MessageReach::off, .on = false}, off},
    {"edges of a deferred one", {.deferred = 8, .collective = allgatherv}, {Server::messages}},
    {"edges, planned",
     {.standing = TeamStanding::none, .collective = scatterv, .form = persistent},
     {Server::messages}},
    {"edges, no messages",
     {.standing = TeamStanding::team, .reach = MessageReach::none, .collective = gatherv},
     by_host},
    {"edges, by the hint", {.reach = MessageReach::off, .on = false, .collective = gatherv}, off},
    {"edges over nodes",
     {.standing = TeamStanding::nodes, .reach = MessageReach::not_all, .several_nodes = true, .collective = gatherv},
     by_host},
    {"pairs over nodes",
     {.standing = TeamStanding::nodes, .reach = MessageReach::not_all, .several_nodes = true, .collective = alltoallv},
     {Server::nodes}},
    {"pairs over nodes, first",
     {.reach = MessageReach::not_all, .several_nodes = true, .collective = alltoallw},
     {Server::make_team}},
    {"pairs over nodes, later",
     {.standing = TeamStanding::nodes,
      .reach = MessageReach::not_all,
      .several_nodes = true,
      .collective = alltoallw,
      .form = nonblocking},
     by_host},
    {"pairs of a team without messages",
     {.standing = TeamStanding::team, .reach = MessageReach::none, .several_nodes = true, .collective = alltoallv},
     by_host},
    {"a team", {.standing = TeamStanding::team, .deferred = 8}, {Server::team}},
    {"a team, later", {.standing = TeamStanding::team, .form = nonblocking}, {Server::team}},
    {"a team's plan", {.standing = TeamStanding::team, .form = persistent}, {Server::team}},
    {"a team's window", {.standing = TeamStanding::team, .form = window}, {Server::team}},
    {"a team by the hint", {.standing = TeamStanding::team, .on = false}, off},
    {"a team without messages", {.standing = TeamStanding::team, .reach = MessageReach::none}, {Server::team}},
    {"the same, later", {.standing = TeamStanding::team, .reach = MessageReach::none, .form = nonblocking}, off},
    {"the same, planned", {.standing = TeamStanding::team, .reach = MessageReach::none, .form = persistent}, off},
    {"nodes", {.standing = TeamStanding::nodes, .reach = MessageReach::not_all}, {Server::nodes}},
    {"nodes, later", {.standing = TeamStanding::nodes, .reach = MessageReach::not_all, .form = nonblocking}, by_host},
    {"nodes, planned", {.standing = TeamStanding::nodes, .reach = MessageReach::not_all, .form = persistent}, by_host},
    {"no team", {.standing = TeamStanding::none, .deferred = 8}, by_host},
    {"no team, later", {.standing = TeamStanding::none, .form = nonblocking}, by_host},
    {"a team is being made", {.standing = TeamStanding::begun}, {Server::after_creation}},
    {"the same, later", {.standing = TeamStanding::begun, .form = nonblocking}, {Server::team}},
    {"the same, planned", {.standing = TeamStanding::begun, .form = persistent}, {Server::after_creation}},
    {"the same by the hint", {.standing = TeamStanding::begun, .on = false}, {Server::after_creation}},
    {"grown up", {}, {Server::make_team}},
    {"grown up, later", {.form = nonblocking}, {Server::begin_team}},
    {"grown up, later, on nodes", {.reach = MessageReach::not_all, .form = nonblocking}, by_host},
    {"grown up, planned", {.form = persistent}, {Server::make_team}},
    {"deferred", {.deferred = 1}, while_deferred},
    {"deferred, later", {.deferred = 1, .form = nonblocking}, while_deferred},
    {"deferred, planned", {.deferred = 8, .form = persistent}, {Server::make_team}},
    {"deferred, a window", {.deferred = 8, .form = window}, {Server::make_team}},
    {"deferred by the hint", {.on = false, .deferred = 8}, off},
    {"deferred without messages", {.reach = MessageReach::none, .deferred = 8}, while_deferred},
    {"deferred without messages, later", {.reach = MessageReach::none, .deferred = 8, .form = nonblocking}, off},
    {"any order", {.deferred = 8, .collective = allreduce}, while_deferred},
    {"two operands", {.deferred = 8, .size = 2, .collective = allreduce, .shows = true}, while_deferred},
    {"in order",
     {.deferred = 8, .collective = allreduce, .shows = true, .bytes = 8},
     {Server::host_gathers, Reason::deferred}},
    {"in order, to a root",
     {.deferred = 8, .collective = reduce, .shows = true, .bytes = 10922},
     {Server::host_gathers, Reason::deferred}},
    {"in order, long", {.deferred = 8, .collective = reduce, .shows = true, .bytes = 10923}, {Server::make_team}},
    {"in order, by an operator of the program's",
     {.deferred = 8, .collective = allreduce, .shows = true},
     {Server::make_team}},
    {"in order, a scan", {.deferred = 8, .collective = scan, .shows = true, .bytes = 8}, {Server::make_team}},
    {"in order, later",
     {.deferred = 8, .collective = allreduce, .form = nonblocking, .shows = true, .bytes = 8},
     {Server::begin_team}},
    {"Intel MPI", {.deferred = 8, .host = HostKind::intel_mpi}, while_deferred},
    {"Intel MPI's allgather",
     {.deferred = 8, .host = HostKind::intel_mpi, .collective = allgather},
     {Server::make_team}},
    {"Open MPI", {.deferred = 8, .host = HostKind::open_mpi, .collective = allgather}, while_deferred},
    {"Open MPI, later", {.deferred = 8, .host = HostKind::open_mpi, .form = nonblocking}, {Server::begin_team}},
};

TEST(Route, IsThatOfItsRow) {
  for (const Row& row : rows) {
    const Route by = routed(row.given);
    EXPECT_EQ(int(by.who), int(row.expected.who)) << row.what;
    EXPECT_EQ(int(by.reason), int(row.expected.reason)) << row.what;
  }
}

TEST(Route, HasARowForEveryAnswer) {
  std::set<std::pair<Server, Reason>> answers;
  for (const Row& row : rows) answers.emplace(row.expected.who, row.expected.reason);
  for (int who = 0; who <= int(Server::begin_team); ++who) {
    const bool found =
        std::any_of(answers.begin(), answers.end(), [&](const auto& each) { return int(each.first) == who; });
    EXPECT_TRUE(found) << who;
  }
  EXPECT_EQ(answers.size(), 11u);  // of the host for four reasons
}

// Calls f with every combination of facts.
template <class F>
void for_all(F f) {
  for (int standing = 0; standing <= int(TeamStanding::none); ++standing)
    for (int reach = 0; reach < int(MessageReach::unasked); ++reach)
      for (const bool on : {false, true})
        for (const bool several_nodes : {false, true})
          for (const std::uint32_t deferred : {0u, 1u, 8u})
            for (const HostKind host : {HostKind::other, HostKind::intel_mpi, HostKind::open_mpi})
              for (std::size_t collective = 0; collective < collectives::operation_count; ++collective)
                for (const Form form : {blocking, nonblocking, persistent, window})
                  for (const bool shows : {false, true})
                    for (const std::uint64_t bytes : {std::uint64_t{8}, OrderFacts::any})
                      f(Given{TeamStanding(standing), MessageReach(reach), on, several_nodes, deferred, 3, host,
                              Collective(collective), form, shows, bytes});
}

TEST(Route, NeverWaitsInACallThatMustNot) {
  for_all([](const Given& given) {
    if (given.form != nonblocking) return;
    const Server who = routed(given).who;
    ASSERT_TRUE(who != Server::make_team && who != Server::after_creation && who != Server::host_gathers);
  });
}

TEST(Route, EndsWhateverBecomesOfATeam) {
  for_all([](Given given) {
    const Server who = routed(given).who;
    if (who != Server::make_team && who != Server::begin_team && who != Server::after_creation) return;
    for (const TeamStanding then : {TeamStanding::team, TeamStanding::nodes, TeamStanding::none}) {
      given.standing = then;
      ASSERT_LE(routed(given).who, Server::host_gathers);
    }
  });
}

TEST(Route, OfADeferredOneNeedsNoTeamOfItsRanksAndCountsOnlyItsCalls) {
  for_all([](const Given& given) {
    const Route by = routed(given);
    if (by.reason != Reason::deferred) return;
    ASSERT_TRUE(by.who == Server::host || by.who == Server::host_gathers);
    ASSERT_TRUE(given.deferred && given.standing == TeamStanding::untried && given.on);
    ASSERT_TRUE(given.form == blocking || given.form == nonblocking);
  });
}

}  // namespace
}  // namespace nearfield::mpi
