// One member alone runs out of memory: the others end with it or go on, none waits.
#include <gtest/gtest.h>

#include <chrono>

#include "engine/choosing/choose.hpp"
#include "engine/messages/messenger.hpp"
#include "tests/engine/team.hpp"

namespace nearfield {
namespace {

using collectives::Call;
using collectives::Collective;
using messages::Messenger;
using messages::Request;
using team::Node;
using team::Team;
using testing::PageBootstrap;
using testing::run_out_of_memory;
using testing::run_processes;
using testing::use_up;

void use_up_buffers(Node& node) {
  while (node.copy_buffers().take(1)) continue;
}

template <class Error>
bool throws(auto call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

TEST(Shortage, WithoutCopyBuffersOfOneMemberAllTurnElsewhere) {
  for (const int size : {2, 3, 5}) {
    EXPECT_EQ(0, run_processes(size, 30, [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                auto created = Team::create(node, rank, size, bootstrap);
                if (!created) return false;
                Team& team = **created;
                choosing::Chooser chooser;
                chooser.serve(team);
                if (rank == size - 1) run_out_of_memory(node), use_up(node);
                std::vector<std::byte> send(std::size_t(size) * 50000), recv(std::size_t(size) * 50000);
                for (const Collective collective : {Collective::alltoall, Collective::bcast, Collective::alltoall}) {
                  const Call call{collective, 50000, send.data(), recv.data()};
                  if (!throws<team::Refused>([&] { chooser.perform(team.track(), call); })) return false;
                }
                // What needs none works as before.
                char data[64] = {};
                data[0] = rank == 0 ? 'x' : ' ';
                Call small{Collective::bcast, sizeof data, data, data};
                chooser.perform(team.track(), small);
                return data[0] == 'x';
              }));
  }
}

TEST(Shortage, WhoBreaksOffIsNotWaitedFor) {
  for (const int size : {2, 4}) {
    EXPECT_EQ(0, run_processes(size, 30, [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                auto created = Team::create(node, rank, size, bootstrap);
                if (!created) return false;
                Team& team = **created;
                choosing::Chooser chooser;
                chooser.serve(team);
                const Call barrier{Collective::barrier};
                chooser.perform(team.track(), barrier);
                const auto start = std::chrono::steady_clock::now();
                if (rank == 1) {
                  if (!throws<team::Broken>([&] { team.break_off("no memory", "in a test"); })) return false;
                } else if (!throws<team::Broken>([&] { chooser.perform(team.track(), barrier); })) {
                  return false;
                }
                return team.broken_off() && std::chrono::steady_clock::now() - start < std::chrono::seconds(5);
              }));
  }
}

// A large message whose sender has no memory for copy buffers goes through its spare ones, several at once as well.
TEST(Shortage, MatchedMessagesStillArrive) {
  Settings settings;
  settings.protocol = Protocol::copy_buffers;
  EXPECT_EQ(0, run_processes(
                   2, 60,
                   [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                     auto created = Team::create(node, rank, size, bootstrap);
                     if (!created) return false;
                     auto messenger = Messenger::create(**created, bootstrap, false);
                     if (!messenger) return false;
                     Messenger& m = **messenger;
                     constexpr std::size_t bytes = 300'000, several = 5;
                     std::vector<std::byte> data(several * bytes);
                     // The first message of all makes transfers.
                     auto exchange = [&](std::size_t count, std::size_t length, int round) {
                       Request requests[several];
                       for (std::size_t i = 0; i < count; ++i) {
                         Request& r = requests[i];
                         std::byte* const at = data.data() + i * bytes;
                         if (rank == 0) std::memset(at, round * 10 + int(i) + 1, length);
                         r.is_send = rank == 0;
                         r.member = 1 - rank;
                         r.envelope = {1, 0, int(i)};
                         r.data = {at, length, {}};
                         m.start(r);
                       }
                       bool good = true;
                       for (std::size_t i = 0; i < count; ++i) {
                         m.wait(requests[i]);
                         const std::byte* const at = data.data() + i * bytes;
                         for (std::size_t k = 0; k < length; k += 97)
                           good &= requests[i].trouble == messages::Trouble::none &&
                                   at[k] == std::byte(round * 10 + int(i) + 1);
                       }
                       return good;
                     };
                     // Transfers exist, but all copy buffers are taken away.
                     if (!exchange(1, bytes, 0)) return false;
                     if (rank == 0) run_out_of_memory(node), use_up(node), use_up_buffers(node);
                     for (int round = 1; round < 20; ++round)
                       if (!exchange(several, bytes, round)) return false;
                     messenger->release();
                     return true;
                   },
                   settings));
}

TEST(Shortage, ASendWithoutAnyMemoryStillArrives) {
  EXPECT_EQ(0, run_processes(2, 30, [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
              auto created = Team::create(node, rank, size, bootstrap);
              if (!created) return false;
              auto messenger = Messenger::create(**created, bootstrap, false);
              if (!messenger) return false;
              std::vector<std::byte> data(100'000, std::byte(rank == 0 ? 7 : 0));
              if (rank == 0) run_out_of_memory(node), use_up(node), use_up_buffers(node);
              Request r;
              r.is_send = rank == 0;
              r.member = 1 - rank;
              r.envelope = {1, 0, 0};
              r.data = {data.data(), data.size(), {}};
              (*messenger)->start(r);
              (*messenger)->wait(r);
              if (r.trouble != messages::Trouble::none || data.front() != std::byte{7} || data.back() != std::byte{7})
                return false;
              bootstrap.meet();
              messenger->release();
              return true;
            }));
}

}  // namespace
}  // namespace nearfield
