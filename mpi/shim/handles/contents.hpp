// What a derived type is made of, read back from the host: numbers that tell it apart from every other type, with which
// layouts.cpp looks for one that has been flattened before, and which it flattens else.
//
//   node    combiner, extent, length of the node, how many numbers, how many addresses,
//           numbers (counts of elements), addresses (bytes), nodes of the old types
//
// A predefined type's numbers are its handle, which is never freed.
#pragma once
#include <span>
#include <vector>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

class Node {
 public:
  static constexpr std::size_t head = 5;
  explicit Node(const MPI_Count* at) : at_(at) {}
  int combiner() const { return int(at_[0]); }
  std::int64_t extent() const { return at_[1]; }
  std::span<const MPI_Count> numbers() const { return {at_ + head, std::size_t(at_[3])}; }
  std::span<const MPI_Count> addresses() const { return {at_ + head + at_[3], std::size_t(at_[4])}; }
  MPI_Datatype predefined() const { return (MPI_Datatype)at_[head]; }  // pre: it is
  Node first_child() const { return Node(at_ + head + at_[3] + at_[4]); }
  Node next() const { return Node(at_ + at_[2]); }

 private:
  const MPI_Count* at_;
};

bool predefined(int combiner);

enum class Readable : std::uint8_t {
  no,  // not a type
  yes,
  partly  // a constructor of a newer standard: only the host knows what it means
};
// Appends the node of `type`. Throws std::bad_alloc.
Readable read_contents(MPI_Datatype type, std::vector<MPI_Count>& contents);

}  // namespace nearfield::mpi
