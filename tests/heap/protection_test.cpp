// What programs say about pages of their blocks: mprotect and madvise, across forks and from one owner to the next.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/heap/helpers.hpp"

using namespace nearfield::heap::testing;

namespace {

constexpr std::size_t mib = 1 << 20;

bool readable(const void* at) {
  int ends[2];
  if (pipe(ends)) return false;
  const bool good = write(ends[1], at, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return good;
}

TEST(Protection, SurvivesAFork) {
  constexpr std::size_t bytes = 1 * mib, page = 4096;
  auto* const p = static_cast<char*>(std::aligned_alloc(page, bytes));
  std::memset(p, 1, bytes);
  ASSERT_EQ(mprotect(p + 4 * page, page, PROT_NONE), 0);
  ASSERT_EQ(mprotect(p + 8 * page, page, PROT_READ), 0);
  auto as_before = [&] {
    const int zero = open("/dev/zero", O_RDONLY);
    const bool good = !readable(p + 4 * page) && readable(p + 8 * page) && read(zero, p + 8 * page, 1) < 0 &&
                      readable(p + 5 * page) && p[8 * page] == 1;
    close(zero);
    return good;
  };
  ASSERT_TRUE(as_before());
  EXPECT_TRUE(child_succeeds(as_before));
  EXPECT_TRUE(as_before());
  EXPECT_TRUE(child_succeeds(as_before));
  ASSERT_EQ(mprotect(p + 4 * page, page, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(p[4 * page], 1);
  std::free(p);
}

TEST(Protection, EndsWithTheBlock) {
  constexpr std::size_t bytes = 1 * mib, page = 4096;
  for (int i = 0; i < 4; ++i) {
    auto* const p = static_cast<char*>(std::aligned_alloc(page, bytes));
    std::memset(p, 1, bytes);
    ASSERT_EQ(mprotect(p, page, PROT_NONE), 0);
    std::free(p);
  }
}

TEST(Discarding, GivesZero) {
  constexpr std::size_t bytes = 4 * mib, page = 4096;
  auto* const p = static_cast<char*>(std::aligned_alloc(page, bytes));
  auto discarded = [&](char* from, std::size_t length) {
    std::memset(p, 1, bytes);
    bool good = madvise(from, length, MADV_DONTNEED) == 0;
    for (std::size_t i = 0; i < bytes; ++i) good &= p[i] == (p + i < from || p + i >= from + length);
    std::memset(p, 1, bytes);
    return good;
  };
  EXPECT_TRUE(discarded(p, bytes));
  EXPECT_TRUE(discarded(p + page, 3 * page));
  EXPECT_EQ(madvise(p + 1, page, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(madvise(p, page, MADV_REMOVE), -1) << "private memory is of no file";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(p[0], 1);
  // Private by a fork, in the parent and in the child, with a child that still sees the old contents.
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char token;
    (void)!read(go[0], &token, 1);
    const bool kept = p[page] == 1 && p[bytes - 1] == 1;
    _exit(kept && discarded(p + 2 * page, mib) ? 0 : 1);
  }
  EXPECT_TRUE(discarded(p, 2 * mib));
  EXPECT_TRUE(discarded(p + 16 * page, 2 * mib));
  (void)!write(go[1], "x", 1);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(discarded(p + 5 * page, 3 * mib));
  close(go[0]);
  close(go[1]);
  std::free(p);
}

}  // namespace
