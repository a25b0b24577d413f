// Messages between members, with random sizes, layouts, delays and protocols, and the pieces they are made of.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <thread>

#include "engine/messages/fastbox_room.hpp"
#include "engine/messages/messenger.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_processes;

// ---------------------------------------------------------------- fastboxes

static_assert([] {
  for (int members = 2; members <= 10000; ++members) {
    const std::uint64_t bytes = fastbox_bytes(members);
    if (!std::has_single_bit(bytes) || bytes * std::uint64_t(std::min(members, most_fastboxes)) > all_fastboxes)
      return false;
    if (largest_payload(bytes) < cell_payload) return false;  // what fits a cell goes there as well
  }
  return true;
}());

// ---------------------------------------------------------------- layouts

struct Described {
  layout::Builder builder;
  std::int64_t extent = 0;
  std::vector<std::int64_t> places;  // of each packed byte of one element
};

Described random_layout(std::mt19937& random) {
  Described d;
  auto number = [&](int most) { return int(random() % unsigned(most)); };
  std::int64_t at = number(16);
  const int runs = 1 + number(4);
  for (int i = 0; i < runs; ++i) {
    const int bytes = 1 + number(20), count = 1 + number(5), gap = number(3) ? number(9) : 0;
    d.builder.add(at, std::uint64_t(bytes), std::uint64_t(count), bytes + gap);
    for (int k = 0; k < count; ++k)
      for (int b = 0; b < bytes; ++b) d.places.push_back(at + k * (bytes + gap) + b);
    at += count * (bytes + gap) + number(8);
  }
  d.extent = at + number(10);
  return d;
}

TEST(Layout, EveryPieceOfEveryLayoutIsWhereItBelongs) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 3000; ++trial) {
    Described a = random_layout(random), b = random_layout(random);
    const std::uint64_t elements = 1 + random() % 6, bytes = elements * a.places.size();
    const std::uint64_t others = (bytes + b.places.size() - 1) / b.places.size();
    std::vector<std::byte> memory(elements * std::size_t(a.extent) + 64), packed(bytes);
    for (std::byte& byte : memory) byte = std::byte(random());
    const layout::Data from{memory.data(), bytes, a.builder.view(a.extent)};
    auto place_in_a = [&](std::uint64_t i) {
      return memory[(i / a.places.size()) * std::uint64_t(a.extent) + std::uint64_t(a.places[i % a.places.size()])];
    };
    const std::uint64_t first = random() % bytes, length = 1 + random() % (bytes - first);
    layout::gather(packed.data(), from, first, length);
    for (std::uint64_t i = 0; i < length; ++i) ASSERT_EQ(packed[i], place_in_a(first + i)) << trial;
    const layout::Range range = from.range(first, length);
    for (std::uint64_t i = first; i < first + length; ++i) {
      const auto* const at =
          memory.data() + (i / a.places.size()) * std::uint64_t(a.extent) + a.places[i % a.places.size()];
      ASSERT_TRUE(at >= range.begin && at < range.end) << trial;
    }
    if (!from.dense()) {
      ASSERT_TRUE(range.begin >= from.begin() && range.end <= from.begin() + from.span()) << trial;
    }
    // Into another layout, in two steps that meet anywhere.
    std::vector<std::byte> target(others * std::size_t(b.extent) + 64, std::byte{0x55});
    const layout::Data to{target.data(), bytes, b.builder.view(b.extent)};
    layout::copy(to, from, 0, first);
    layout::copy(to, from, first, bytes - first);
    std::vector<char> touched(target.size());
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const auto at = (i / b.places.size()) * std::uint64_t(b.extent) + std::uint64_t(b.places[i % b.places.size()]);
      ASSERT_EQ(target[at], place_in_a(i)) << trial << " " << i;
      touched[at] = 1;
    }
    for (std::size_t i = 0; i < target.size(); ++i) ASSERT_TRUE(touched[i] || target[i] == std::byte{0x55}) << trial;
    // The span covers everything that was read.
    if (!from.dense()) {
      EXPECT_GE(from.begin(), memory.data());
      EXPECT_LE(from.begin() + from.span(), memory.data() + memory.size());
    }
  }
}

TEST(Layout, ManyElementsOfOneLayoutGoWhereTheyAre) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 100; ++trial) {
    Described d = random_layout(random);
    const layout::View view = d.builder.view(d.extent);
    const std::uint64_t elements = 1 + random() % 3000, bytes = elements * d.places.size();
    std::vector<std::byte> memory(elements * std::size_t(d.extent)), target(memory.size(), std::byte{0x55});
    for (std::byte& byte : memory) byte = std::byte(random());
    std::vector<std::byte> expected = target;
    for (std::uint64_t e = 0; e < elements; ++e)
      for (const std::int64_t place : d.places) {
        const std::uint64_t at = e * std::uint64_t(d.extent) + std::uint64_t(place);
        expected[at] = memory[at];
      }
    const layout::Data from{memory.data(), bytes, view}, to{target.data(), bytes, view};
    const std::uint64_t first = random() % bytes;
    layout::copy(to, from, 0, first);
    layout::copy(to, from, first, bytes - first);
    ASSERT_TRUE(target == expected) << trial;
  }
}

TEST(Layout, RegularTypesBecomeOneRun) {
  layout::Builder vector;
  for (int i = 0; i < 1000; ++i) vector.add(i * 32, 16);
  EXPECT_EQ(vector.run_count(), 1u);
  layout::Builder dense;
  for (int i = 0; i < 1000; ++i) dense.add(i * 8, 8);
  EXPECT_TRUE(dense.view(8000).dense());
}

TEST(Layout, WhatTakesTooManyRunsIsGivenUpAtOnce) {
  layout::Builder irregular, regular, outer;
  irregular.add(0, 4);
  irregular.add(8, 8);
  irregular.add(20, 12);
  regular.add(0, 4, 2, 12);
  // Both would be more runs than there is memory for.
  outer.add(irregular, 0, std::uint64_t{1} << 50, 36);
  EXPECT_TRUE(outer.too_long());
  layout::Builder vectors, of_them;
  vectors.add(regular, 0, std::uint64_t{1} << 50, 100);
  EXPECT_TRUE(vectors.too_long());
  of_them.add(vectors, 0, 1, 0);
  EXPECT_TRUE(of_them.too_long());
  layout::Builder dense;
  for (int i = 0; i < 3; ++i) dense.add(i * (std::int64_t{1} << 40), 8, std::uint64_t{1} << 30, 1024);
  EXPECT_FALSE(dense.too_long());
}

