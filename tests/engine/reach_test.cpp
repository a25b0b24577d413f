// Ways of reaching another process's memory: one body for all rows of the table. And what processes pass each other.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "engine/reach/attachments.hpp"
#include "tests/engine/child.hpp"
#include "tests/engine/file_memory.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::reach {
namespace {

using team::Process;
using testing::PageBootstrap;
using testing::run_processes;

// ---------------------------------------------------------------- ways

constexpr std::size_t length = 40'100;  // the shared heap serves what is long

// Memory that peers reach by that way; nullptr: there is none here.
std::byte* memory_for(Process& process, std::size_t mapper) {
  const MemoryMapper* const row = mappers()[mapper];
  if (row == &segment_mapper) {
    auto offset = process.arena().allocate(length, 64);
    return offset ? process.segment().base() + *offset : nullptr;
  }
  if (row != &heap_mapper) return testing::file_memory(length);
  auto* const any = new std::byte[length];
  return process.reach().place(any, length, 1u << mapper).reachable() ? any : nullptr;
}

// What a process tells the other one of its memory.
struct AdvertisedMemory {
  Card card;
  RemoteBuffer place;
  std::uint64_t address;
};

enum Outcome { good, bad, none };

int lowest_free_descriptor() {
  const int fd = dup(STDERR_FILENO);
  close(fd);
  return fd;
}

// Two processes meet; each stores into the other's memory and loads from it, by that way alone.
Outcome use(Process& process, PageBootstrap& bootstrap, int rank, std::size_t w) {
  const MemoryMapper& mapper = *mappers()[w];
  Peers& peers = process.reach();
  std::byte* const own = memory_for(process, w);
  AdvertisedMemory mine{peers.card(), own ? peers.place(own, length, 1u << w) : RemoteBuffer(), std::uint64_t(own)},
      advertised[2];
  if (own) std::fill_n(own, length, std::byte(rank + 1));
  bootstrap.allgather(&mine, advertised, sizeof mine);
  const AdvertisedMemory& theirs = advertised[1 - rank];
  if (!(mine.card.mappers & theirs.card.mappers & 1u << w) || !mine.address || !theirs.address) return none;
  const std::lock_guard lock(peers.mutex);
  const auto late = [begin = std::chrono::steady_clock::now()] {
    sched_yield();
    return std::chrono::steady_clock::now() - begin > std::chrono::seconds(20);
  };
  while (auto sent = peers.send_segment(theirs.card.address)) {
    if (*sent) break;
    if (late()) return std::fprintf(stderr, "a letter cannot be sent: %s\n", std::strerror(errno)), bad;
  }
  while (!peers.find(theirs.card.address.identity()))
    if (!peers.collect() || late()) return bad;
  Peer& peer = peers.meet(theirs.card);
  if (!(peer.mappers & 1u << w)) return bad;
  std::vector<std::byte> seen(length);
  const std::vector<std::byte> put(length / 2, std::byte(rank + 11));
  std::shared_ptr<const void> keep;
  if (mapper.attach) {
    const Region region = Region::of(theirs.place);
    const int lowest = lowest_free_descriptor();
    while (mapper.offer) {
      auto passed = mapper.offer(peers, peer, Region::of(mine.place));
      if (!passed || late()) return bad;
      if (*passed) break;
    }
    if (lowest_free_descriptor() != lowest) return std::fputs("a descriptor stays open\n", stderr), bad;
    Attached attached;
    while (!late()) {
      attached = peers.attach(peer, region);
      if (attached.state != Attached::State::not_yet) break;
      if (!peers.collect()) return bad;
    }
    if (attached.state != Attached::State::yes) return std::fprintf(stderr, "%s\n", attached.why.c_str()), bad;
    std::byte* const at = attached.at + (theirs.place.offset() - region.begin);
    std::memcpy(seen.data(), at, length);
    bootstrap.meet();
    std::memcpy(at, put.data(), put.size());
    // Again, and a part of it: attached already.
    if (peers.attach(peer, region).at != attached.at) return bad;
  } else {
    if (!mapper.read(peer, seen.data(), theirs.address, length)) return bad;
    bootstrap.meet();
    if (!mapper.write(peer, put.data(), theirs.address, put.size())) return bad;
    if (mapper.read(peer, seen.data(), 8, 8)) return bad;  // nobody has memory there
  }
  bootstrap.meet();
  const auto is = [](const std::byte* at, std::size_t bytes, int value) {
    return std::all_of(at, at + bytes, [&](std::byte each) { return each == std::byte(value); });
  };
  if (mapper.part) mapper.part(peers, peer);
  const std::size_t half = length / 2;
  return is(seen.data(), length, 2 - rank) && is(own, half, 12 - rank) && is(own + half, length - half, rank + 1) ? good
                                                                                                                  : bad;
}

class Mappers : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Mappers, LoadAndStoreAPeersMemory) {
  if (mappers()[GetParam()] == &cma_mapper && !testing::cma_works()) GTEST_SKIP() << "process_vm_readv is denied here";
  auto* const outcome =
      static_cast<std::atomic<int>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const int failed = run_processes(2, 60, [&](Process& process, PageBootstrap& bootstrap, int rank, int) {
    const Outcome what = use(process, bootstrap, rank, GetParam());
    if (what == none) outcome->store(none);
    return what != bad;
  });
  EXPECT_EQ(failed, 0);
  if (outcome->load() == none) GTEST_SKIP() << mappers()[GetParam()]->name << " is not to be had here";
}
INSTANTIATE_TEST_SUITE_P(All, Mappers, ::testing::Range(std::size_t{0}, mapper_count),
                         [](const auto& info) { return mappers()[info.param]->name; });

