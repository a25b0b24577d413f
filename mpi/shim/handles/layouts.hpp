// From the host's datatypes to layouts (engine/layout). Every derived type is flattened once, at its first message, and
// kept as an attribute of the type; a cache per thread saves the look-up.
//
//   a thread that looks                            the type goes (forget_type)
//   loads the epoch (acquire)                      raises the epoch (acquire and release)
//   same type, same epoch: what the cache holds    deletes what the attribute holds
//   else the attribute, or makes it; caches both   layouts in use stay: they are shared
#pragma once
#include <atomic>
#include <memory>

#include "engine/layout/layout.hpp"
#include "mpi/shim/handles/types.hpp"

namespace nearfield::mpi {

// The layout of a datatype, wherever it lies in memory.
struct TypeLayout {
  layout::View view;
  std::uint64_t size = 0;  // bytes of one element
  bool described = true;   // false: that takes too many runs; the host packs its data (packing.hpp)
  std::shared_ptr<const void> keep;
  // Whether the host has said that the type is committed (collectives/alone.cpp), which it then is for good.
  mutable std::atomic<bool> committed{false};
  // The one predefined type that all of it consists of; nullptr: it has several, or one that we do not know.
  const TypeInfo* basic = nullptr;
  // The same with the gaps inside of such elements, where they have any (pairs of a value and an integer).
  std::shared_ptr<const TypeLayout> with_gaps;
};

void bind_layouts();

// nullptr: not a type.
std::shared_ptr<const TypeLayout> find_layout(MPI_Datatype type);

// `count` elements of `type` at `buffer`, for a message.
struct TypedData {
  layout::Data data;
  std::shared_ptr<const TypeLayout> layout;  // none: dense
  bool good = true;                          // false: arguments that the host must judge
  // Of a type that is not described: `data` tells its length alone.
  bool packs() const { return layout && !layout->described; }

  template <class Count>
  [[gnu::always_inline]] TypedData(const void* buffer, Count count, MPI_Datatype type) {
    auto* const address = static_cast<std::byte*>(const_cast<void*>(buffer));
    if (const TypeInfo* info = find_type(type); info && info->dense && count >= 0) [[likely]] {
      data = {address, std::uint64_t(count) * info->bytes, {}};
      good = buffer || data.bytes == 0;
    } else {
      good = count >= 0 && describe(address, std::uint64_t(count), type);
    }
  }

 private:
  bool describe(std::byte* address, std::uint64_t count, MPI_Datatype type);
};

}  // namespace nearfield::mpi
