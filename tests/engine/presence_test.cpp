// Names by which processes tell that they take part.
#include "engine/team/presence.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
  EXPECT_FALSE(Presence(job, 2).announce());  // that name is taken
  end(third);
  EXPECT_EQ(mine.absentees(4), (std::vector{1, 2, 3}));
  end(first);
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