TEST(Mappers, CanBeLeftOut) {
  const auto bit = [](const MemoryMapper& mapper) { return 1u << index_of(mapper); };
  auto mask = parse_left_out("^cma,^xpmem");
  ASSERT_TRUE(mask);
  EXPECT_EQ(*mask, bit(cma_mapper) | bit(xpmem_mapper));
  mask = parse_left_out("^mapped");
  ASSERT_TRUE(mask);
  EXPECT_EQ(*mask, bit(segment_mapper) | bit(heap_mapper));
  auto wrong = parse_left_out("^knem");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("^cma"), std::string::npos);
}

TEST(Mappers, ThatAreLeftOutReachNothing) {
  Settings settings;
  settings.ways_left_out = (1u << mapper_count) - 1;
  const int failed = run_processes(
      1, 60,
      [](Process& process, PageBootstrap&, int, int) {
        auto offset = process.arena().allocate(100, 64);
        return offset && !process.reach().place(process.segment().base() + *offset, 100, ~0u).reachable() &&
               process.reach().card().mappers == 0;
      },
      settings);
  EXPECT_EQ(failed, 0);
}

TEST(Places, LieInRegions) {
  const RemoteBuffer piece(2, 0, 3 * 4096 + 5, 4096), whole(1, 7, 12345);
  const Region pages = Region::of(piece), all = Region::of(whole);
  EXPECT_EQ(pages.begin, 3 * 4096u);
  EXPECT_EQ(pages.end, 5 * 4096u);
  EXPECT_TRUE(pages.holds(piece));
  EXPECT_TRUE(pages.holds(RemoteBuffer(2, 0, 3 * 4096, 2 * 4096)));
  EXPECT_FALSE(pages.holds(RemoteBuffer(2, 0, 3 * 4096, 2 * 4096 + 1)));
  EXPECT_FALSE(pages.holds(RemoteBuffer(2, 0, 5 * 4096, 1)));
  EXPECT_TRUE(all.holds(RemoteBuffer(1, 7, ~std::uint64_t{0} >> 16)));
  EXPECT_FALSE(all.holds(RemoteBuffer(1, 8, 12345)));
  EXPECT_FALSE(all.holds(RemoteBuffer(2, 7, 12345)));
  EXPECT_EQ(all.mapper(), 1u);
  EXPECT_EQ(all.generation(), 7u);
  EXPECT_FALSE(RemoteBuffer().reachable());
  EXPECT_TRUE(RemoteBuffer::nothing().reachable());
  EXPECT_FALSE(RemoteBuffer::nothing().anything());
}

// ---------------------------------------------------------------- letters and notes

TEST(InFlightBuffers, ShowsWhatIsNoted) {
  InFlightBuffers buffers;
  static char bytes[1000];
  auto seen = [&] {
    std::map<const void*, std::size_t> all;
    buffers.visit([&](const void* at, std::size_t length) { all[at] = length; });
    return all;
  };
  InFlightBuffers::Slot* const empty = buffers.note(bytes, 0);
  std::vector<InFlightBuffers::Slot*> slots;
  for (int i = 0; i < 1000; ++i) slots.push_back(buffers.note(bytes + i, 7));
  EXPECT_EQ(std::count(slots.begin(), slots.end(), empty), 0);  // taken, though it holds nothing
  EXPECT_EQ(seen().size(), 1000u);
  for (int i = 0; i < 1000; i += 2) buffers.put_back(slots[i]);
  EXPECT_EQ(slots[0], nullptr);
  EXPECT_EQ(seen().size(), 500u);
  EXPECT_EQ(seen().count(bytes + 1), 1u);
  for (int i = 0; i < 1000; i += 2) slots[i] = buffers.note(bytes + i, 9);
  EXPECT_EQ(seen()[bytes + 2], 9u);
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(std::unique(slots.begin(), slots.end()), slots.end());
}

