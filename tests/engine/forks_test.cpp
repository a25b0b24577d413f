// What a fork does to memory of the program's in the segment (engine/reach/forks.hpp).
#include "engine/reach/forks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/memory/arena.hpp"
#include "engine/reach/peers.hpp"

namespace nearfield::reach {
namespace {

using memory::Component;

constexpr std::size_t page = 4096, pages = 4, used = 1;  // `used`: the page that a peer uses

struct Process {
  memory::Segment segment = std::move(*memory::Segment::create(64 << 20));
  memory::Arena arena{segment, 1 << 20};
  std::unique_ptr<Peers> peers;
  Process() {
    EXPECT_TRUE(segment.reserve(0, 1 << 20));
    auto made = Peers::create(segment, 0);
    EXPECT_TRUE(made);
    peers = std::move(*made);
    watch_forks(arena, *peers);
  }
  ~Process() { forget_forks(*peers); }
  bool reachable(const std::byte* at) const { return peers->place(at, page, ~0u).reachable(); }
};

// Runs `body` in a child, once the parent has done what `first` does; whether it was true.
template <class First, class Body>
bool in_child(First first, Body body) {
  int release[2];
  EXPECT_EQ(0, pipe(release));
  const pid_t child = fork();
  if (child == 0) {
    char token;
    _exit(read(release[0], &token, 1) == 1 && body() ? 0 : 1);
  }
  first();
  EXPECT_EQ(1, write(release[1], "x", 1));
  int status = -1;
  waitpid(child, &status, 0);
  close(release[0]), close(release[1]);
  return status == 0;
}

TEST(Forks, KeepApartWhatNoPeerUses) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "there is one mapping of a segment";
#endif
  Process process;
  auto peer = memory::PeerSegment::map(dup(process.segment.fd()));
  ASSERT_TRUE(peer);
  const auto offset = process.arena.allocate_untouched(pages * page, page, Component::alloc_mem, nullptr, false);
  ASSERT_TRUE(offset);
  std::byte* const block = process.segment.base() + *offset;
  for (std::size_t p = 0; p < pages; ++p) block[p * page] = std::byte(p + 1);
  auto* noted = process.peers->in_flight_buffers.note(block + used * page, page);
  for (int round = 1; round < 3; ++round) {
    const auto before = [&](std::size_t p) { return round == 1 ? std::byte(p + 1) : std::byte(9 + round); };
    EXPECT_TRUE(in_child(
        [&] {
          for (std::size_t p = 0; p < pages; ++p) block[p * page] = std::byte(10 + round);
        },
        [&] {
          bool good = true;
          for (std::size_t p = 0; p < pages; ++p) {
            good &= block[p * page] == before(p);
            block[p * page] = std::byte{99};
          }
          process.arena.free(*offset);  // is the parent's
          return good && !process.arena.allocate_untouched(page, page, Component::alloc_mem, nullptr, false);
        }));
    for (std::size_t p = 0; p < pages; ++p) {
      EXPECT_EQ(block[p * page], std::byte(10 + round)) << p;
      EXPECT_EQ(process.reachable(block + p * page), p == used);
    }
    EXPECT_EQ(peer->base()[*offset + used * page], std::byte(10 + round));
    EXPECT_EQ(peer->base()[*offset], std::byte{1});
  }
  process.peers->in_flight_buffers.put_back(noted);
  process.arena.free(*offset);
  const auto again = process.arena.allocate_untouched(pages * page, page, Component::alloc_mem, nullptr, false);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *offset);
  for (std::size_t p = 0; p < pages; ++p) {
    block[p * page] = std::byte{50};
    EXPECT_TRUE(process.reachable(block + p * page));
    EXPECT_EQ(peer->base()[*offset + p * page], std::byte{50});
  }
}

TEST(Forks, LeaveWhatIsNotTheProgramsShared) {
  Process process;
  const auto offset = process.arena.allocate(page, page, Component::windows);
  ASSERT_TRUE(offset);
  std::byte* const block = process.segment.base() + *offset;
  EXPECT_TRUE(in_child([] {},
                       [&] {
                         *block = std::byte{7};
                         return true;
                       }));
  EXPECT_EQ(*block, std::byte{7});
  EXPECT_TRUE(process.reachable(block));
}

}  // namespace
}  // namespace nearfield::reach