TEST(Matching, FindsTheOldestWithAndWithoutBins) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    using Receive = Entry<1>;
    using Message = Entry<4>;
    Table<Receive> posted;
    Table<Message> unexpected;
    std::deque<Receive> receives;
    std::deque<Message> messages;
    std::vector<Receive*> posted_model;
    std::vector<Message*> unexpected_model;
    auto envelope = [&](bool wild) {
      Envelope e{1 + random() % 2, std::int32_t(random() % 4), std::int32_t(random() % 5)};
      if (wild && random() % 4 == 0) e.source = any;
      if (wild && random() % 4 == 0) e.tag = any;
      return e;
    };
    for (int i = 0; i < 400; ++i) {
      if (random() % 2) {
        const Envelope wanted = envelope(true);
        Message* expected = nullptr;
        for (Message* m : unexpected_model)
          if (!expected && match(wanted, m->envelope)) expected = m;
        Message* const found = unexpected.oldest(wanted);
        ASSERT_EQ(found, expected) << trial;
        if (found) {
          unexpected.remove(*found);
          std::erase(unexpected_model, found);
          continue;
        }
        receives.emplace_back().envelope = wanted;
        posted.push(receives.back());
        posted_model.push_back(&receives.back());
      } else {
        const Envelope message = envelope(false);
        Receive* expected = nullptr;
        for (Receive* r : posted_model)
          if (!expected && match(r->envelope, message)) expected = r;
        ASSERT_EQ(posted.oldest(message), expected) << trial;
        if (expected) {
          posted.remove(*expected);
          std::erase(posted_model, expected);
          continue;
        }
        messages.emplace_back().envelope = message;
        unexpected.push(messages.back());
        unexpected_model.push_back(&messages.back());
      }
    }
    ASSERT_EQ(posted.size(), posted_model.size());
    ASSERT_EQ(unexpected.size(), unexpected_model.size());
  }
}

// ---------------------------------------------------------------- between members

struct Plan {
  int source, dest, tag;
  std::uint64_t bytes;
  bool synchronous, mapped;
};

std::uint8_t content(int round, std::size_t message, std::uint64_t i) {
  return std::uint8_t(unsigned(round) * 31 + message * 7 + i * 13 + (i >> 8));
}

// Memory of a message: in the segment, where peers reach it, or private.
class Room {
 public:
  Room(Process& process, std::uint64_t bytes, bool mapped) : process_(process), private_(mapped ? 0 : bytes + 1) {
    if (mapped) offset_ = *process.arena().allocate(bytes + 1, 64);
    at_ = mapped ? process.segment().base() + offset_ : private_.data();
  }
  Room(const Room&) = delete;
  ~Room() {
    if (offset_) process_.arena().free(offset_);
  }
  std::byte* data() { return at_; }

 private:
  Process& process_;
  std::size_t offset_ = 0;
  std::vector<std::byte> private_;
  std::byte* at_;
};

bool random_rounds(Process& process, PageBootstrap& bootstrap, int rank, int size, int rounds, unsigned seed,
                   bool threaded = false) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  auto made = Messenger::create(**team, bootstrap, threaded);
  if (!made) return false;
  Messenger& messenger = **made;
  std::mt19937 common(seed), own(seed * 100 + unsigned(rank));
  constexpr std::uint64_t sizes[] = {0, 1, 39, 40, 41, 500, 1959, 1960, 1961, 8191, 8192, 16384, 16385, 60000, 300000};
  bool good = true;
  for (int round = 0; round < rounds && good; ++round) {
    std::vector<Plan> plans(1 + common() % 12);
    for (Plan& p : plans) {
      p = {int(common() % unsigned(size)),
           int(common() % unsigned(size)),
           int(common() % 3),
           sizes[common() % std::size(sizes)],
           common() % 4 == 0,
           common() % 2 == 0};
    }
    const bool any_source = common() % 4 == 0;
    std::deque<Request> requests;
    std::deque<Room> rooms;
    struct Wanted {
      Request* request;
      Room* room;
    };
    std::vector<Wanted> wanted;
    auto delay = [&] {
      if (own() % 8 == 0) usleep(own() % 300);
    };
    auto receive_all = [&] {
      for (const Plan& p : plans) {
        if (p.dest != rank) continue;
        delay();
        Room& room = rooms.emplace_back(process, 300000, own() % 2 == 0);
        Request& r = requests.emplace_back();
        r.member = any_source ? -1 : p.source;
        r.envelope = {77, any_source ? any : p.source, p.tag};
        r.data = {room.data(), 300000, {}};
        r.attended = own() % 2 == 0;
        wanted.push_back({&r, &room});
        messenger.start(r);
      }
    };
    const bool receive_first = own() % 2;
    if (receive_first) receive_all();
    for (std::size_t k = 0; k < plans.size(); ++k) {
      const Plan& p = plans[k];
      if (p.source != rank) continue;
      delay();
      Room& room = rooms.emplace_back(process, p.bytes, p.mapped);
      for (std::uint64_t i = 0; i < p.bytes; ++i) room.data()[i] = std::byte(content(round, k, i));
      const Envelope envelope{77, rank, p.tag};
      const layout::Data data{room.data(), p.bytes, {}};
      if (!p.synchronous && messenger.send_at_once(p.dest, envelope, data)) {
        std::fill_n(room.data(), p.bytes, std::byte{0});  // it is ours again
        continue;
      }
      Request& r = requests.emplace_back();
      r.is_send = true;
      r.mode = p.synchronous ? Mode::synchronous : Mode::standard;
      r.member = p.dest;
      r.envelope = envelope;
      r.data = data;
      messenger.start(r);
    }
    if (!receive_first) receive_all();
    for (Request& r : requests) messenger.wait(r);
    // Receives in the order in which they were posted get the messages of each sender and tag in theirs.
    std::vector<char> taken(plans.size());
    for (const Wanted& w : wanted) {
      bool found = false;
      for (std::size_t k = 0; k < plans.size() && !found; ++k) {
        const Plan& p = plans[k];
        if (taken[k] || p.dest != rank || p.source != w.request->envelope.source || p.tag != w.request->envelope.tag)
          continue;
        taken[k] = found = true;  // the first that is left must be it
        good &= p.bytes == w.request->received;
        for (std::uint64_t i = 0; i < p.bytes && good; ++i) good = w.room->data()[i] == std::byte(content(round, k, i));
      }
      good &= found;
    }
    if (!good) std::fprintf(stderr, "rank %d: wrong in round %d\n", rank, round);
    bootstrap.meet();
  }
  return good;
}

