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
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_out_of_memory;
using testing::use_up;

void use_up_buffers(Process& process) {
  while (process.copy_buffers().take(1)) continue;
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
    EXPECT_EQ(0, run_members(size, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                auto created = creation::create_team(process, rank, size, bootstrap);
                if (!created) return false;
                Team& team = **created;
                choosing::Chooser chooser;
                chooser.serve(team);
                if (rank == size - 1) run_out_of_memory(process), use_up(process);
                std::vector<std::byte> send(std::size_t(size) * 50000), recv(std::size_t(size) * 50000);
                for (const Collective collective : {Collective::alltoall, Collective::bcast, Collective::alltoall}) {
                  const Call call{collective, 50000, send.data(), recv.data()};
                  if (!throws<team::Refused>([&] { chooser.perform(team.context(), call); })) return false;
                }
                // What needs none works as before.
                char data[64] = {};
                data[0] = rank == 0 ? 'x' : ' ';
                Call small{Collective::bcast, sizeof data, data, data};
                chooser.perform(team.context(), small);
                return data[0] == 'x';
              }));
  }
}

TEST(Shortage, WhoBreaksOffIsNotWaitedFor) {
  for (const int size : {2, 4}) {
    EXPECT_EQ(0, run_members(size, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                auto created = creation::create_team(process, rank, size, bootstrap);
                if (!created) return false;
                Team& team = **created;
                choosing::Chooser chooser;
                chooser.serve(team);
                const Call barrier{Collective::barrier};
                chooser.perform(team.context(), barrier);
                const auto start = std::chrono::steady_clock::now();
                if (rank == 1) {
                  if (!throws<team::Broken>([&] { team.break_off("no memory", "in a test"); })) return false;
                } else if (!throws<team::Broken>([&] { chooser.perform(team.context(), barrier); })) {
                  return false;
                }
                return team.broken_off() && std::chrono::steady_clock::now() - start < std::chrono::seconds(5);
              }));
  }
}

// One of rank 0 to rank 1.
void start_message(Messenger& messenger, Request& r, int rank, int tag, std::byte* data, std::size_t bytes) {
  r.is_send = rank == 0;
  r.member = 1 - rank;
  r.envelope = {1, 0, tag};
  r.data = {data, bytes, {}};
  messenger.start(r);
}

// Messages of rank 0 to rank 1, several at once.
class ExchangeRow {
 public:
  static constexpr std::size_t bytes = 300'000, several = 5;
  ExchangeRow(Messenger& messenger, int rank) : messenger_(messenger), rank_(rank), data_(several * bytes) {}

  void start(std::size_t count, int round) {
    count_ = count, round_ = round;
    for (std::size_t i = 0; i < count; ++i) {
      Request& r = requests_[i];
      if (rank_ == 0) std::memset(at(i), value(i), bytes);
      start_message(messenger_, r, rank_, int(i), at(i), bytes);
    }
  }
  bool wait() {
    bool good = true;
    for (std::size_t i = 0; i < count_; ++i) {
      messenger_.wait(requests_[i]);
      good &= requests_[i].error == messages::ErrorKind::none;
      for (std::size_t k = 0; k < bytes; k += 97) good &= at(i)[k] == std::byte(value(i));
    }
    return good;
  }

 private:
  std::byte* at(std::size_t i) { return data_.data() + i * bytes; }
  int value(std::size_t i) const { return (round_ * 10 + int(i) + 1) & 255; }

  Messenger& messenger_;
  int rank_;
  std::vector<std::byte> data_;
  Request requests_[several];
  std::size_t count_ = 0;
  int round_ = 0;
};

// What the sender has of its copy buffers from the second round on.
enum class Left { none, one, pieces };

void leave(Process& process, Left left) {
  memory::CopyBuffers& buffers = process.copy_buffers();
  constexpr std::size_t whole = 64 << 10, piece = 2 << 10;
  std::size_t one = left == Left::one ? buffers.take(whole) : 0;
  std::vector<std::size_t> taken;
  if (left == Left::pieces)
    while (const std::size_t offset = buffers.take(piece)) taken.push_back(offset);
  use_up_buffers(process);
  if (one) buffers.put_back(one, whole);
  for (std::size_t i = 0; i < taken.size(); i += 2) buffers.put_back(taken[i], piece);
}

