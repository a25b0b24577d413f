// NUMA nodes, by system calls: policies of ranges, the nodes of their pages, free memory of nodes. Containers may deny
// these calls; the Error says so.
//
// A policy of a shared mapping belongs to the file, so it also holds for pages that peers or fallocate make.
#pragma once
#include <cstddef>
#include <map>
#include <span>

#include "engine/base/result.hpp"

namespace nearfield::memory::numa {

// Pages of [at, at + bytes) that are made from now on come from that node, or by turns from several; where these are
// full, from the nearest that is not. No node: the default policy. `at` and `bytes` are multiples of a page.
//
// The policy is never strict: the kernel kills a process whose memory is bound to a full node.
Result<void> prefer(void* at, std::size_t bytes, std::span<const int> nodes);

// Makes the pages of the range; contents stay. An Error: there is no memory for them.
Result<void> fill(void* at, std::size_t bytes);

struct Census {
  std::map<int, std::size_t> bytes;  // by node
  std::size_t absent = 0;            // bytes whose pages do not exist, or are not mapped here yet
};
// Counts the bytes of the range by node.
Result<Census> where(const void* at, std::size_t bytes);

// Returns the bytes that the node has free without reclaiming; SIZE_MAX: unknown. `root` precedes /sys (tests).
std::size_t room(int node, const std::string& root = "");

}  // namespace nearfield::memory::numa
