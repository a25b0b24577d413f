// Messages between all pairs of forked processes: lengths that only the two of a pair know, layouts, in place, delays.
#include "engine/messages/pairwise.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using team::Node;
using team::Team;
using testing::PageBootstrap;
using testing::run_processes;

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
    builder_.add(2, 3, 2, 5);  // xxx__xxx, from the third byte of twelve on
    data_.view = builder_.view(12);
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
  layout::Builder builder_;
  std::vector<std::byte> memory_;
  layout::Data data_;
};

bool make(Node& node, PageBootstrap& bootstrap, int rank, int size,
          const std::function<bool(const Partners& partners)>& body) {
  auto team = Team::create(node, rank, size, bootstrap);
  if (!team) return false;
  auto messenger = Messenger::create(**team, bootstrap, false);
  if (!messenger) return false;
  std::vector<int> members(std::size_t(size), 0);
  for (int r = 0; r < size; ++r) members[std::size_t(r)] = r;
  const bool good = body({**messenger, members, rank, context});
  bootstrap.meet();
  return good;
}

bool one_round(const Partners& partners, const Round& round, std::mt19937& own) {
  const int p = partners.count(), me = partners.me;
  std::vector<Buffer> from, to;
  Pairwise exchange(partners);
  for (int r = 0; r < p; ++r) {
    const std::uint64_t room = round.in_place ? 0 : own() % 3 * 10;  // a message may be shorter than its part
    const std::uint64_t bytes = round.bytes(r, me);
    from.emplace_back(bytes ? bytes + room : 0, own() % 3 == 0);
    to.emplace_back(round.bytes(me, r), own() % 3 == 0);
    (round.in_place ? from : to).back().fill(round.number, me, r);
    exchange.from(r) = from.back().data();
    if (!round.in_place) exchange.to(r) = to.back().data();
  }
  if (round.in_place) exchange.copy_aside();
  exchange.prepare();
  if (own() % 4 == 0) usleep(own() % 500);
  const Trouble trouble = exchange.run();
  bool good = trouble == Trouble::none;
  std::uint64_t sent = 0;
  for (int r = 0; r < p; ++r) {
    good &= from[std::size_t(r)].holds(round.number, r, me, round.bytes(r, me));
    sent += round.bytes(me, r);
  }
  good &= exchange.bytes_to_all() == sent;
  if (!good) std::fprintf(stderr, "rank %d: wrong in round %d, trouble %d\n", me, round.number, int(trouble));
  return good;
}

class Sizes : public ::testing::TestWithParam<int> {};

TEST_P(Sizes, EveryPairExchangesWhatItWants) {
  EXPECT_EQ(run_processes(GetParam(), 120,
                          [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                            return make(node, bootstrap, rank, size, [&](const Partners& partners) {
                              std::mt19937 own{unsigned(rank)};
                              bool good = true;
                              for (int i = 0; i < 400 / size && good; ++i)
                                good = one_round(partners, {i, i % 3 == 1, i % 2 == 0}, own);
                              return good;
                            });
                          }),
            0);
}
INSTANTIATE_TEST_SUITE_P(OneToNine, Sizes, ::testing::Range(1, 10));

// Four members: 2 does not take part in the middle one of three rounds.
void exchange_with_a_refusal(std::uint64_t bytes) {
  EXPECT_EQ(run_processes(4, 60,
                          [&](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                            return make(node, bootstrap, rank, size, [&](const Partners& partners) {
                              bool good = true;
                              for (int round = 0; round < 3; ++round) {
                                if (round == 1 && rank == 2) {
                                  auto all = [](int) { return true; };
                                  refuse(partners, all, all);
                                  continue;
                                }
                                std::vector<Buffer> from, to;
                                Pairwise exchange(partners);
                                for (int r = 0; r < size; ++r) {
                                  from.emplace_back(bytes, false);
                                  to.emplace_back(bytes, false).fill(round, rank, r);
                                  exchange.from(r) = from.back().data();
                                  exchange.to(r) = to.back().data();
                                }
                                exchange.prepare();
                                good &= exchange.run() == (round == 1 ? Trouble::broken : Trouble::none);
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

TEST(Pairwise, AMemberThatRefusesIsNoticedAndHoldsUpNobody) {
  exchange_with_a_refusal(100);     // sent at once
  exchange_with_a_refusal(300000);  // matched first
}

TEST(Pairwise, WhatIsTooLongIsTruncated) {
  for (const bool to_itself : {true, false})
    EXPECT_EQ(run_processes(2, 60,
                            [&](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                              return make(node, bootstrap, rank, size, [&](const Partners& partners) {
                                const int other = to_itself ? rank : 1 - rank;
                                Buffer from(5000, false), to(9000, false);
                                to.fill(0, rank, other);
                                Pairwise exchange(partners);
                                exchange.from(other) = from.data();
                                exchange.to(other) = to.data();
                                exchange.prepare();
                                return exchange.run() == Trouble::truncated && from.holds(0, other, rank, 9000);
                              });
                            }),
              0);
}

}  // namespace
}  // namespace nearfield::messages
