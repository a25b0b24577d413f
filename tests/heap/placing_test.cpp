// On which NUMA nodes pages of the heap are made, as the kernel tells it.
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include "tests/heap/helpers.hpp"

using namespace nearfield::heap::testing;

namespace {

constexpr std::size_t mib = 1 << 20;

// The policy of the page at `at`; -1 where the kernel does not say.
int policy(const void* at) {
  int mode = -1;
  unsigned long nodes[16];
  return syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof nodes + 1, at, MPOL_F_ADDR) ? -1 : mode;
}

nearfield_heap_placement first_node(std::uint64_t most) {
  nearfield_heap_placement placement{};
  placement.nodes[0] = 1;
  placement.most = most;
  placement.rest = -1;
  return placement;
}

TEST(Placing, HoldsForWhatIsThereForWhatComesAndAfterAFork) {
  // The policy stays with the process: in a child, so that other tests have none.
  EXPECT_TRUE(child_succeeds([] {
    void* const before = std::malloc(4 * mib);
    std::memset(before, 1, 4 * mib);
    if (policy(before) == -1) return true;  // containers deny it
    const nearfield_heap_placement placement = first_node(UINT64_MAX);
    if (policy(before) != MPOL_DEFAULT || nearfield_heap_place(&placement) != 0) return false;
    void* const after = std::malloc(4 * mib);
    if (policy(before) != MPOL_PREFERRED || policy(after) != MPOL_PREFERRED) return false;
    if (static_cast<char*>(before)[4 * mib - 1] != 1) return false;
    if (!child_succeeds([] { return true; })) return false;
    return policy(std::malloc(4 * mib)) == MPOL_PREFERRED;
  }));
}

TEST(Placing, EndsAtItsLimit) {
  EXPECT_TRUE(child_succeeds([] {
    auto* const block = static_cast<char*>(std::calloc(64, mib));
    nearfield_heap_view view;
    if (policy(block) == -1 || nearfield_heap_current(&view) != 0) return policy(block) == -1;
    auto* const base = static_cast<char*>(view.base);
    const nearfield_heap_placement placement = first_node(8 * mib + 1);
    return nearfield_heap_place(&placement) == 0 && policy(base + 8 * mib - 1) == MPOL_PREFERRED &&
           policy(base + 8 * mib) == MPOL_DEFAULT;
  }));
}

TEST(Placing, SaysWhenTheKernelRefuses) {
  EXPECT_TRUE(child_succeeds([] {
    std::free(std::malloc(4 * mib));
    std::free(std::malloc(4 * mib));
    nearfield_heap_view view;
    nearfield_heap_placement placement{};
    placement.nodes[15] = std::uint64_t{1} << 63;  // node 1023
    placement.most = UINT64_MAX;
    placement.rest = -1;
    return nearfield_heap_current(&view) != 0 || nearfield_heap_place(&placement) == -1;
  }));
}

}  // namespace
