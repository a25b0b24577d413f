// A thread that stands in for a process which blocks elsewhere.
#include "engine/messages/stand_in.hpp"

#include <gtest/gtest.h>

#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

int run(int size, const std::function<bool(Messenger&, PageBootstrap&, int rank)>& body) {
  return run_members(size, 60, [&](Process& process, PageBootstrap& bootstrap, int rank, int n) {
    auto team = creation::create_team(process, rank, n, bootstrap);
    if (!team) return false;
    auto messenger = Messenger::create(**team, bootstrap, false);
    const bool good = messenger && body(**messenger, bootstrap, rank);
    if (messenger) messenger->release();
    team->release();
    testing::node_stays = true;
    return good;
  });
}

bool transfer(Messenger& messenger, bool sends, int i, std::uint64_t bytes) {
  std::vector<std::byte> memory(bytes, std::byte(sends ? i : -1));
  Request r;
  r.is_send = sends;
  r.member = sends ? 0 : 1;
  r.envelope = {5, 1, i % 7};
  r.data = {memory.data(), bytes, {}};
  messenger.start(r);
  messenger.wait(r);
  return sends || (r.received == bytes && memory.front() == std::byte(i) && memory.back() == std::byte(i));
}

// The sends of process 1 find no room long before the last one, unless somebody takes them in. Process 0 blocks until
// they are through, where it progresses nothing. Many rounds: the stand-in is found asleep and awake.
TEST(StandIn, TakesInWhatPeersSendWhileTheRankBlocks) {
  constexpr int rounds = 20, messages = 3000;
  EXPECT_EQ(run(2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  auto& stand_in = *new StandIn(messenger);
                  bool good = true;
                  for (int round = 0; round < rounds; ++round) {
                    if (rank == 0) {
                      good &= stand_in.lend();
                      bootstrap.meet();
                      stand_in.take_back();
                    }
                    for (int i = 0; i < messages; ++i) good &= transfer(messenger, rank == 1, i, 1000);
                    if (rank == 1) bootstrap.meet();
                    if (round % 4 == 0) usleep(2000);
                  }
                  bootstrap.meet();
                  stand_in.dismiss();
                  return good;
                }),
            0);
}

// A receive that was posted before needs the rank when its message comes: with something under way nobody rings.
TEST(StandIn, GoesOnWithWhatIsUnderWay) {
  constexpr std::uint64_t bytes = 8 << 20;
  EXPECT_EQ(run(2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  auto& stand_in = *new StandIn(messenger);
                  bool good = true;
                  for (int round = 0; round < 5; ++round) {
                    if (rank == 1) {
                      good &= transfer(messenger, true, round, bytes);
                      bootstrap.meet();
                      continue;
                    }
                    std::vector<std::byte> memory(bytes);
                    Request r;
                    r.member = 1;
                    r.envelope = {5, 1, round % 7};
                    r.data = {memory.data(), bytes, {}};
                    messenger.start(r);
                    good &= stand_in.lend();
                    bootstrap.meet();  // the send is through
                    stand_in.take_back();
                    messenger.wait(r);
                    good &= memory.front() == std::byte(round) && memory.back() == std::byte(round);
                  }
                  bootstrap.meet();
                  stand_in.dismiss();
                  return good;
                }),
            0);
}

TEST(StandIn, IsNotNeededByOneAloneNorOnceItIsDismissed) {
  for (const int size : {1, 2})
    EXPECT_EQ(run(size,
                  [&](Messenger& messenger, PageBootstrap& bootstrap, int) {
                    auto& stand_in = *new StandIn(messenger);
                    const bool lent = stand_in.lend();
                    if (lent) stand_in.take_back();
                    stand_in.dismiss();
                    const bool good = lent == (size == 2) && !stand_in.lend();
                    bootstrap.meet();
                    return good;
                  }),
              0);
}

}  // namespace
}  // namespace nearfield::messages
