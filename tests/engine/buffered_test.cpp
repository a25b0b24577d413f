// Buffered sends between members: what counts against whose memory, and that everything arrives, in order.
#include "engine/messages/buffered.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <random>

#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_processes;
using Sent = Buffered::Sent;

constexpr std::uint64_t overhead = 100, mebibyte = 1 << 20;
constexpr Buffered::Key one = 11, other = 12;

int run(int size, const std::function<bool(Messenger&, PageBootstrap&, int rank)>& body,
        decltype(run_members)& run_them = run_members) {
  return run_them(size, 60,
                  [&](Process& process, PageBootstrap& bootstrap, int rank, int n) {
                    auto team = creation::create_team(process, rank, n, bootstrap);
                    if (!team) return false;
                    auto messenger = Messenger::create(**team, bootstrap, false);
                    return messenger && body(**messenger, bootstrap, rank);
                  },
                  {});
}

void receive(Messenger& messenger, int from, int tag, std::vector<std::byte>& into) {
  Request r;
  r.member = from;
  r.envelope = {5, from, tag};
  r.data = {into.data(), into.size(), {}};
  messenger.start(r);
  messenger.wait(r);
}

bool all(const std::vector<std::byte>& bytes, int value) {
  return std::ranges::all_of(bytes, [&](std::byte b) { return b == std::byte(value); });
}

// The receiver of `body`'s messages, tags 0 .. n - 1 with contents 1 .. n, takes none before `body` lets it.
int sender_and_receiver(int n,
                        const std::function<bool(Messenger&, Buffered&, const std::function<void()>& go)>& body) {
  return run(2, [&](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
    bool good = true;
    if (rank == 0) {
      Buffered buffered;
      good = body(messenger, buffered, [&] { bootstrap.meet(); });
      buffered.detach(Buffered::process);
      while (buffered.any_outgoing()) messenger.poll();
    } else {
      bootstrap.meet();
      for (int tag = 0; tag < n; ++tag) {
        std::vector<std::byte> memory(mebibyte);
        receive(messenger, 0, tag, memory);
        good &= all(memory, tag + 1);
      }
    }
    bootstrap.meet();
    return good;
  });
}

Sent send(Messenger& messenger, Buffered& buffered, Buffered::Key key, int tag) {
  std::vector<std::byte> memory(mebibyte, std::byte(tag + 1));
  const Sent sent = buffered.send(messenger, key, 1, {5, 0, tag}, {memory.data(), memory.size(), {}}, overhead);
  std::ranges::fill(memory, std::byte{0});  // it is ours again
  return sent;
}

TEST(Buffered, WhatIsOutstandingCountsAgainstWhatIsAttached) {
  EXPECT_EQ(sender_and_receiver(2,
                                [](Messenger& m, Buffered& b, const std::function<void()>& go) {
                                  bool good = send(m, b, one, 0) == Sent::no_room;  // nothing is attached
                                  b.attach(Buffered::process, {nullptr, 2 * (mebibyte + overhead), false});
                                  good &= send(m, b, one, 0) == Sent::yes;
                                  good &= b.outstanding(Buffered::process) == mebibyte + overhead;
                                  good &= send(m, b, one, 1) == Sent::yes;
                                  good &= send(m, b, one, 2) == Sent::no_room;
                                  go();
                                  b.flush(m, Buffered::process);
                                  return good && b.outstanding(Buffered::process) == 0 && !b.any_outgoing();
                                }),
            0);
}

