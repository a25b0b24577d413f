// Messages between all pairs of members of which one refuses, or has more than is expected.
#include "engine/messages/edges.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

// A buffer of so many bytes of data.
class Buffer {
 public:
  explicit Buffer(std::uint64_t bytes) : memory_(bytes + 64, std::byte{0}) { data_ = {memory_.data(), bytes, {}}; }
  Buffer(Buffer&&) = default;  // its memory moves along
  const layout::Data& data() const { return data_; }
  void fill(int round, int from, int to) {
    for (std::uint64_t i = 0; i < data_.bytes; ++i) memory_[i] = content(round, from, to, i);
  }
  bool holds(int round, int from, int to, std::uint64_t bytes) const {
    for (std::uint64_t i = 0; i < memory_.size(); ++i)
      if (memory_[i] != (i < std::min(bytes, data_.bytes) ? content(round, from, to, i) : std::byte{0})) return false;
    return true;
  }

 private:
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
                                from.emplace_back(bytes);
                                to.emplace_back(bytes).fill(round, rank, r);
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
                              Buffer from(5000), to(9000);
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