class Sizes : public ::testing::TestWithParam<int> {};

TEST_P(Sizes, RandomMessagesArriveInOrder) {
  const int size = GetParam();
  EXPECT_EQ(run_members(size, 120,
                        [](Process& process, PageBootstrap& bootstrap, int rank, int n) {
                          return random_rounds(process, bootstrap, rank, n, testing::rounds_of(2000) / (n + 1),
                                               unsigned(n));
                        }),
            0);
}
INSTANTIATE_TEST_SUITE_P(OneToNine, Sizes, ::testing::Range(1, 10));

class Protocols : public ::testing::TestWithParam<Protocol> {};

TEST_P(Protocols, ForcedOnesAreRight) {
  Settings settings;
  settings.protocol = GetParam();
  for (const int size : {2, 3, 5})
    EXPECT_EQ(run_members(
                  size, 120,
                  [](Process& process, PageBootstrap& bootstrap, int rank, int n) {
                    return random_rounds(process, bootstrap, rank, n, testing::rounds_of(200), 40 + unsigned(n), true);
                  },
                  settings),
              0);
}
INSTANTIATE_TEST_SUITE_P(All, Protocols,
                         ::testing::Values(Protocol::queue, Protocol::fastbox, Protocol::copy_buffers, Protocol::cma,
                                           Protocol::mapped));

// Two members; `body` on each.
int pair(const std::function<bool(Messenger&, PageBootstrap&, int rank)>& body,
         decltype(run_members)& run = run_members, const Settings& settings = {}) {
  return run(
      2, 60,
      [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
        auto team = creation::create_team(process, rank, size, bootstrap);
        if (!team) return false;
        auto messenger = Messenger::create(**team, bootstrap, false);
        return messenger && body(**messenger, bootstrap, rank);
      },
      settings);
}

void prepare(Request& r, bool send, int other, int tag, std::byte* at, std::uint64_t bytes) {
  r.is_send = send;
  r.member = other;
  r.envelope = {5, send ? 1 - other : other, tag};
  r.data = {at, bytes, {}};
}

TEST(Messages, ArriveByWhateverKindOfPublication) {
  for (const auto publishing : {Publishing::keep, Publishing::ahead, Publishing::demote}) {
    Settings settings;
    settings.publishing = publishing;
    const auto body = [](Messenger& m, PageBootstrap&, int rank) {
      std::vector<std::byte> memory(1300);
      for (std::uint64_t bytes = 0; bytes < memory.size(); ++bytes) {
        if (rank == 0)
          for (std::uint64_t i = 0; i < bytes; ++i) memory[i] = std::byte(7 * i + bytes);
        Request r;
        prepare(r, rank == 0, 1 - rank, 3, memory.data(), bytes);
        m.start(r);
        m.wait(r);
        for (std::uint64_t i = 0; i < bytes; ++i)
          if (memory[i] != std::byte(7 * i + bytes)) return false;
      }
      return true;
    };
    EXPECT_EQ(pair(body, run_members, settings), 0) << int(publishing);
  }
}

// Those that are under way, and those that start afterwards, since who starts them may not have known.
TEST(Messages, OfClosedContextsEnd) {
  const auto body = [](Messenger& m, PageBootstrap& bootstrap, int rank) {
    constexpr std::uint64_t lengths[] = {8, 3000, 1 << 20};
    std::vector<std::byte> memory(1 << 20);
    const auto ends = [&](Request& r) {
      while (!r.complete()) {
        m.poll();
        m.look_for_closed();
      }
      return r.error == ErrorKind::closed;
    };
    Request early[2];
    prepare(early[0], false, 1 - rank, 3, memory.data(), 8);
    prepare(early[1], true, 1 - rank, 4, memory.data(), memory.size());
    early[1].mode = Mode::synchronous;
    for (Request& each : early) m.start(each);
    bootstrap.meet();
    if (rank == 0) m.close(5);
    bool good = ends(early[0]) && ends(early[1]) && m.is_closed(5);
    for (const bool send : {false, true})
      for (const std::uint64_t bytes : lengths) {
        Request late;
        prepare(late, send, 1 - rank, 9, memory.data(), bytes);
        if (send) late.mode = Mode::synchronous;
        m.start(late);
        good &= ends(late);
      }
    Request other[2];  // of another context
    for (const bool send : {false, true}) {
      prepare(other[send], send, 1 - rank, 3, memory.data() + 64 * send, 8);
      other[send].envelope.context = 6;
      m.start(other[send]);
    }
    for (Request& each : other) {
      m.wait(each);
      good &= each.error == ErrorKind::none;
    }
    bootstrap.meet();
    if (rank == 0) {  // more than peers can be told of
      Request last;
      prepare(last, false, 1, 3, memory.data(), 8);
      last.envelope.context = 100;
      m.start(last);
      for (std::uint64_t i = 0; i < team::ProcessHeader::most_closed; ++i) m.close(1000 + i);
      m.close(100);
      good &= ends(last);
    }
    bootstrap.meet();
    return good;
  };
  EXPECT_EQ(pair(body), 0);
}

