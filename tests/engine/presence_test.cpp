// Names by which processes tell that they take part.
#include "engine/team/presence.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/engine/child.hpp"

namespace nearfield::team {
namespace {

// A process that runs `body` and then lives until it is killed.
template <class Body>
pid_t process(Body body) {
  int done[2];
  if (pipe(done)) return -1;
  const pid_t child = testing::fork_child([&] {
    const bool good = body();
    while (write(done[1], &good, 1) == 1) pause();
    return false;
  });
  bool good = false;
  if (read(done[0], &good, 1) != 1 || !good) ADD_FAILURE() << "the process has failed";
  close(done[0]);
  close(done[1]);
  return child;
}

void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Presence, IsSeenByOthersUntilTheProcessEnds) {
  const std::string job = "test " + std::to_string(getpid());
  const Presence mine(job, 0);
  EXPECT_EQ(mine.absentees(4), (std::vector{0, 1, 2, 3}));
  const pid_t first = process([&] { return Presence(job, 0).announce(); });
  const pid_t third = process([&] { return Presence(job, 2).announce(); });
  EXPECT_EQ(mine.absentees(4), (std::vector{1, 3}));
  EXPECT_TRUE(Presence(job + " of another name", 0).absentees(1).size());
  end(third);
  EXPECT_EQ(mine.absentees(4), (std::vector{1, 2, 3}));
  end(first);
}

// Names of abstract sockets that are there and begin so.
std::vector<std::string> names_there(const std::string& prefix) {
  std::ifstream sockets("/proc/net/unix");
  std::vector<std::string> found;
  for (std::string line; std::getline(sockets, line);)
    if (const auto at = line.find("@" + prefix); at != line.npos) found.push_back(line.substr(at + 1));
  return found;
}

int bind_stream(const std::string& name) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return bind(fd, reinterpret_cast<sockaddr*>(&at), length) ? -1 : fd;
}

// By a socket of the same type or of another one, before or for good.
TEST(Presence, SurvivesStrangersWhoHaveTakenItsName) {
  const std::string job = "test " + std::to_string(getpid());
  const Presence mine(job, 0);
  const std::vector<std::string> before = names_there("near-");
  pid_t stranger = process([&] { return Presence(job, 1).announce(); });
  std::string name;
  for (const std::string& each : names_there("near-"))
    if (std::ranges::find(before, each) == before.end() && each.ends_with("-1")) name = each;
  ASSERT_NE(name, "");
  const pid_t first = process([&] { return Presence(job, 1).announce(); });
  end(stranger);
  EXPECT_EQ(mine.absentees(2), std::vector{0});
  end(first);

  const int taken = bind_stream(name);
  ASSERT_GE(taken, 0);
  const pid_t second = process([&] { return Presence(job, 1).announce(); });
  EXPECT_EQ(mine.absentees(2), std::vector{0});
  close(taken);
  EXPECT_EQ(mine.absentees(2), std::vector{0});
  end(second);
  EXPECT_EQ(mine.absentees(2), (std::vector{0, 1}));
}

TEST(Presence, WhoWithdrawsIsThereAllTheSame) {
  const std::string job = "test " + std::to_string(getpid());
  const Presence mine(job, 0);
  const pid_t other = process([&] {
    const Presence its(job, 1);
    if (!its.announce()) return false;
    its.withdraw();
    return true;
  });
  EXPECT_TRUE(mine.has_withdrawn(1));
  EXPECT_FALSE(mine.has_withdrawn(0));
  EXPECT_EQ(mine.absentees(2), std::vector{0});
  end(other);
  EXPECT_FALSE(mine.has_withdrawn(1));
}

}  // namespace
}  // namespace nearfield::team
