// A thread that keeps going what has begun while the process does something else.
#include "engine/messages/helper.hpp"

#include <gtest/gtest.h>

#include <random>

#include "engine/choosing/queued_call.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using choosing::FurtherChoosers;
using choosing::QueuedCall;
using collectives::Call;
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

struct Helped {
  Team& team;
  Messenger& messenger;
  Helper& helper;
  PageBootstrap& bootstrap;
  int rank, size;
};

int run(int size, const std::function<bool(Helped&)>& body) {
  return run_members(size, 100, [&](Process& process, PageBootstrap& bootstrap, int rank, int n) {
    auto team = creation::create_team(process, rank, n, bootstrap);
    if (!team) return false;
    auto messenger = Messenger::create(**team, bootstrap, true);
    if (!messenger) return false;
    Helper* const helper = Helper::start(process, messenger->get(), {getpid()});
    if (!helper) return false;
    Helped helped{**team, **messenger, *helper, bootstrap, rank, n};
    const bool good = body(helped);
    helper->stop();
    messenger->release();
    team->release();
    return good;
  });
}

struct Message {
  Message(const Helped& h, bool sends, int peer, int tag, std::size_t bytes)
      : memory(bytes, std::byte(sends ? tag : -1)) {
    request.is_send = sends;
    request.member = peer;
    request.envelope = {5, sends ? h.rank : peer, tag};
    request.data = {memory.data(), bytes, {}};
    h.messenger.start(request);
  }
  bool right() const {
    if (request.is_send || memory.empty()) return true;
    const auto tag = std::byte(request.envelope.tag);
    return request.received == memory.size() && memory.front() == tag && memory.back() == tag;
  }
  std::vector<std::byte> memory;
  Request request;
};

struct Sum {
  Sum(const Helped& h, FurtherChoosers& choosers, std::size_t count)
      : send(count, std::uint64_t(h.rank + 1)), recv(count), size(h.size) {
    Call call{collectives::Collective::allreduce, count * 8, send.data(), recv.data()};
    call.count = count;
    call.type = reducing::Type::u64;
    call.fold = reducing::fold(reducing::Op::sum, reducing::Type::u64);
    operation.emplace(call, choosers);
    choosing::make_choosers(choosers, h.team);
    h.team.contexts().issue(*operation);
  }
  bool right() const {
    const auto sum = std::uint64_t(size) * std::uint64_t(size + 1) / 2;
    return !operation->error() && std::ranges::all_of(recv, [&](std::uint64_t each) { return each == sum; });
  }
  std::vector<std::uint64_t> send, recv;
  int size;
  std::optional<QueuedCall> operation;
};

void wait_for(const Helped& h, FunctionRef<bool()> done) {
  h.messenger.wait_until(done, [](int) { return false; }, nullptr, "waiting in a test");
}