// What a member has read it fills with its next message: to and fro, both ways at once, by sends of either mode that
// are finished late, in lengths that fit what is held, or do not. Little of the span is in use at any time.
TEST(Messages, BuffersComeBackToWhoeverReadsThem) {
  Settings settings;
  settings.protocol = Protocol::copy_buffers;
  const auto body = [](Messenger& m, PageBootstrap& bootstrap, int rank) {
    constexpr std::uint64_t lengths[] = {4097, 5000, 9000, 65536, 65537, 140'000, 262'144, 300'000, 3'000'000};
    std::vector<std::byte> out[2], in(3'000'000);
    for (auto& each : out) each.resize(in.size());
    std::mt19937 random(3), delays{unsigned(rank)};
    Request send[2], receive;
    const auto finish = [&m](Request& r) {
      if (r.is_send) m.wait(r);
    };
    for (int i = 0; i < testing::rounds_of(2000); ++i) {
      const bool both = random() % 2, synchronous = random() % 3 == 0;
      const std::uint64_t bytes = lengths[random() % 64 ? random() % 8 : 8] - random() % 40;
      // Of each 512 bytes.
      const auto stamp = [&](int from, std::uint64_t at) { return std::byte(i * 5 + from + int(at / 512)); };
      for (const int from : {0, 1}) {
        if (!both && from != i % 2) continue;
        if (delays() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(delays() % 300));
        if (from == rank) {
          Request& r = send[i % 2];
          finish(r);
          for (std::uint64_t at = 0; at < bytes; at += 512)
            std::memset(&out[i % 2][at], int(stamp(from, at)), std::min<std::uint64_t>(512, bytes - at));
          prepare(r, true, 1 - rank, i, out[i % 2].data(), bytes);
          r.mode = synchronous ? Mode::synchronous : Mode::standard;
          m.start(r);
        }
      }
      if (both || rank != i % 2) {
        prepare(receive, false, 1 - rank, i, in.data(), bytes);
        m.start(receive);
        m.wait(receive);
        for (std::uint64_t at = 0; at < bytes; ++at)
          if (in[at] != stamp(1 - rank, at)) return false;
      }
    }
    for (Request& r : send) finish(r);
    bootstrap.meet();
    return true;
  };
  EXPECT_EQ(pair(body, run_processes, settings), 0);
  EXPECT_EQ(pair(body, run_members, settings), 0);
}

// Buffers go to and fro: their owner takes few others.
TEST(Messages, APingPongUsesFewBuffers) {
  Settings settings;
  settings.protocol = Protocol::copy_buffers;
  const auto body = [](Messenger& m, PageBootstrap& bootstrap, int rank) {
    std::vector<std::byte> memory(65536);
    std::uint64_t least_free = ~std::uint64_t{0};
    for (int i = 0; i < 200; ++i) {
      Request r;
      prepare(r, rank == i % 2, 1 - rank, i, memory.data(), memory.size());
      m.start(r);
      m.wait(r);
      least_free = std::min<std::uint64_t>(least_free, m.process().copy_buffers().free_bytes());
    }
    bootstrap.meet();
    return least_free + 2 * 67'000 >= m.process().copy_buffers().span();
  };
  EXPECT_EQ(pair(body, run_processes, settings), 0);
}

TEST(Messages, ALongerMessageThanItsReceiveIsTruncated) {
  for (const std::uint64_t bytes : {100u, 10000u, 500000u})
    EXPECT_EQ(pair([&](Messenger& m, PageBootstrap& bootstrap, int rank) {
                std::vector<std::byte> memory(bytes + 64, std::byte(rank));
                Request r;
                prepare(r, rank == 0, 1 - rank, 3, memory.data(), rank == 0 ? bytes : bytes / 2);
                m.start(r);
                m.wait(r);
                bootstrap.meet();
                return rank == 0 || (r.error == ErrorKind::truncated && r.received == bytes / 2 &&
                                     memory[bytes / 2 - 1] == std::byte{0} && memory[bytes / 2] == std::byte{1});
              }),
              0);
}

// The question for the message finds no room at first, and other sends wait for room before it.
TEST(Messages, ASendIsCancelledOnceThereIsRoomForTheQuestion) {
  EXPECT_EQ(pair([](Messenger& m, PageBootstrap& bootstrap, int rank) {
              constexpr int many = 500;
              std::vector<std::byte> memory(1 << 20);
              bool good = true;
              if (rank == 0) {
                Request cancelled;
                std::vector<Request> others(many);
                prepare(cancelled, true, 1, 1, memory.data(), memory.size());
                cancelled.mode = Mode::synchronous;
                m.start(cancelled);
                for (Request& each : others) {
                  prepare(each, true, 1, 2, memory.data(), 1024);
                  m.start(each);
                }
                m.cancel(cancelled);
                good = !cancelled.complete();
                bootstrap.meet();
                for (Request& each : others) m.wait(each);
                m.wait(cancelled);
                good &= cancelled.cancelled;
              } else {
                bootstrap.meet();
                for (int i = 0; i < many; ++i) {
                  Request r;
                  prepare(r, false, 0, 2, memory.data(), 1024);
                  m.start(r);
                  m.wait(r);
                }
                m.wait_until([&] { return m.sends_pending() == false && !m.oldest_unexpected(); },
                             [](int) { return false; }, nullptr, "waiting in a test");
              }
              bootstrap.meet();
              return good;
            }),
            0);
}

TEST(Messages, SendsAreCancelledOnlyBeforeTheyAreMatched) {
  EXPECT_EQ(pair([](Messenger& m, PageBootstrap& bootstrap, int rank) {
              std::vector<std::byte> memory(1 << 20);
              bool good = true;
              if (rank == 0) {
                Request cancelled, kept;
                prepare(cancelled, true, 1, 1, memory.data(), memory.size());
                cancelled.mode = kept.mode = Mode::synchronous;
                prepare(kept, true, 1, 2, memory.data(), memory.size());
                m.start(cancelled);
                m.start(kept);
                m.cancel(cancelled);
                m.wait(cancelled);
                good = cancelled.cancelled;
                bootstrap.meet();
                m.wait(kept);
                good &= !kept.cancelled;
              } else {
                Messenger::Found found;
                // Takes in what has come, and answers the question.
                const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
                while (std::chrono::steady_clock::now() < until) m.probe({5, 0, 99}, false, found);
                bootstrap.meet();
                good = !m.probe({5, 0, 1}, false, found) && m.probe({5, 0, 2}, false, found);
                Request r;
                prepare(r, false, 0, 2, memory.data(), memory.size());
                m.start(r);
                m.wait(r);
              }
              bootstrap.meet();
              return good;
            }),
            0);
}

// Synchronous sends with tags from 0 on, all of which the other side has taken in when this returns; `words` are sent.
constexpr int all_taken_in = 99999;
bool start_many(Messenger& m, int rank, std::vector<std::uint64_t>& words, std::deque<Request>& requests,
                const std::function<int(int)>& tag) {
  std::uint64_t word = 0;
  if (rank == 1) {
    Messenger::Found found;
    while (!m.probe({5, 0, tag(int(words.size()) - 1)}, false, found)) continue;
    while (!m.send_at_once(0, {5, 1, all_taken_in}, {reinterpret_cast<std::byte*>(&word), sizeof word, {}})) m.poll();
    return true;
  }
  for (int i = 0; i < int(words.size()); ++i) {
    Request& r = requests.emplace_back();
    words[std::size_t(i)] = std::uint64_t(i);
    prepare(r, true, 1, tag(i), reinterpret_cast<std::byte*>(&words[std::size_t(i)]), sizeof word);
    r.mode = Mode::synchronous;
    m.start(r);
  }
  Request r;
  prepare(r, false, 1, all_taken_in, reinterpret_cast<std::byte*>(&word), sizeof word);
  m.start(r);
  m.wait(r);
  return true;
}

std::uint64_t receive_word(Messenger& m, int tag) {
  std::uint64_t word = ~std::uint64_t{0};
  Request r;
  prepare(r, false, 0, tag, reinterpret_cast<std::byte*>(&word), sizeof word);
  m.start(r);
  m.wait(r);
  return word;
}

TEST(Messages, CancelledOnesGiveBackTheirBuffers) {
  EXPECT_EQ(pair([](Messenger& m, PageBootstrap& bootstrap, int rank) {
              std::vector<std::byte> memory(5 << 10);
              // More than all buffers together could hold.
              const std::uint64_t rounds = 2 * m.process().copy_buffers().span() / memory.size();
              bool good = true;
              Messenger::Found found;
              for (std::uint64_t i = 0; i < rounds && rank == 0; ++i) {
                Request r;
                prepare(r, true, 1, 1, memory.data(), memory.size());
                r.mode = Mode::synchronous;
                m.start(r);
                good &= r.in_buffers() != nullptr;
                m.cancel(r);
                m.wait(r);
                good &= r.cancelled;
              }
              if (rank == 0) {
                std::uint64_t word = 0;
                m.send_at_once(1, {5, 0, all_taken_in}, {reinterpret_cast<std::byte*>(&word), sizeof word, {}});
              } else {
                receive_word(m, all_taken_in);
                good &= !m.probe({5, 0, 1}, false, found);
              }
              bootstrap.meet();
              return good;
            }),
            0);
}

// Which of thousands is matched next is nobody's guess: the receiver says so, and the sender's next poll knows.
TEST(Messages, AnAnswerIsFoundByTheNextPollHoweverManyWait) {
  EXPECT_EQ(pair([](Messenger& m, PageBootstrap& bootstrap, int rank) {
              constexpr int count = 5000, picks = 40, apart = 117;
              std::vector<std::uint64_t> words(count);
              std::deque<Request> requests;
              bool good = start_many(m, rank, words, requests, [](int i) { return i; });
              auto picked = [](int i) { return i % apart == 0 && i / apart < picks; };
              for (int pick = picks; pick-- > 0;) {
                const int i = pick * apart;
                if (rank == 1) good &= receive_word(m, i) == std::uint64_t(i);
                bootstrap.meet();
                if (rank == 0) m.poll(), good &= requests[std::size_t(i)].complete();
                bootstrap.meet();
              }
              for (int i = count; rank == 1 && i-- > 0;)
                if (!picked(i)) good &= receive_word(m, i) == std::uint64_t(i);
              for (Request& r : requests) m.wait(r);
              good &= !m.busy();
              bootstrap.meet();
              return good;
            }),
            0);
}

TEST(Messages, ManyOfOneEnvelopeAreTakenBackInAnyOrder) {
  EXPECT_EQ(pair([](Messenger& m, PageBootstrap& bootstrap, int rank) {
              constexpr int count = 3000;
              std::vector<std::uint64_t> words(count);
              std::deque<Request> requests;
              bool good = start_many(m, rank, words, requests, [](int i) { return i == count - 1; });
              if (rank == 0) {
                for (int i = count - 2; i >= 0; i -= 2) {
                  m.cancel(requests[std::size_t(i)]);
                  m.wait(requests[std::size_t(i)]);
                  good &= requests[std::size_t(i)].cancelled;
                }
                std::uint64_t word = 0;
                while (!m.send_at_once(1, {5, 0, all_taken_in}, {reinterpret_cast<std::byte*>(&word), sizeof word, {}}))
                  m.poll();
                for (Request& r : requests) m.wait(r);
              } else {
                receive_word(m, all_taken_in);
                for (int i = 1; i < count - 1; i += 2) good &= receive_word(m, 0) == std::uint64_t(i);
                good &= receive_word(m, 1) == count - 1;
                Messenger::Found found;
                good &= !m.probe({5, 0, any}, false, found);
              }
              bootstrap.meet();
              return good && !m.busy();
            }),
            0);
}

TEST(Matching, FindsOneOfManyWithTheSameEnvelope) {
  using Message = Entry<4>;
  for (const std::size_t others : {0, 100}) {
    Table<Message> table;
    std::deque<Message> entries(others + 40);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].envelope = {1, 2, i < others ? int(i) + 10 : 3};
      table.push(entries[i]);
    }
    std::vector<Message*> same;
    for (std::size_t i = others; i < entries.size(); ++i) same.push_back(&entries[i]);
    std::ranges::shuffle(same, std::mt19937(3));
    for (Message* const each : same) {
      const auto is = [&](const Message& e) { return &e == each; };
      ASSERT_EQ(table.find_same({1, 2, 3}, is), each);
      table.remove(*each);
      ASSERT_EQ(table.find_same({1, 2, 3}, is), nullptr);
    }
    ASSERT_EQ(table.size(), others);
  }
}

