// The thread that goes on where the process blocks elsewhere, or computes.
#include "engine/messages/progress_thread.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "engine/choosing/queued_call.hpp"
#include "engine/machine/spare_cpus.hpp"
#include "engine/messages/edges.hpp"
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

// ---------------------------------------------------------------- in the host

ProgressThread& thread_of(Messenger& messenger) {
  return *new ProgressThread(messenger.process(), &messenger, Serves::in_host);
}

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
// they are through, where it progresses nothing. Many rounds: the thread is found asleep and awake.
TEST(InHost, TakesInWhatPeersSendWhileTheRankBlocks) {
  constexpr int rounds = 20, messages = 3000;
  EXPECT_EQ(run(2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  auto& thread = thread_of(messenger);
                  bool good = true;
                  for (int round = 0; round < rounds; ++round) {
                    if (rank == 0) {
                      good &= thread.enter_host();
                      bootstrap.meet();
                      thread.leave_host();
                    }
                    for (int i = 0; i < messages; ++i) good &= transfer(messenger, rank == 1, i, 1000);
                    if (rank == 1) bootstrap.meet();
                    if (round % 4 == 0) usleep(2000);
                  }
                  bootstrap.meet();
                  thread.stop();
                  return good;
                }),
            0);
}

// A receive that was posted before needs the rank when its message comes: with something under way nobody rings.
TEST(InHost, GoesOnWithWhatIsUnderWay) {
  constexpr std::uint64_t bytes = 8 << 20;
  EXPECT_EQ(run(2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  auto& thread = thread_of(messenger);
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
                    good &= thread.enter_host();
                    bootstrap.meet();  // the send is through
                    thread.leave_host();
                    messenger.wait(r);
                    good &= memory.front() == std::byte(round) && memory.back() == std::byte(round);
                  }
                  bootstrap.meet();
                  thread.stop();
                  return good;
                }),
            0);
}

// As the creation of a team does.
struct Talker final : fibers::Lane {
  explicit Talker(Messenger& messenger, int rank) : messenger(messenger), rank(rank) {}
  static constexpr int rounds = 20000, each = 20;
  void run() override {
    constexpr int members[] = {0, 1};
    for (int round = 0; round < rounds; ++round) {
      Edges edges({messenger, members, rank, 7});
      int ours[each], theirs[each];
      for (int i = 0; i < each; ++i) {
        ours[i] = round + i;
        edges.sends.push_back({1 - rank, i, {reinterpret_cast<std::byte*>(&ours[i]), 4, {}}});
        edges.receives.push_back({1 - rank, i, {reinterpret_cast<std::byte*>(&theirs[i]), 4, {}}});
      }
      edges.prepare(true);
      begun = round + 1;
      edges.start();
      while (!edges.complete()) fiber->suspend();
      good &= std::ranges::equal(ours, theirs);
    }
  }
  Messenger& messenger;
  const int rank;
  bool good = true;
  std::atomic<int> begun{0};
};

// The thread may have begun to run a body when the rank comes back, and both use the messenger.
TEST(InHost, RunsBodiesThatSendMessagesWhileTheRankComesBack) {
  EXPECT_EQ(run(2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  auto& thread = thread_of(messenger);
                  auto& runner = messenger.process().runner();
                  Talker talker(messenger, rank);
                  {
                    const std::lock_guard lock(runner.mutex());
                    runner.start(talker);
                  }
                  bool good = true;
                  for (int i = 0; i < Talker::rounds; ++i) {
                    good &= thread.enter_host();
                    for (const int before = talker.begun; talker.begun == before && before < Talker::rounds;) yield();
                    thread.leave_host();
                    good &= transfer(messenger, rank == 1, i, 100);
                  }
                  good &= thread.enter_host();
                  while (runner.busy()) yield();
                  bootstrap.meet();
                  thread.leave_host();
                  thread.stop();
                  return good && talker.good;
                }),
            0);
}

