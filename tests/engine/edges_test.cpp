// Messages between all pairs of members: lengths that only the two of a pair know, layouts, in place, delays.
#include "engine/messages/edges.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

constexpr std::uint64_t context = 77;

std::byte content(int round, int from, int to, std::uint64_t i) {
  return std::byte(1 + (unsigned(round) * 7 + unsigned(from) * 31 + unsigned(to) * 57 + i * 3 + i / 251) % 255);
}

// What is in a round, the same on all processes.
struct Round {
  int number;
  bool in_place;
  bool is_short;  // all lengths: then messages leave at once
  std::uint64_t bytes(int from, int to) const {
    if (in_place && from > to) std::swap(from, to);  // a part is replaced by one as long
    std::mt19937 random(unsigned(number * 10000 + from * 100 + to));
    random.discard(2);
    switch (random() % 4) {
      case 0: return 0;
      case 1: return random() % 64;
      case 2: return random() % 4097;
      default: return is_short ? random() % 3000 : random() % 100000;
    }
  }
};

// A buffer of so many bytes of data, dense or with holes.
class Buffer {
 public:
  Buffer(std::uint64_t bytes, bool holes) : memory_(4 * bytes + 64, std::byte{0}) {
    data_ = {memory_.data(), bytes, {}};
    if (!holes) return;
    builder_->add(2, 3, 2, 5);  // xxx__xxx, from the third byte of twelve on
    data_.view = builder_->view(12);
  }
  Buffer(Buffer&&) = default;
  const layout::Data& data() const { return data_; }
  void fill(int round, int from, int to) {
    std::vector<std::byte> packed(data_.bytes);
    for (std::uint64_t i = 0; i < data_.bytes; ++i) packed[i] = content(round, from, to, i);
    if (data_.bytes) layout::scatter(data_, 0, packed.data(), data_.bytes);
  }
  bool holds(int round, int from, int to, std::uint64_t bytes) const {
    std::vector<std::byte> packed(data_.bytes);
    if (data_.bytes) layout::gather(packed.data(), data_, 0, data_.bytes);
    for (std::uint64_t i = 0; i < data_.bytes; ++i)
      if (packed[i] != (i < bytes ? content(round, from, to, i) : std::byte{0})) return false;
    return true;
  }

 private:
  std::unique_ptr<layout::Builder> builder_ = std::make_unique<layout::Builder>();  // views end with its move
  std::vector<std::byte> memory_;
  layout::Data data_;
};

bool make(Process& process, PageBootstrap& bootstrap, int rank, int size,
          const std::function<bool(const Partners& partners)>& body) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  auto messenger = Messenger::create(**team, bootstrap, false);
  if (!messenger) return false;
  std::vector<int> members(std::size_t(size), 0);
  for (int r = 0; r < size; ++r) members[std::size_t(r)] = r;
  const bool good = body({**messenger, members, rank, context});
  bootstrap.meet();
  return good;
}

// An edge to and from each member, in rotated order.
struct AllPairs : Edges {
  explicit AllPairs(const Partners& partners) : Edges(partners), me(partners.me), p(partners.count()) {
    for (int i = 0; i < p; ++i) {
      sends.push_back({(me + i) % p, 0, {}});
      receives.push_back({(me - i + p) % p, 0, {}});
    }
  }
  layout::Data& to(int partner) { return sends[std::size_t((partner - me + p) % p)].data; }
  layout::Data& from(int partner) { return receives[std::size_t((me - partner + p) % p)].data; }
  int me, p;
};

bool one_round(const Partners& partners, const Round& round, std::mt19937& own) {
  const int p = partners.count(), me = partners.me;
  std::vector<Buffer> from, to;
  AllPairs exchange(partners);
  for (int r = 0; r < p; ++r) {
    const std::uint64_t room = round.in_place ? 0 : own() % 3 * 10;  // a message may be shorter than its part
    const std::uint64_t bytes = round.bytes(r, me);
    from.emplace_back(bytes ? bytes + room : 0, own() % 3 == 0);
    to.emplace_back(round.bytes(me, r), own() % 3 == 0);
    (round.in_place ? from : to).back().fill(round.number, me, r);
    exchange.from(r) = from.back().data();
    if (!round.in_place) exchange.to(r) = to.back().data();
  }
  if (round.in_place) {
    exchange.sends.clear();
    exchange.copy_aside();
  }
  exchange.prepare();
  if (own() % 4 == 0) usleep(own() % 500);
  const ErrorKind error = exchange.run();
  bool good = error == ErrorKind::none;
  std::uint64_t sent = 0;
  for (int r = 0; r < p; ++r) {
    good &= from[std::size_t(r)].holds(round.number, r, me, round.bytes(r, me));
    sent += round.bytes(me, r);
  }
  good &= exchange.bytes_to_all() == sent;
  if (!good) std::fprintf(stderr, "rank %d: wrong in round %d, trouble %d\n", me, round.number, int(error));
  return good;
}

class Sizes : public ::testing::TestWithParam<int> {};

TEST_P(Sizes, EveryPairExchangesWhatItWants) {
  EXPECT_EQ(run_members(GetParam(), 120,
                        [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                          return make(process, bootstrap, rank, size, [&](const Partners& partners) {
                            std::mt19937 own{unsigned(rank)};
                            bool good = true;
                            for (int i = 0; i < testing::rounds_of(400) / size && good; ++i)
                              good = one_round(partners, {i, i % 3 == 1, i % 2 == 0}, own);
                            return good;
                          });
                        }),
            0);
}
INSTANTIATE_TEST_SUITE_P(OneToNine, Sizes, ::testing::Range(1, 10));