TEST(Matching, AFewThousandKeysComeAndGo) {
  std::mt19937 random(5);
  Table<Entry<1>> table;
  for (int turn = 0; turn < 2; ++turn) {
    std::deque<Entry<1>> receives(6000);
    std::vector<Entry<1>*> left;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      receives[i].envelope = {1, i % 100 ? 0 : any, int(i / 2)};
      table.push(receives[i]);
      left.push_back(&receives[i]);
    }
    std::ranges::shuffle(left, random);
    for (Entry<1>* const each : left) {
      const Envelope message{1, 0, each->envelope.tag};
      Entry<1>* const found = table.oldest(message);
      ASSERT_TRUE(found && match(found->envelope, message) && found->order <= each->order);
      table.remove(*each);
    }
    ASSERT_EQ(table.size(), 0u);
  }
}

TEST(Messages, AMillionUnexpectedOnesAreKept) {
  EXPECT_EQ(pair([](Messenger& m, PageBootstrap& bootstrap, int rank) {
              constexpr int count = testing::rounds_of(1'000'000);
              if (rank == 0) {
                for (int i = 0; i < count; ++i) {
                  Request r;
                  prepare(r, true, 1, i % 1000, reinterpret_cast<std::byte*>(&i), sizeof i);
                  m.start(r);
                  m.wait(r);
                }
                bootstrap.meet();
                return true;
              }
              // One with a tag of its own comes last: everything else is taken in before it.
              Messenger::Found found;
              while (!m.probe({5, 0, 999}, false, found)) {
              }
              bool good = true;
              for (int tag = 999; tag >= 0 && good; --tag)
                for (int k = 0; k < count / 1000 && good; ++k) {
                  int value = -1;
                  Request r;
                  prepare(r, false, 0, tag, reinterpret_cast<std::byte*>(&value), sizeof value);
                  m.start(r);
                  m.wait(r);
                  good = value == k * 1000 + tag;
                }
              bootstrap.meet();
              return good;
            }),
            0);
}