// Large messages whose sender has next to no copy buffers go through its spare ones, several at once as well. The first
// message makes transfers.
TEST(Shortage, MatchedMessagesStillArrive) {
  Settings settings;
  settings.protocol = Protocol::copy_buffers;
  for (const Left left : {Left::none, Left::one, Left::pieces}) {
    auto body = [left](Process& process, PageBootstrap& bootstrap, int rank, int size) {
      auto created = creation::create_team(process, rank, size, bootstrap);
      if (!created) return false;
      auto messenger = Messenger::create(**created, bootstrap, false);
      if (!messenger) return false;
      ExchangeRow exchange(**messenger, rank);
      exchange.start(1, 0);
      if (!exchange.wait()) return false;
      if (rank == 0) run_out_of_memory(process), use_up(process), leave(process, left);
      for (int round = 1; round < 20; ++round) {
        exchange.start(ExchangeRow::several, round);
        if (!exchange.wait()) return false;
      }
      messenger->release();
      return true;
    };
    EXPECT_EQ(0, run_members(2, 60, body, settings)) << int(left);
  }
}

// Buffers go to others after a message has begun: it holds one, nobody has received it yet.
TEST(Shortage, AMessageThatHasBegunStillArrives) {
  Settings settings;
  settings.protocol = Protocol::copy_buffers;
  for (const Left left : {Left::none, Left::one, Left::pieces}) {
    auto body = [left](Process& process, PageBootstrap& bootstrap, int rank, int size) {
      auto created = creation::create_team(process, rank, size, bootstrap);
      if (!created) return false;
      auto messenger = Messenger::create(**created, bootstrap, false);
      if (!messenger) return false;
      ExchangeRow exchange(**messenger, rank);
      for (int round = 0; round < 5; ++round) {
        if (rank == 0) exchange.start(ExchangeRow::several, round);
        if (rank == 0 && round == 0) leave(process, left);
        bootstrap.meet();
        if (rank == 1) exchange.start(ExchangeRow::several, round);
        if (!exchange.wait()) return false;
      }
      messenger->release();
      return true;
    };
    EXPECT_EQ(0, run_members(2, 60, body, settings)) << int(left);
  }
}

TEST(Shortage, ASendWithoutAnyMemoryStillArrives) {
  EXPECT_EQ(0, run_members(2, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto created = creation::create_team(process, rank, size, bootstrap);
              if (!created) return false;
              auto messenger = Messenger::create(**created, bootstrap, false);
              if (!messenger) return false;
              std::vector<std::byte> data(100'000, std::byte(rank == 0 ? 7 : 0));
              if (rank == 0) run_out_of_memory(process), use_up(process), use_up_buffers(process);
              Request r;
              start_message(**messenger, r, rank, 0, data.data(), data.size());
              (*messenger)->wait(r);
              if (r.error != messages::ErrorKind::none || data.front() != std::byte{7} || data.back() != std::byte{7})
                return false;
              bootstrap.meet();
              messenger->release();
              return true;
            }));
}

// More than the transfers that there are from the beginning: the others wait for these.
TEST(Shortage, ManySendsWithoutAnyMemoryStillArrive) {
  EXPECT_EQ(0, run_members(2, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto created = creation::create_team(process, rank, size, bootstrap);
              if (!created) return false;
              auto messenger = Messenger::create(**created, bootstrap, false);
              if (!messenger) return false;
              constexpr std::size_t count = 3 * messages::transfers_at_once;
              std::vector<Request> requests(count);
              std::vector<std::size_t> words(count);
              if (rank == 0) run_out_of_memory(process), use_up(process), use_up_buffers(process);
              for (std::size_t i = 0; i < count; ++i) {
                Request& r = requests[i];
                words[i] = rank == 0 ? i + 1 : 0;
                r.mode = messages::Mode::synchronous;
                start_message(**messenger, r, rank, 0, reinterpret_cast<std::byte*>(&words[i]), sizeof words[i]);
              }
              bool good = true;
              for (std::size_t i = 0; i < count; ++i) {
                (*messenger)->wait(requests[i]);
                good &= requests[i].error == messages::ErrorKind::none && words[i] == i + 1;
              }
              bootstrap.meet();
              messenger->release();
              return good;
            }));
}

}  // namespace
}  // namespace nearfield
