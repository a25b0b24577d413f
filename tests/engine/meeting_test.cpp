// Processes that meet while others, who know no secret, send to their sockets.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fstream>

#include "engine/reach/heap_mapper.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::team {
namespace {

using testing::PageBootstrap;
using testing::run_members;

// The sockets of everybody on this machine that bear our prefix, as any user can see them.
std::vector<std::string> visible_sockets() {
  std::vector<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string row; std::getline(table, row);)
    if (const auto at = row.find("@nearfield-"); at != row.npos) names.push_back(row.substr(at + 1));
  return names;
}

// Fills the queue of every such socket, for ever.
[[noreturn]] void flood() {
  if (geteuid() == 0 && setuid(65534)) _exit(1);
  const int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  std::vector<std::string> names;
  for (unsigned i = 0;; ++i) {
    if (i % 256 == 0) names = visible_sockets();
    for (const std::string& name : names) {
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      std::memcpy(to.sun_path + 1, name.data(), std::min(name.size(), sizeof to.sun_path - 1));
      const auto length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      while (sendto(out, "x", 1, 0, reinterpret_cast<sockaddr*>(&to), length) == 1) continue;
    }
    sched_yield();
  }
}

struct Flood {
  pid_t pid = fork();
  Flood() {
    if (pid == 0) flood();
  }
  ~Flood() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

TEST(Meeting, AFloodOfStrangersDelaysNobody) {
  const Flood one, two;
  const std::uint64_t start = waiting::nanoseconds();
  const int failed = run_members(4, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    for (int i = 0; i < 100 && visible_sockets().size() < 4; ++i) usleep(1000);
    usleep(50'000);
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) std::fprintf(stderr, "%s\n", team.error().text.c_str());
    return bool(team);
  });
  EXPECT_EQ(failed, 0);
  EXPECT_LT(double(waiting::nanoseconds() - start) * 1e-9, 8 * testing::patience);
}

// Puts an unbound socket in the place of the node's: its own queue fills up and is never drained.
bool clog(Process& process) {
  const reach::MailboxAddress& mine = process.reach().mailbox().address();
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_un name{};
    socklen_t length = sizeof name;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) || name.sun_family != AF_UNIX) continue;
    if (std::memcmp(name.sun_path + 1, mine.name, sizeof mine.name) != 0) continue;
    auto filler = reach::Mailbox::open();
    while (*filler->send(mine, process.segment().fd(), 0) == reach::Mailbox::Sent::yes) continue;
    return dup(fd) >= 0 && dup2(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), fd) == fd;
  }
  return false;
}

TEST(Meeting, SegmentsAreFetchedWhereNoLetterComes) {
  const std::uint64_t start = waiting::nanoseconds();
  const int failed = run_members(3, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    if (rank == 1 && !clog(process)) return false;
    return bool(creation::create_team(process, rank, size, bootstrap)) &&
           bool(creation::create_team(process, rank, size, bootstrap));
  });
  EXPECT_EQ(failed, 0);
  EXPECT_LT(double(waiting::nanoseconds() - start) * 1e-9, 8 * testing::patience);
}

// A process that knows the names, and even one secret, replaces nobody.
TEST(Meeting, AKnownPeerIsNeverReplaced) {
  const int failed = run_members(2, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    std::byte* const before = (*team)->segment_of(1 - rank);
    Peer* const peer = (*team)->peer(1 - rank);
    if (rank == 0) {
      // Our own letters once more: another segment under our name, and a heap that is older than what is known.
      auto forged = memory::Segment::create(16 << 20);
      if (!forged || !forged->reserve(0, 4096)) return false;
      const std::size_t heap = reach::index_of(reach::heap_mapper);
      for (const std::uint64_t what : {reach::letter(0, 0), reach::letter(heap, 5), reach::letter(heap, 3)})
        if (*process.reach().mailbox().send(peer->card.address, forged->fd(), what) != reach::Mailbox::Sent::yes)
          return false;
    }
    bootstrap.meet();
    if (rank == 1) {
      const std::lock_guard lock(process.reach().mutex);
      if (!process.reach().collect()) return false;
      if (process.reach().find(peer->card.address.identity()) != peer) return false;
      if (reach::heap_of(*peer).generation != 5) return false;
    }
    return (*team)->segment_of(1 - rank) == before && peer->segment.base() == before;
  });
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace nearfield::team