TEST(Buffered, EachKeyHasItsOwnUnlessNothingIsAttachedToIt) {
  EXPECT_EQ(sender_and_receiver(3,
                                [](Messenger& m, Buffered& b, const std::function<void()>& go) {
                                  int room = 0;
                                  b.attach(Buffered::process, {nullptr, mebibyte + overhead, false});
                                  b.attach(one, {&room, mebibyte + overhead, false});
                                  bool good = b.attached(one)->address == &room && !b.attached(other);
                                  good &= send(m, b, other, 0) == Sent::yes && send(m, b, one, 1) == Sent::yes;
                                  good &= send(m, b, other, 2) == Sent::no_room && send(m, b, one, 2) == Sent::no_room;
                                  good &= b.outstanding(one) && b.outstanding(Buffered::process);
                                  good &= !b.outstanding(other);
                                  b.attach(other, {nullptr, 0, true});
                                  good &= send(m, b, other, 2) == Sent::yes && b.outstanding(other);
                                  go();
                                  for (const auto key : {Buffered::process, one, other}) b.flush(m, key);
                                  return good && !b.any_outgoing();
                                }),
            0);
}

TEST(Buffered, WhatIsBehindAKeyIsUsedBeforeTheProcesss) {
  EXPECT_EQ(sender_and_receiver(3,
                                [](Messenger& m, Buffered& b, const std::function<void()>& go) {
                                  b.put_behind(one, other);
                                  bool good = b.behind(one) == other && b.behind(other) == Buffered::process;
                                  b.attach(Buffered::process, {nullptr, mebibyte + overhead, false});
                                  good &= send(m, b, one, 0) == Sent::yes && b.outstanding(Buffered::process);
                                  b.attach(other, {nullptr, mebibyte + overhead, false});
                                  good &= send(m, b, one, 1) == Sent::yes && b.outstanding(other);
                                  good &= send(m, b, one, 2) == Sent::no_room && !b.outstanding(one);
                                  b.attach(one, {nullptr, mebibyte + overhead, false});
                                  good &= send(m, b, one, 2) == Sent::yes && b.outstanding(one);
                                  b.forget(one);
                                  good &= b.behind(one) == Buffered::process;
                                  go();
                                  for (const auto key : {Buffered::process, one, other}) b.flush(m, key);
                                  return good;
                                }),
            0);
}

TEST(Buffered, WhoHasGoneCountsForNobody) {
  EXPECT_EQ(sender_and_receiver(2,
                                [](Messenger& m, Buffered& b, const std::function<void()>& go) {
                                  b.attach(one, {nullptr, mebibyte + overhead, false});
                                  bool good = send(m, b, one, 0) == Sent::yes;
                                  b.forget(one);
                                  good &= b.outstanding(one) == 0 && b.any_outgoing() && !b.attached(one);
                                  b.attach(one, {nullptr, mebibyte + overhead, false});  // the next with that key
                                  good &= send(m, b, one, 1) == Sent::yes;
                                  go();
                                  b.flush(m, one);
                                  return good && b.outstanding(one) == 0;
                                }),
            0);
}

TEST(Buffered, LaterMessagesAreNotWaitedFor) {
  EXPECT_EQ(sender_and_receiver(2,
                                [](Messenger& m, Buffered& b, const std::function<void()>& go) {
                                  b.attach(one, {nullptr, 0, true});
                                  const auto none = b.last();
                                  bool good = send(m, b, one, 0) == Sent::yes;
                                  const auto first = b.last();
                                  good &= !b.outstanding(one, none) && b.outstanding(one, first);
                                  good &= !b.outstanding(other, first);
                                  go();
                                  while (b.outstanding(one, first)) m.poll();
                                  return good && send(m, b, one, 1) == Sent::yes;
                                }),
            0);
}

TEST(Buffered, AReceiverThatDiesEndsTheFlush) {
  EXPECT_EQ(run(
                2,
                [](Messenger& messenger, PageBootstrap& bootstrap, int rank) {
                  Buffered buffered;
                  buffered.attach(one, {nullptr, 0, true});
                  if (rank == 0 && send(messenger, buffered, one, 0) != Sent::yes) return false;
                  bootstrap.meet();
                  if (rank == 1) raise(SIGKILL);
                  try {
                    buffered.flush(messenger, one);
                  } catch (const team::Died&) {
                    std::fflush(nullptr);
                    _exit(0);  // what it has copied is still under way
                  }
                  return false;
                },
                run_processes),
            1);  // the one that died
}

}  // namespace
}  // namespace nearfield::messages
