// Where lines of the log go, and what stands before them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/base/files.hpp"
#include "engine/base/log_line.hpp"

namespace nearfield::early {
namespace {

Speaker someone(int rank = 3) {
  Speaker who;
  std::strcpy(who.host, "node7");
  who.process = 4711;
  who.rank = rank;
  return who;
}

// The path, or the complaint behind a "!".
std::string expanded(const char* pattern, const Speaker& who = someone(), std::size_t room = 4096) {
  std::string path(room, '\0');
  const char* const wrong = expand_pattern(pattern, who, path.data(), room);
  return wrong ? std::string("!") + wrong : path.c_str();
}

TEST(LogFile, StandsForHostProcessAndRank) {
  EXPECT_EQ(expanded("plain"), "plain");
  EXPECT_EQ(expanded("%h.%p"), "node7.4711");
  EXPECT_EQ(expanded("/logs/%r/%h-%r.log"), "/logs/3/node7-3.log");
  EXPECT_EQ(expanded("%r", someone(0)), "0");
  EXPECT_EQ(expanded("%r", someone(-1)), "unknown");
  EXPECT_EQ(expanded("100%%"), "100%");
}

TEST(LogFile, OfAPatternThatCannotBeUnderstoodIsRefused) {
  for (const char* bad : {"%", "a%", "%x", "%h%", "%H", "% h", "%1r"}) EXPECT_EQ(expanded(bad)[0], '!') << bad;
}

TEST(LogFile, NeverExceedsItsRoom) {
  const std::string longest = "/some/" + std::string(40, 'x') + "/node7.4711";
  const std::string pattern = "/some/" + std::string(40, 'x') + "/%h.%p";
  for (std::size_t room = 1; room < 80; ++room) {
    std::string path(room + 8, '#');
    const char* const wrong = expand_pattern(pattern.c_str(), someone(), path.data(), room);
    EXPECT_EQ(wrong == nullptr, longest.size() < room);
    EXPECT_EQ(path.substr(room), "########");
    EXPECT_EQ(wrong ? longest : std::string(path.c_str()), longest);
  }
}

TEST(LogFile, LinesAreAddedAndTellWhoSpeaks) {
  char line[256];
  EXPECT_EQ(std::string(line, begin_line(line, someone())), "nearfield: node7 rank 3: ");
  EXPECT_EQ(std::string(line, begin_line(line, someone(-1))), "nearfield: node7 process 4711: ");

  std::string directory = ::testing::TempDir() + "log_test_XXXXXX";
  ASSERT_TRUE(mkdtemp(directory.data()));
  const std::string pattern = directory + "/%r", file = directory + "/3";
  bool complained = false;
  write_line("one\n", 4, someone(), pattern.c_str(), complained);
  write_line("two\n", 4, someone(), pattern.c_str(), complained);
  std::ifstream read(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(read), {}), "one\ntwo\n");
  EXPECT_FALSE(complained);
  unlink(file.c_str());
  rmdir(directory.c_str());
}

TEST(LogFile, ThatCannotBeHadLeavesLinesOnStandardErrorAndIsNamedOnce) {
  for (const char* const pattern : {"/nonexistent/%r", "%x", "/"}) {
    bool complained = false;
    ::testing::internal::CaptureStderr();
    write_line("one\n", 4, someone(), pattern, complained);
    write_line("two\n", 4, someone(), pattern, complained);
    const std::string all = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(complained);
    const std::size_t end = all.find('\n');
    EXPECT_EQ(all.substr(end + 1), "one\ntwo\n") << all;
    EXPECT_NE(all.find(std::string("NEARFIELD_LOG_FILE=") + pattern + ": "), all.npos) << all;
  }
}

// In a directory where others write, what we are about to make may be a link of theirs already.
TEST(Files, AreNotWrittenThroughLinks) {
  const std::string path = ::testing::TempDir() + "nearfield-files-" + std::to_string(getpid());
  const std::string other = path + "-other", part = path + ".part";
  std::ofstream(other) << "theirs";
  ASSERT_EQ(symlink(other.c_str(), part.c_str()), 0);
  EXPECT_TRUE(write_whole(path, "ours"));
  EXPECT_EQ(contents(path), "ours");
  EXPECT_EQ(contents(other), "theirs");
  std::ofstream(part) << "of a process that was killed, and longer";
  EXPECT_TRUE(write_whole(path, "again"));
  EXPECT_EQ(contents(path), "again");
  EXPECT_NE(access(part.c_str(), F_OK), 0);
  for (const std::string& each : {path, other}) unlink(each.c_str());
}

}  // namespace
}  // namespace nearfield::early
