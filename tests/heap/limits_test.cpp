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
