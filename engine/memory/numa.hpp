// What the kernel is asked about NUMA nodes: policies of ranges, where their pages are, what nodes have to give. Plain
// system calls: containers deny them, and then each says so.
//
// A policy of a shared mapping belongs to the file, so it also holds for pages that peers or fallocate make.
#pragma once
#include <cstddef>
#include <map>
#include <span>

#include "engine/base/result.hpp"

namespace nearfield::memory::numa {

// Pages of [at, at + bytes) that are made from now on come from that node, or by turns from several; where they are
// full, from the nearest that is not. No node: as if nothing had been asked. `at` and `bytes` are multiples of a page.
//
// Never strictly: where a node that memory is bound to is full, the kernel kills.
Result<void> prefer(void* at, std::size_t bytes, std::span<const int> nodes);

// Makes the pages of the range, whose contents stay. An Error where there is no memory for them.
Result<void> fill(void* at, std::size_t bytes);

struct Census {
  std::map<int, std::size_t> bytes;  // that lie on a node
  std::size_t absent = 0;            // bytes whose pages nobody has made, or this process has not seen yet
};
// Where the pages of the range are.
Result<Census> where(const void* at, std::size_t bytes);

// Bytes that the node can give without reclaiming anything; SIZE_MAX where the system does not tell. `root` stands
// before /sys (tests).
std::size_t room(int node, const std::string& root = "");

}  // namespace nearfield::memory::numa
