// What the heap makes of the limits that this process has.
#include "heap/limits.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "heap/heap.hpp"
#include "tests/heap/helpers.hpp"

using namespace nearfield::heap::testing;
using nearfield::heap::memory_limit;

namespace {

// A directory with files of the kernel's, such as /proc/self/cgroup.
class Root {
 public:
  Root() : path_(std::filesystem::temp_directory_path() / ("nearfield-root-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root& file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((path_ / path).parent_path());
    std::ofstream(path_ / path) << text << "\n";
    return *this;
  }
  const char* path() const { return path_.c_str(); }
  std::size_t limit() const { return memory_limit(path()); }

 private:
  std::filesystem::path path_;
};

const std::size_t machine = std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));

TEST(MemoryLimit, IsTheMachinesWithoutGroups) { EXPECT_EQ(Root().limit(), machine); }

TEST(MemoryLimit, IsTheLeastAlongTheGroupsPath) {
  Root root;
  root.file("proc/self/cgroup", "0::/system.slice/slurm/job_7/step_0");
  root.file("sys/fs/cgroup/system.slice/memory.max", "max");
  EXPECT_EQ(root.limit(), machine);
  root.file("sys/fs/cgroup/system.slice/slurm/job_7/step_0/memory.max", "536870912");
  EXPECT_EQ(root.limit(), 512u << 20);
  root.file("sys/fs/cgroup/system.slice/slurm/job_7/memory.max", "268435456");
  EXPECT_EQ(root.limit(), 256u << 20);
  root.file("sys/fs/cgroup/system.slice/slurm/job_70/memory.max", "1048576");  // another job's
  EXPECT_EQ(root.limit(), 256u << 20);
}

TEST(MemoryLimit, OfVersionOne) {
  Root root;
  root.file("proc/self/cgroup", "9:name=systemd:/\n4:hugetlb,memory:/slurm/uid_0/job_7\n1:cpu:/x\n0::/");
  root.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(root.limit(), machine);
  root.file("sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes", "134217728");
  EXPECT_EQ(root.limit(), 128u << 20);
}

TEST(MemoryLimit, InAContainerIsTheMountPoints) {
  Root root;
  root.file("proc/self/cgroup", "0::/docker/0123456789");  // of the machine's tree, which is not to be seen here
  root.file("sys/fs/cgroup/memory.max", "1073741824");
  EXPECT_EQ(root.limit(), 1u << 30);
}

TEST(Limits, AddressSpaceIsScarceWhereItIsLimited) {
  EXPECT_TRUE(child_succeeds([] {
    const rlimit limit = {std::size_t{8} << 30, RLIM_INFINITY};
    return !nearfield::heap::address_space_is_scarce() && setrlimit(RLIMIT_AS, &limit) == 0 &&
           nearfield::heap::address_space_is_scarce();
  }));
}

TEST(Limits, AddressSpaceIsScarceWhereAllOfItIsCounted) {
  Root root;
  EXPECT_FALSE(nearfield::heap::address_space_is_scarce(root.file("proc/sys/vm/overcommit_memory", "1").path()));
  EXPECT_TRUE(nearfield::heap::address_space_is_scarce(root.file("proc/sys/vm/overcommit_memory", "2").path()));
}

TEST(Limits, NoFileIsMadeLongerThanAllowed) {
  EXPECT_TRUE(child_succeeds([] {
    const rlimit limit = {std::size_t{1200} << 20, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit)) return false;
    void* const p = std::malloc(1 << 20);  // of a new region: SIGXFSZ would end this child
    nearfield_heap_view view;
    return p && nearfield_heap_current(&view) == 0 && view.size <= limit.rlim_cur;
  }));
}

TEST(Limits, ThatArriveCountWhatIsAllocated) {
  EXPECT_TRUE(child_succeeds([] {
    constexpr std::size_t bytes = 20 << 20;
    auto* const before = static_cast<char*>(std::malloc(bytes));
    std::memset(before, 'b', bytes);
    rlimit limit = {std::size_t{8} << 30, RLIM_INFINITY};
    if (status_bytes("VmSize") < limit.rlim_cur || setrlimit(RLIMIT_AS, &limit)) return false;
    const std::size_t taken = status_bytes("VmSize");
    limit.rlim_cur = taken + (256 << 20);
    if (taken > std::size_t{2} << 30 || prlimit64(getpid(), RLIMIT_AS, reinterpret_cast<rlimit64*>(&limit), nullptr))
      return false;
    int had = 0;
    while (had < 100 && std::malloc(bytes)) ++had;
    const bool kept = nearfield_heap_contains(before, bytes) && before[bytes - 1] == 'b';
    std::free(before);
    void* const again = std::malloc(bytes);
    const bool obeyed = again && !std::malloc(bytes);
    limit.rlim_cur = RLIM_INFINITY;
    const bool lifted = setrlimit(RLIMIT_AS, &limit) == 0 && std::malloc(bytes);
    return had >= 11 && had < 24 && kept && obeyed && lifted;  // 12, and what the next allocator has had
  }));
}

TEST(Limits, OfAChildThatRunsInOurMemoryAreItsOwn) {
  void* const block = std::malloc(1 << 20);
  nearfield_heap_view before, after;
  ASSERT_EQ(nearfield_heap_current(&before), 0);
  const pid_t child = vfork();
  if (child == 0) {
    const rlimit limit = {std::size_t{8} << 30, RLIM_INFINITY};
    _exit(setrlimit(RLIMIT_AS, &limit));
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(nearfield_heap_current(&after), 0);
  EXPECT_EQ(after.size, before.size);
  std::free(block);
}

// The limit keeps the machine alive where this fails.
TEST(Limits, LockingAllMemoryTakesWhatIsAllocated) {
  EXPECT_TRUE(child_succeeds([] {
    const rlimit limit = {std::size_t{1} << 30, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit)) return false;
    void* const p = std::malloc(32 << 20);
    if (mlockall(MCL_CURRENT | MCL_FUTURE)) return errno == EPERM || errno == ENOMEM;  // not allowed here
    void* const q = std::malloc(32 << 20);
    const std::size_t resident = status_bytes("VmRSS");
    return p && q && resident > (32u << 20) && resident < (500u << 20);
  }));
}

}  // namespace