TEST(Mailbox, PassesASegmentToAnotherProcess) {
  auto mine = Mailbox::open();
  ASSERT_TRUE(mine) << mine.error().text;
  const MailboxAddress parent = mine->address();
  const pid_t child = testing::fork_child([&] {
    auto own = Mailbox::open();
    auto segment = memory::Segment::create(16 << 20);
    if (!own || !segment || !segment->reserve(0, 4096)) return 1;
    std::strcpy(reinterpret_cast<char*>(segment->base()), "hello");
    auto sent = own->send(parent, segment->fd(), 0);
    return sent && *sent == Mailbox::Sent::yes ? 0 : 2;
  });
  ASSERT_EQ(testing::end_of(child), 0);
  auto arrived = mine->receive();
  ASSERT_TRUE(arrived && *arrived);
  EXPECT_EQ((*arrived)->pid, child);
  auto peer = memory::PeerSegment::map((*arrived)->fd);
  ASSERT_TRUE(peer);
  EXPECT_STREQ(reinterpret_cast<char*>(peer->base()), "hello");
  auto nothing = mine->receive();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
}

TEST(Mailbox, DropsAnotherUsersSegment) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  auto mine = Mailbox::open();
  ASSERT_TRUE(mine);
  const MailboxAddress parent = mine->address();
  const pid_t child = testing::fork_child([&] {
    if (setuid(65534)) return 1;
    auto own = Mailbox::open();
    auto segment = memory::Segment::create(16 << 20);
    if (!own || !segment) return 2;
    auto sent = own->send(parent, segment->fd(), 0);
    return sent ? 0 : 3;
  });
  ASSERT_EQ(testing::end_of(child), 0);
  auto arrived = mine->receive();
  ASSERT_TRUE(arrived);
  EXPECT_FALSE(*arrived);
  EXPECT_EQ(mine->refused(), 1u);
}

TEST(Mailbox, DropsWhatLacksTheSecret) {
  auto mine = Mailbox::open(), other = Mailbox::open();
  auto segment = memory::Segment::create(16 << 20);
  ASSERT_TRUE(mine && other && segment);
  const int lowest = dup(0);  // nothing stays open of what is dropped
  close(lowest);
  MailboxAddress guessed = mine->address();
  guessed.secret[1] ^= 1;
  ASSERT_TRUE(other->send(guessed, segment->fd(), 0));
  std::memset(guessed.secret, 0, sizeof guessed.secret);
  ASSERT_TRUE(other->send(guessed, segment->fd(), 1));
  auto arrived = mine->receive();
  ASSERT_TRUE(arrived);
  EXPECT_FALSE(*arrived);
  EXPECT_EQ(mine->refused(), 2u);
  ASSERT_TRUE(other->send(mine->address(), segment->fd(), 7));
  arrived = mine->receive();
  ASSERT_TRUE(arrived && *arrived);
  EXPECT_EQ((*arrived)->from, other->address().identity());
  EXPECT_EQ((*arrived)->what, 7u);
  EXPECT_EQ((*arrived)->fd, lowest);
  close((*arrived)->fd);
}

TEST(Segment, IsOpenedOutOfItsOwnersTable) {
  auto segment = memory::Segment::create(16 << 20);
  ASSERT_TRUE(segment && segment->reserve(0, 4096));
  segment->base()[5] = std::byte{9};
  const pid_t owner = getpid();
  const pid_t child = testing::fork_child([&] {
    auto opened = memory::PeerSegment::open(owner, segment->fd());
    return opened && opened->base()[5] == std::byte{9};
  });
  EXPECT_EQ(testing::end_of(child), 0);
  EXPECT_FALSE(memory::PeerSegment::open(owner, 0));
  EXPECT_FALSE(memory::PeerSegment::open(owner, 9999));
}

TEST(Mailbox, SaysAgainWhenTheQueueIsFull) {
  auto reader = Mailbox::open(), writer = Mailbox::open();
  auto segment = memory::Segment::create(16 << 20);
  ASSERT_TRUE(reader && writer && segment);
  int sent = 0;
  bool full = false;
  while (sent < 5000 && !full) {
    auto result = writer->send(reader->address(), segment->fd(), 0);
    ASSERT_TRUE(result) << result.error().text;
    if (*result == Mailbox::Sent::again) full = true;
    else ++sent;
  }
  EXPECT_TRUE(full);
  int received = 0;
  for (;;) {
    auto arrived = reader->receive();
    ASSERT_TRUE(arrived);
    if (!*arrived) break;
    close((*arrived)->fd);
    ++received;
  }
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace nearfield::reach
