// Layouts (engine/layout) of the host's datatypes. A derived type is flattened at its first message, unless the layout
// of a type with equal contents is known. Each thread caches layouts by handle. A type that is looked up again gets its
// layout as an attribute.
//
//   a thread looks up a type                       the type is freed (types_gone, before the host's MPI_Type_free)
//   loads the epoch (acquire)                      raises the epoch (acquire and release)
//   takes the cached layout if type and epoch      deletes the attribute's reference to the layout; layouts in use
//   are equal; else the attribute's, or one of       stay, since references are counted
//   equal contents, or makes one; caches it
#pragma once
#include <memory>

#include "engine/layout/layout.hpp"
#include "mpi/shim/handles/types.hpp"

namespace nearfield::mpi {

// The layout of a datatype, independent of addresses.
struct TypeLayout {
  layout::View view;
  std::uint64_t size = 0;  // bytes of one element
  bool described = true;   // false: it has too many runs, so the host packs its data (packing.hpp)
  std::shared_ptr<const void> keep;
  // The only predefined type in it; nullptr: there are several, or an unknown one.
  const TypeInfo* basic = nullptr;
  // The layout in which gaps inside of elements count as data, if elements have gaps (pairs of a value and an integer).
  std::shared_ptr<const TypeLayout> with_gaps;
};

void bind_layouts();

// nullptr: not a type.
std::shared_ptr<const TypeLayout> find_layout(MPI_Datatype type);

void forget_sightings(MPI_Datatype type);  // called when the program frees it

// `count` elements of `type` at `buffer`, for a message.
struct TypedData {
  layout::Data data;
  std::shared_ptr<const TypeLayout> layout;  // none: dense
  bool good = true;                          // false: arguments that the host must judge
  // True for a type that is not described: only the length of `data` is valid.
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