// Several threads of each member at once, each with a context of its own; for the thread sanitizer above all.
void exchange_in_a_thread(Messenger& m, int rank, int size, int thread, int messages, std::atomic<bool>& good) {
  std::mt19937 random{unsigned(thread)};  // the same on all processes
  std::vector<std::byte> out(200000), in(200000);
  for (int i = 0; i < messages && good; ++i) {
    const std::uint64_t bytes = random() % 3 ? random() % 3000 : random() % out.size();
    const int shift = 1 + int(random() % unsigned(size));
    const int to = (rank + shift) % size, from = (rank - shift % size + size) % size;
    std::fill_n(out.data(), bytes, std::byte(rank + i));
    Request receive, send;
    receive.member = i % 3 ? from : -1;
    receive.envelope = {std::uint64_t(100 + thread), i % 3 ? from : any, i};
    receive.data = {in.data(), in.size(), {}};
    receive.attended = i % 4 == 1;
    send.is_send = true;
    send.mode = random() % 5 ? Mode::standard : Mode::synchronous;
    send.member = to;
    send.envelope = {std::uint64_t(100 + thread), rank, i};
    send.data = {out.data(), bytes, {}};
    m.start(send);
    m.start(receive);
    m.wait(receive);
    m.wait(send);
    if (receive.received != bytes || (bytes && in[bytes - 1] != std::byte(from + i))) good = false;
  }
}

// Exchanges of three threads in each of `size` members.
int threads_in_members(int size, int messages) {
  return run_members(size, 240, [=](Process& process, PageBootstrap& bootstrap, int rank, int n) {
    auto team = creation::create_team(process, rank, n, bootstrap);
    if (!team) return false;
    auto made = Messenger::create(**team, bootstrap, true);
    if (!made) return false;
    std::atomic<bool> good{true};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] { exchange_in_a_thread(**made, rank, n, t, messages, good); });
    for (std::thread& thread : threads) thread.join();
    bootstrap.meet();
    return good.load();
  });
}

TEST(Threads, ExchangeAtOnce) {
  for (const int size : {1, 2, 4, 8}) EXPECT_EQ(threads_in_members(size, 400), 0) << size;
}

TEST(Messages, APeerThatDiesInATransferIsReported) {
  const auto body = [](Messenger& m, PageBootstrap&, int rank) {
    std::vector<std::byte> memory(64 << 20);
    Request r;
    prepare(r, rank == 0, 1 - rank, 0, memory.data(), memory.size());
    m.start(r);
    if (rank == 0) {
      // Until the receiver has it under way.
      const Transfer& t = *r.offered.transfer;
      while (t.state.load(std::memory_order_acquire) == State::waiting) processor::pause();
      raise(SIGKILL);
    }
    try {
      m.wait(r);
      return r.error == ErrorKind::broken;  // where it reads by calls of the kernel
    } catch (const team::Broken& broken) {
      m.abandon(r);
      return std::string(broken.what()).find("has ended") != std::string::npos && r.complete();
    }
  };
  EXPECT_EQ(pair(body, run_processes), 1);  // the one that was killed
}

TEST(Messages, APeerThatDiesBeforeItSendsIsReported) {
  const auto body = [](Messenger& m, PageBootstrap& bootstrap, int rank) {
    std::byte memory[8];
    Request r;
    prepare(r, false, 1 - rank, 0, memory, sizeof memory);
    m.start(r);
    bootstrap.meet();
    if (rank == 0) raise(SIGKILL);
    try {
      m.wait(r);
      return false;
    } catch (const team::Broken& broken) {
      m.abandon(r);
      return std::string(broken.what()).find("has ended") != std::string::npos && r.complete();
    }
  };
  EXPECT_EQ(pair(body, run_processes), 1);  // the one that was killed
}