// Process 0 begins it and goes where it progresses nothing; the others do not come there before they are through.
TEST(Helper, GoesOnWithMessagesWhileTheRankComputes) {
  constexpr std::size_t bytes = 8 << 20;
  EXPECT_EQ(run(2,
                [](Helped& h) {
                  bool good = true;
                  for (int round = 0; round < 6; ++round) {
                    const bool sends = (h.rank == 1) == (round % 2 == 0);
                    Message message(h, sends, 1 - h.rank, round, bytes);
                    if (h.rank == 1) h.messenger.wait(message.request);
                    h.bootstrap.meet();
                    h.messenger.wait(message.request);
                    good &= message.right();
                    if (round == 3) usleep(20'000);  // it falls asleep
                  }
                  return good;
                }),
            0);
}

TEST(Helper, GoesOnWithCollectivesWhileTheRankComputes) {
  for (const int size : {2, 3, 5})
    EXPECT_EQ(run(size,
                  [](Helped& h) {
                    FurtherChoosers choosers;
                    bool good = true;
                    for (const std::size_t count : {1, 500, 20'000, 200'000}) {
                      Sum sum(h, choosers, count);
                      if (h.rank != 0) wait_for(h, [&] { return sum.operation->complete(); });
                      h.bootstrap.meet();
                      wait_for(h, [&] { return sum.operation->complete(); });
                      good &= sum.right();
                      if (count == 500) usleep(20'000);
                    }
                    h.bootstrap.meet();
                    return good;
                  }),
              0);
}

// What has no room for its record until the receiver takes it in: nothing is under way there, and its helper sleeps.
TEST(Helper, IsWokenByAPeerThatHasNoRoom) {
  EXPECT_EQ(run(2,
                [](Helped& h) {
                  bool good = true;
                  for (int round = 0; round < 3; ++round) {
                    usleep(20'000);
                    std::vector<std::unique_ptr<Message>> messages;
                    for (int i = 0; h.rank == 1 && i < 3000; ++i) {
                      messages.push_back(std::make_unique<Message>(h, true, 0, i % 100, 1000));
                      h.messenger.wait(messages.back()->request);
                    }
                    h.bootstrap.meet();
                    for (int i = 0; h.rank == 0 && i < 3000; ++i) {
                      Message message(h, false, 1, i % 100, 1000);
                      h.messenger.wait(message.request);
                      good &= message.right();
                    }
                    h.bootstrap.meet();
                  }
                  return good;
                }),
            0);
}

// Everything at a time, with pauses of all lengths: who completes what is left to chance.
TEST(Helper, AndTheRankDoNotGetInEachOthersWay) {
  for (const int size : {2, 4})
    EXPECT_EQ(
        run(size,
            [](Helped& h) {
              FurtherChoosers choosers;
              std::mt19937 all{unsigned(h.size)}, own{unsigned(h.rank)};
              bool good = true;
              for (int round = 0; round < 150 && good; ++round) {
                std::vector<std::unique_ptr<Message>> messages;
                std::vector<std::unique_ptr<Sum>> sums;
                constexpr std::size_t lengths[] = {0, 8, 1000, 5000, 70'000, 1'000'000};
                for (unsigned n = all() % 5; n > 0; --n) {
                  const std::size_t bytes = lengths[all() % 6];
                  const int by = int(1 + all() % unsigned(h.size - 1)), tag = int(all() % 100);
                  messages.push_back(std::make_unique<Message>(h, false, (h.rank + h.size - by) % h.size, tag, bytes));
                  messages.push_back(std::make_unique<Message>(h, true, (h.rank + by) % h.size, tag, bytes));
                }
                for (unsigned n = all() % 3; n > 0; --n)
                  sums.push_back(std::make_unique<Sum>(h, choosers, 1 + lengths[all() % 6] / 8));
                if (own() % 3 == 0) usleep(own() % 700);
                if (own() % 4 == 0) h.team.process().progress().poll();
                for (const auto& message : messages) {
                  h.messenger.wait(message->request);
                  good &= message->right();
                }
                for (const auto& sum : sums) {
                  wait_for(h, [&] { return sum->operation->complete(); });
                  good &= sum->right();
                }
              }
              h.bootstrap.meet();
              return good;
            }),
        0);
}

TEST(Helper, EndsWhereverItSleeps) {
  EXPECT_EQ(run(2,
                [](Helped& h) {
                  h.bootstrap.meet();
                  for (int i = 0; i < 20; ++i) {
                    Helper* const another = Helper::start(h.team.process(), &h.messenger, {});
                    if (!another) return false;
                    usleep(unsigned(i * 100));
                    another->stop();
                  }
                  h.bootstrap.meet();
                  return true;
                }),
            0);
}

// ---------------------------------------------------------------- where it runs

machine::CpuSet cpus(std::initializer_list<int> list) {
  machine::CpuSet set;
  for (const int cpu : list) set.bits.set(std::size_t(cpu));
  return set;
}

std::string spare_cpus(const machine::CpuSet& granted, const machine::CpuSet& own, std::vector<machine::CpuSet> ranks,
                       const machine::CpuSet& near = {}, double quota = 1000) {
  const auto found = machine::find_spare_cpus(granted, own, ranks, near, quota);
  return found.cpus.list() + (found.free ? " free" : "");
}

TEST(SpareCpus, IsWhereNoRankIs) {
  const auto all = cpus({0, 1, 2, 3});
  EXPECT_EQ(spare_cpus(all, cpus({0}), {cpus({0}), cpus({1})}), "2-3 free");
  EXPECT_EQ(spare_cpus(all, cpus({0}), {cpus({0}), cpus({1})}, cpus({0, 1, 2})), "2 free");
  EXPECT_EQ(spare_cpus(all, cpus({0}), {cpus({0}), cpus({1})}, cpus({0, 1})), "2-3 free");
  EXPECT_EQ(spare_cpus(cpus({0}), cpus({0}), {cpus({0}), cpus({1})}),
            "0");  // nothing but its own is known to be granted
}

TEST(SpareCpus, IsAmongTheRanksWhereTheyLeaveRoom) {
  const auto all = cpus({0, 1, 2, 3});
  EXPECT_EQ(spare_cpus(all, all, {all, all}), "0-3 free");
  EXPECT_EQ(spare_cpus(all, all, {all, all, all, all}), "0-3");
  EXPECT_EQ(spare_cpus(all, cpus({0, 1}), {cpus({0, 1}), cpus({2, 3})}), "0-1 free");
  EXPECT_EQ(spare_cpus(all, cpus({0}), {cpus({0}), cpus({1}), cpus({2}), cpus({3})}), "0-3");
}

TEST(SpareCpus, IsNotFreeWithoutTimeLeft) {
  const auto all = cpus({0, 1, 2, 3});
  EXPECT_EQ(spare_cpus(all, all, {all, all}, {}, 2), "0-3");
  EXPECT_EQ(spare_cpus(all, cpus({0}), {cpus({0})}, {}, 1), "1-3");
}

}  // namespace
}  // namespace nearfield::messages
