// Description of a process's memory, for its peers. Only the mapper that made it interprets it; others only compare it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace nearfield::reach {

class RemoteBuffer {
 public:
  constexpr RemoteBuffer() = default;  // out of reach
  // `generation` of the memory, below 2^16; `offset` in it; `bytes`, below 2^40: its length, for mappers that attach
  // exactly the described bytes, otherwise 0.
  constexpr RemoteBuffer(std::size_t mapper, std::uint64_t generation, std::uint64_t offset, std::uint64_t bytes = 0)
      : what_((mapper + first_mapper) << 56 | generation << 40 | bytes), offset_(offset) {}
  static constexpr std::uint64_t most_generations = 0xffff, most_bytes = (std::uint64_t{1} << 40) - 1;
  static constexpr RemoteBuffer nothing() {
    RemoteBuffer place;
    place.what_ = no_bytes << 56;
    return place;
  }

  constexpr bool reachable() const { return what_ != 0; }
  // false: there are no bytes, or they are out of reach
  constexpr bool anything() const { return what_ >> 56 >= first_mapper; }
  // pre: anything()
  constexpr std::size_t mapper() const { return (what_ >> 56) - first_mapper; }
  constexpr std::uint64_t generation() const { return what_ >> 40 & 0xffff; }
  constexpr std::uint64_t bytes() const { return what_ & most_bytes; }
  constexpr std::uint64_t offset() const { return offset_; }
  // Mapper and generation; remote buffers with the same one may lie in the same region.
  constexpr std::uint64_t memory() const { return what_ >> 40; }
  static constexpr std::uint64_t first_mapper = 2;

 private:
  static constexpr std::uint64_t no_bytes = 1;
  std::uint64_t what_ = 0, offset_ = 0;
};

// Memory of a peer that is attached in one piece: all of a generation, or the pages of one remote buffer. It depends on
// the remote buffer alone, so all members compute the same.
struct Region {
  std::uint64_t memory = 0;          // RemoteBuffer::memory
  std::uint64_t begin = 0, end = 0;  // offsets
  static constexpr std::uint64_t everything = ~std::uint64_t{0};
  static constexpr Region of(const RemoteBuffer& place) {
    constexpr std::uint64_t page = 4096;
    if (!place.bytes()) return {place.memory(), 0, everything};
    return {place.memory(), place.offset() / page * page, (place.offset() + place.bytes() + page - 1) / page * page};
  }
  constexpr std::size_t mapper() const { return (memory >> 16) - RemoteBuffer::first_mapper; }
  constexpr std::uint64_t generation() const { return memory & 0xffff; }
  constexpr bool holds(const RemoteBuffer& place) const {
    return place.memory() == memory && place.offset() >= begin && place.offset() < end &&
           place.bytes() <= end - place.offset();
  }
};

}  // namespace nearfield::reach
