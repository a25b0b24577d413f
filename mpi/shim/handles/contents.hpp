// Contents of a derived type, read back from the host: numbers that identify it. layouts.cpp looks up an equal type
// that has been flattened before, or flattens them.
//
//   node    combiner, extent, length of the node, number of numbers, number of addresses, numbers (counts of elements),
//           addresses (bytes), nodes of the old types
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
  MPI_Datatype predefined() const { return (MPI_Datatype)at_[head]; }  // pre: predefined(combiner())
  Node first_child() const { return Node(at_ + head + at_[3] + at_[4]); }
  Node next() const { return Node(at_ + at_[2]); }

 private:
  const MPI_Count* at_;
};

bool predefined(int combiner);

enum class Readable : std::uint8_t {
  no,  // not a type
  yes,
  partly  // a constructor of a newer standard, which only the host knows
};
// Appends the node of `type`. Throws std::bad_alloc.
Readable read_contents(MPI_Datatype type, std::vector<MPI_Count>& contents);

}  // namespace nearfield::mpi