// A process may be stopped anywhere, also between the two stores by which it puts a cell into a queue. What is in front
// of that cell arrives, and all else goes on; what is behind it arrives once it runs again.
TEST(Messages, ASenderThatIsStoppedInAQueueStopsNobodyElse) {
  Settings settings;
  settings.protocol = Protocol::queue;
  const auto body = [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    auto messenger = Messenger::create(**team, bootstrap, false);
    if (!messenger) return false;
    Messenger& m = **messenger;
    const auto mine = std::uint64_t(reinterpret_cast<std::byte*>(&m.wake_word()) - m.base(rank)) -
                      offsetof(MessageMailbox, wake_word);
    std::uint64_t offset[3];
    bootstrap.allgather(&mine, offset, sizeof mine);
    const auto mailbox = [&](int member) -> MessageMailbox& {
      return *reinterpret_cast<MessageMailbox*>(m.base(member) + offset[member]);
    };
    const auto send = [&](int to, int value) { return m.send_at_once(to, {5, rank, 0}, {(std::byte*)&value, 4, {}}); };
    int value = 0;
    Request r;
    const auto receive = [&] {
      r.member = -1;
      r.envelope = {5, any, 0};
      r.data = {reinterpret_cast<std::byte*>(&value), sizeof value, {}};
      m.start(r);
    };
    const auto comes = [&](int from, int wanted) {
      m.wait(r);
      return r.envelope.source == from && value == wanted;
    };

    bool good = rank != 1 || send(0, 10);
    bootstrap.meet();
    Cell& cell = mailbox(2).cell[cells - 1];
    Reference last = 0;
    if (rank == 2) {
      const int payload = 20;
      cell.record.envelope = {5, 2, 0};
      std::memcpy(payload_of(cell.record, sizeof payload), &payload, sizeof payload);
      cell.record.word.store(record_word(Kind::eager, sizeof payload), std::memory_order_relaxed);
      cell.busy.store(1, std::memory_order_relaxed);
      const auto reference = std::uint64_t(reinterpret_cast<std::byte*>(&cell) - m.base(2)) | std::uint64_t{3} << 48;
      last = mailbox(0).tail.exchange(reference, std::memory_order_acq_rel);
      good &= last != 0;
    }
    bootstrap.meet();
    good &= rank != 1 || send(0, 11);
    bootstrap.meet();
    if (rank == 0) {
      receive();
      good &= comes(1, 10);
      receive();
      for (int i = 0; i < 1000; ++i) m.poll();
      good &= !r.complete() && send(1, 1);
    } else if (rank == 1) {
      receive();
      good &= comes(0, 1);
    }
    bootstrap.meet();
    if (rank == 2) {
      const auto at = reinterpret_cast<Cell*>(m.base(int(last >> 48) - 1) + (last & 0xffff'ffff'ffff));
      at->next.store(std::uint64_t(reinterpret_cast<std::byte*>(&cell) - m.base(2)) | std::uint64_t{3} << 48,
                     std::memory_order_release);
    }
    if (rank == 0) {
      good &= comes(2, 20);
      receive();
      good &= comes(1, 11);
    }
    bootstrap.meet();
    return good && cell.busy.load(std::memory_order_relaxed) == 0;
  };
  EXPECT_EQ(run_members(3, 20, body, settings), 0);
}

// One way is faster from acceptance to end, but costs the sender more between messages; then no choice is offered for
// a while.
TEST(ProtocolChooser, SeesWhatAMessageLeavesBehind) {
  globals().pace = nullptr;
  for (const bool rewritten : {false, true}) {
    ProtocolChooser chooser;
    std::uint64_t now = 1000;
    bool advised = false;
    for (int i = 0; i < 1000 && !advised; ++i) {
      const auto chosen = chooser.next(65536, false, {6554});
      const bool direct = chosen.way == State::direct;
      now += rewritten && direct ? 20'000 : 5'000;
      const std::uint64_t accepted = now;
      now += direct ? 10'000 : 15'000;
      chooser.over(65536, {chosen.timed ? accepted : 0, now});
      advised = chosen.advised;
    }
    EXPECT_EQ(advised, rewritten);
    EXPECT_EQ(chooser.next(65536, false, {6554}).way, rewritten ? State::staged : State::direct);
  }
}

// Five messages are sent to and fro in one loop. Through copy buffers they hold what their sender does meanwhile; what
// one copy costs the sender is paid before the first of them. Now and then the program does something else.
TEST(ProtocolChooser, SeesItInLoopsOfSeveralMessages) {
  globals().pace = nullptr;
  int right = 0, jobs = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    for (const bool rewritten : {false, true}) {
      ProtocolChooser chooser;
      std::mt19937 random{seed};
      std::uint64_t now = 1000;
      State way{};
      for (int i = 0; i < 4000; ++i) {
        const auto chosen = chooser.next(65536, false, {6554});
        way = chosen.way;
        const bool direct = way == State::direct;
        now += i % 5 ? 500 : rewritten && direct ? 40'000 : 8000;
        if (i % 40 == int(seed)) now += 3'000'000 + random() % 6'000'000;
        const std::uint64_t accepted = now;
        now += direct ? 2000 : 1000 + random() % 5000;
        chooser.over(65536, {chosen.timed ? accepted : 0, now});
      }
      right += (way == State::staged) == rewritten;
      ++jobs;
    }
  }
  EXPECT_GE(right, jobs * 19 / 20);
}