// A second thread of the program waits meanwhile, sleeps, and then computes: peers still ring the progress thread.
// Without that each round takes the second that it sleeps.
TEST(InHost, IsRungAfterAnotherThreadHasSlept) {
  constexpr int rounds = 12, messages = 3000;
  EXPECT_EQ(run(2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  auto& thread = thread_of(messenger);
                  messenger.set_threaded();
                  bool good = true;
                  const std::uint64_t start = waiting::nanoseconds();
                  for (int round = 0; round < rounds; ++round) {
                    if (rank == 0) {
                      std::thread in_host([&] {
                        good &= thread.enter_host();
                        bootstrap.meet();
                        bootstrap.meet();
                        thread.leave_host();
                      });
                      usleep(1000);
                      const std::uint64_t end = waiting::nanoseconds() + 5'000'000;
                      messenger.wait_until([&] { return waiting::nanoseconds() > end; }, [](int) { return false; },
                                           nullptr, "waiting in a test");
                      in_host.join();
                    } else {
                      bootstrap.meet();
                      usleep(20'000);
                    }
                    for (int i = 0; i < messages; ++i) good &= transfer(messenger, rank == 1, i, 1000);
                    if (rank == 1) bootstrap.meet();
                  }
                  bootstrap.meet();
                  thread.stop();
                  return good && waiting::nanoseconds() - start < rounds * std::uint64_t{500'000'000};
                }),
            0);
}

TEST(InHost, IsNotNeededByOneAloneNorOnceItHasStopped) {
  for (const int size : {1, 2})
    EXPECT_EQ(run(size,
                  [&](Messenger& messenger, PageBootstrap& bootstrap, int) {
                    auto& thread = thread_of(messenger);
                    const bool entered = thread.enter_host();
                    if (entered) thread.leave_host();
                    thread.stop();
                    const bool good = entered == (size == 2) && !thread.enter_host();
                    bootstrap.meet();
                    return good;
                  }),
              0);
}

// ---------------------------------------------------------------- always

struct Computing {
  Team& team;
  Messenger& messenger;
  PageBootstrap& bootstrap;
  int rank, size;
};

int run_always(int size, const std::function<bool(Computing&)>& body) {
  return run_members(size, 100, [&](Process& process, PageBootstrap& bootstrap, int rank, int n) {
    auto team = creation::create_team(process, rank, n, bootstrap);
    if (!team) return false;
    auto messenger = Messenger::create(**team, bootstrap, true);
    if (!messenger) return false;
    auto& thread = *new ProgressThread(process, messenger->get(), Serves::always, {getpid()});
    if (!thread.start()) return false;
    Computing computing{**team, **messenger, bootstrap, rank, n};
    const bool good = body(computing);
    thread.stop();
    messenger->release();
    team->release();
    return good;
  });
}

struct Message {
  Message(const Computing& h, bool sends, int peer, int tag, std::size_t bytes)
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
  Sum(const Computing& h, FurtherChoosers& choosers, std::size_t count)
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

void wait_for(const Computing& h, FunctionRef<bool()> done) {
  h.messenger.wait_until(done, [](int) { return false; }, nullptr, "waiting in a test");
}

// Process 0 begins it and goes where it progresses nothing; the others do not come there before they are through.
TEST(Always, GoesOnWithMessagesWhileTheRankComputes) {
  constexpr std::size_t bytes = 8 << 20;
  EXPECT_EQ(run_always(2,
                       [](Computing& h) {
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

TEST(Always, GoesOnWithCollectivesWhileTheRankComputes) {
  for (const int size : {2, 3, 5})
    EXPECT_EQ(run_always(size,
                         [](Computing& h) {
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

// What has no room for its record until the receiver takes it in: nothing is under way there, and its thread sleeps.
TEST(Always, IsWokenByAPeerThatHasNoRoom) {
  EXPECT_EQ(run_always(2,
                       [](Computing& h) {
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
TEST(Always, AndTheRankDoNotGetInEachOthersWay) {
  for (const int size : {2, 4})
    EXPECT_EQ(
        run_always(size,
                   [](Computing& h) {
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
                         messages.push_back(
                             std::make_unique<Message>(h, false, (h.rank + h.size - by) % h.size, tag, bytes));
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

TEST(Always, EndsWhereverItSleeps) {
  EXPECT_EQ(run_always(2,
                       [](Computing& h) {
                         h.bootstrap.meet();
                         for (int i = 0; i < 20; ++i) {
                           auto& another = *new ProgressThread(h.team.process(), &h.messenger, Serves::always);
                           if (!another.start()) return false;
                           usleep(unsigned(i * 100));
                           another.stop();
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