// A random multigraph: how often `from` has something for `to`, and under which tags.
std::vector<int> tags_of_edges(int round, int from, int to) {
  std::mt19937 random(unsigned(round * 7919 + from * 101 + to));
  random.discard(3);
  std::vector<int> tags(random() % 4);
  for (int& tag : tags) tag = int(random() % 2);
  return tags;
}

// Exchanges that overlap each other and blocking ones, over graphs in which members are neighbours several times, also
// of themselves: edges with one tag arrive in the order in which they were sent.
TEST_P(Sizes, EdgesOfOneTagKeepTheirOrderWhateverOverlaps) {
  struct Call {
    Call(const Partners& partners, int round, bool overlaps, std::mt19937& own) : round(round), edges(partners) {
      const int p = partners.count(), me = partners.me;
      auto add = [&](std::pmr::vector<Edge>& list, std::vector<Buffer>& buffers, int from, int to) {
        const auto tags = tags_of_edges(round, from, to);
        for (std::size_t k = 0; k < tags.size(); ++k) {
          std::mt19937 random(unsigned(round + from * 31 + to * 7) + unsigned(k));
          random.discard(2);
          const std::uint64_t bytes = random() % 5 == 0 ? 0 : random() % 3 ? random() % 300 : random() % 60000;
          buffers.emplace_back(bytes, own() % 3 == 0);
          list.push_back({from == me && &list == &edges.sends ? to : from, tags[k], buffers.back().data()});
          if (&list == &edges.sends) buffers.back().fill(round * 4 + int(k), from, to);
        }
      };
      // The order among partners does not matter, that of one partner's edges does.
      const int first = int(own() % unsigned(p)), other = int(own() % unsigned(p));
      for (int i = 0; i < p; ++i) add(edges.sends, sent, me, (first + i) % p);
      for (int i = 0; i < p; ++i) add(edges.receives, received, (other + i) % p, me);
      edges.prepare(overlaps);
    }
    bool good(ErrorKind error) const {
      bool all = error == ErrorKind::none;
      std::vector<int> seen(64);
      for (std::size_t i = 0; i < received.size(); ++i) {
        const int from = edges.receives[i].partner;
        all &= received[i].holds(round * 4 + seen[std::size_t(from)]++, from, me, received[i].data().bytes);
      }
      return all;
    }
    int round, me = 0;
    Edges edges;
    std::vector<Buffer> sent, received;
  };
  EXPECT_EQ(run_members(GetParam(), 120,
                        [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                          return make(process, bootstrap, rank, size, [&](const Partners& partners) {
                            std::mt19937 own{unsigned(rank) + 5}, same{1};
                            Partners overlapping = partners;
                            overlapping.context = context + 1;
                            bool good = true;
                            for (int i = 0; i < testing::rounds_of(60) / size + 5 && good; ++i) {
                              std::vector<std::unique_ptr<Call>> calls;
                              for (int k = 0; k < 5; ++k) {
                                const bool overlaps = same() % 3 != 0;
                                auto call =
                                    std::make_unique<Call>(overlaps ? overlapping : partners, i * 5 + k, overlaps, own);
                                call->me = rank;
                                if (own() % 4 == 0) usleep(own() % 300);
                                if (overlaps) {
                                  call->edges.start();
                                  calls.push_back(std::move(call));
                                } else {
                                  good &= call->good(call->edges.run());
                                }
                              }
                              std::shuffle(calls.begin(), calls.end(), own);
                              for (const auto& call : calls) {
                                while (!call->edges.complete()) partners.messenger.poll();
                                good &= call->good(call->edges.outcome());
                              }
                            }
                            return good;
                          });
                        }),
            0);
}

// Four members: 2 does not take part in the middle one of three rounds.
void exchange_with_a_refusal(std::uint64_t bytes) {
  EXPECT_EQ(run_members(4, 60,
                        [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                          return make(process, bootstrap, rank, size, [&](const Partners& partners) {
                            bool good = true;
                            for (int round = 0; round < 3; ++round) {
                              if (round == 1 && rank == 2) {
                                refuse(partners, [&](bool, VisitEdge visit) {
                                  for (int r = 0; r < size; ++r) visit(r, 0);
                                });
                                continue;
                              }
                              std::vector<Buffer> from, to;
                              AllPairs exchange(partners);
                              for (int r = 0; r < size; ++r) {
                                from.emplace_back(bytes, false);
                                to.emplace_back(bytes, false).fill(round, rank, r);
                                exchange.from(r) = from.back().data();
                                exchange.to(r) = to.back().data();
                              }
                              exchange.prepare();
                              good &= exchange.run() == (round == 1 ? ErrorKind::broken : ErrorKind::none);
                              for (int r = 0; r < size; ++r) {
                                const bool refused = round == 1 && r == 2;
                                good &= from[std::size_t(r)].holds(round, r, rank, refused ? 0 : bytes);
                              }
                            }
                            return good;
                          });
                        }),
            0);
}

TEST(Edges, AMemberThatRefusesIsNoticedAndHoldsUpNobody) {
  exchange_with_a_refusal(100);     // sent at once
  exchange_with_a_refusal(300000);  // matched first
}

TEST(Edges, WhatIsTooLongIsTruncated) {
  for (const bool to_itself : {true, false})
    EXPECT_EQ(run_members(2, 60,
                          [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                            return make(process, bootstrap, rank, size, [&](const Partners& partners) {
                              const int other = to_itself ? rank : 1 - rank;
                              Buffer from(5000, false), to(9000, false);
                              to.fill(0, rank, other);
                              AllPairs exchange(partners);
                              exchange.from(other) = from.data();
                              exchange.to(other) = to.data();
                              exchange.prepare();
                              return exchange.run() == ErrorKind::truncated && from.holds(0, other, rank, 9000);
                            });
                          }),
              0);
}

}  // namespace
}  // namespace nearfield::messages