// Where the program works between messages, the machine's figures say what these leave behind; the first way is the one
// that they call cheaper.
TEST(ProtocolChooser, BelievesFiguresOfWhatIsLeftBehind) {
  globals().pace = nullptr;
  for (const double leaves : {0.0, 80'000.0}) {
    ProtocolChooser chooser;
    const ProtocolChooser::Estimate estimate{15'000, leaves, leaves > 0};
    std::mt19937 random{7};
    std::uint64_t now = 1000;
    EXPECT_EQ(chooser.next(262144, false, estimate).way, leaves > 0 ? State::staged : State::direct);
    chooser.over(262144, {0, now});
    ProtocolChooser::Chosen chosen;
    for (int i = 0; i < 1000; ++i) {
      chosen = chooser.next(262144, false, estimate);
      now += 200'000 + random() % 200'000;
      const std::uint64_t accepted = now;
      now += chosen.way == State::direct ? 15'000 : 20'000;
      chooser.over(262144, {chosen.timed ? accepted : 0, now});
    }
    EXPECT_EQ(chosen.way, leaves > 0 ? State::staged : State::direct);
  }
}

// Messages of a window wait for each other: all of it go one way, and its time is divided by their number.
TEST(ProtocolChooser, TriesWindowsAsOne) {
  globals().pace = nullptr;
  for (const bool copies_leave : {false, true}) {
    ProtocolChooser chooser;
    std::mt19937 random{7};
    std::uint64_t now = 1000;
    for (int window = 0; window < 100; ++window) {
      const unsigned messages = 2 + random() % 15;
      const std::uint64_t accepted = now += 100;
      std::vector<ProtocolChooser::Chosen> chosen;
      for (unsigned i = 0; i < messages; ++i) chosen.push_back(chooser.next(65536, false, {6554}));
      for (const auto& each : chosen) EXPECT_EQ(each.way, chosen[0].way);
      const bool direct = chosen[0].way == State::direct;
      // Their sender is slow to answer, and will not be asked.
      const std::uint64_t asked = direct ? 0 : 50'000;
      now += asked;
      for (unsigned i = 0; i < messages; ++i)
        chooser.over(65536, {chosen[i].timed ? accepted : 0, now += direct ? 2000 : 3000}, asked);
      if (direct && copies_leave) now += messages * 4000;
    }
    EXPECT_EQ(chooser.next(65536, false, {6554}).way, copies_leave ? State::staged : State::direct);
  }
}

// The receiver copies what its sender does not wait for, which is no trial; once that is decided, the next ones are
// filled unasked.
TEST(ProtocolChooser, LeavesASenderThatComputesAlone) {
  globals().pace = nullptr;
  ProtocolChooser chooser;
  std::uint64_t now = 1000;
  for (int i = 0; i < 1000; ++i) {
    const bool attended = i % 2;
    const auto chosen = chooser.next(65536, false, {6554}, attended);
    EXPECT_TRUE(attended || (chosen.way == State::direct && !chosen.timed));
    const std::uint64_t accepted = now += 5000;
    chooser.over(65536, {chosen.timed ? accepted : 0, now += chosen.way == State::direct ? 10'000 : 5000});
  }
  const auto chosen = chooser.next(65536, false, {6554}, false);
  EXPECT_TRUE(chosen.way == State::direct && chosen.advised && !chosen.timed);
  chooser.over(65536, {0, now});
  EXPECT_EQ(chooser.next(65536, false, {6554}, true).way, State::staged);
}

TEST(Offers, AreSkippedForAWhile) {
  Offers offers;
  EXPECT_FALSE(offers.skip(65536));
  offers.advised(65536);
  EXPECT_FALSE(offers.skip(1 << 20)) << "another class of lengths";
  unsigned skipped = 0;
  while (offers.skip(60000)) ++skipped;
  EXPECT_EQ(skipped, messages::unasked);
  offers.advised(65536);
  for (skipped = 0; offers.skip(65536, false);) ++skipped;
  EXPECT_GT(skipped, 7 * messages::unasked) << "its sender may compute";
}

// Large messages go every way for a while, arrive whole, and then one way. `mapped`: whether others can map their
// memory.
int try_protocols(bool mapped) {
  const testing::Pacing pacing({.first = 3, .rounds = 3, .rest = 1});
  return run_members(2, 60, [mapped](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    auto messenger = Messenger::create(**team, bootstrap, false);
    if (!messenger) return false;
    Messenger& m = **messenger;
    if (process.policy().oversubscribed) return true;
    constexpr std::size_t sizes[] = {400000, 524288, 900001};  // beyond those that are always copied twice
    if (!mapped && !reach::Peers::calls(*(*team)->peer(1 - rank))) return true;  // calls are forbidden here
    std::vector<std::byte> ours(mapped ? 0 : 2 * 900001);
    auto* const at = mapped ? process.segment().base() + *process.arena().allocate(2 * 900001, 64) : ours.data();
    for (int i = 0; i < 900; ++i) {
      const std::size_t n = sizes[i % 3];
      std::byte *const mine = at, *const theirs = at + 900001;
      std::memset(mine, i * 7 + rank, n);
      Request receive, send;
      receive.member = 1 - rank;
      receive.envelope = {1, 1 - rank, 0};
      receive.data = {theirs, n, {}};
      send.is_send = true;
      send.member = 1 - rank;
      send.envelope = {1, rank, 0};
      send.data = {mine, n, {}};
      send.attended = true;  // ways that need their sender are not tried otherwise
      m.start(receive);
      m.start(send);
      m.wait(receive);
      m.wait(send);
      for (std::size_t k = 0; k < n; k += 97)
        if (theirs[k] != std::byte(i * 7 + 1 - rank)) return false;
      if (theirs[n - 1] != std::byte(i * 7 + 1 - rank)) return false;
    }
    bootstrap.meet();
    const auto& counts = m.counts();  // each of three lengths has tried both
    return (mapped ? counts.direct : counts.by_calls) > 5 && counts.staged > 5;
  });
}
TEST(ProtocolChooser, TriesAndDecides) { EXPECT_EQ(0, try_protocols(true)); }
TEST(ProtocolChooser, TriesCallsWhereNobodyCanMap) { EXPECT_EQ(0, try_protocols(false)); }

// A message does not wait for its sender's next call, if that computes for good or for a while. Each messenger chooses
// anew.
TEST(ProtocolChooser, NoMessageWaitsForASenderThatComputes) {
  const testing::Pacing pacing({.first = 1, .rounds = 3, .rest = 1});
  const int result = run_members(2, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    if (process.policy().oversubscribed) return true;
    constexpr int messengers = 6, rounds = 1000;
    constexpr std::size_t most = 512 << 10;
    auto& received = *reinterpret_cast<Atomic<int>*>((*team)->segment_of(0) + [&] {
      std::uint64_t mine = rank == 0 ? *process.arena().allocate_zeroed(64, 64) : 0, all[2];
      bootstrap.allgather(&mine, all, sizeof mine);
      return all[0];
    }());
    auto* const at = process.segment().base() + *process.arena().allocate(most, 64);
    std::unique_ptr<Messenger> messenger;
    std::uint64_t direct = 0;
    for (int i = 0; i < messengers * rounds; ++i) {
      if (i % rounds == 0) {
        messenger.reset();
        auto made = Messenger::create(**team, bootstrap, false);
        if (!made) return false;
        messenger = std::move(*made);
      }
      Messenger& m = *messenger;
      const std::size_t n = std::size_t{32 << 10} << i / 200 % 5;  // each length has its own trials
      Request request;
      request.is_send = rank == 0;
      request.member = 1 - rank;
      request.envelope = {1, 0, 0};
      request.data = {at, n, {}};
      std::memset(at, rank == 0 ? i : ~i, n);
      bootstrap.meet();
      if (rank == 1) {
        m.start(request);
        m.wait(request);
        if (request.received != n || at[0] != std::byte(i) || at[n - 1] != std::byte(i)) return false;
        received.store(i + 1, std::memory_order_release);
        direct = std::max(direct, m.counts().direct);
        continue;
      }
      m.start(request);
      // For good, or until its receiver may just be tired of it.
      const std::uint64_t start = waiting::nanoseconds(),
                          until = i % 2 ? std::uint64_t(150'000 + i % 200 * 1000) : 10'000'000'000;
      while (received.load(std::memory_order_acquire) != i + 1 && waiting::nanoseconds() - start < until)
        processor::pause();
      if (i % 2 == 0 && received.load() != i + 1) return false;
      m.wait(request);
    }
    bootstrap.meet();
    return rank == 0 || direct > 5;
  });
  EXPECT_EQ(0, result);
}

}  // namespace
}  // namespace nearfield::messages
