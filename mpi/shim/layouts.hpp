// From the host's datatypes to layouts (engine/layout). Every derived type is flattened once, at its first message, and
// kept as an attribute of the type.
#pragma once
#include <memory>

#include "engine/layout/layout.hpp"
#include "mpi/shim/types.hpp"

namespace nearfield::mpi {

// The layout of a datatype, wherever it lies in memory.
struct TypeLayout {
  layout::View view;
  std::uint64_t size = 0;  // bytes of one element
  bool described = true;   // false: that takes too many runs; the host packs its data (packing.hpp)
  std::shared_ptr<const void> keep;
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
  TypedData(const void* buffer, Count count, MPI_Datatype type) {
    auto* const address = static_cast<std::byte*>(const_cast<void*>(buffer));
    if (count < 0) {
      good = false;
      return;
    }
    if (const TypeInfo* info = find_type(type); info && info->dense) [[likely]] {
      data = {address, std::uint64_t(count) * info->bytes, {}};
      good = buffer || data.bytes == 0;
      return;
    }
    layout = find_layout(type);
    if (!layout) {
      good = false;
      return;
    }
    data = {address, std::uint64_t(count) * layout->size, layout->view};
    // Absolute addresses begin at MPI_BOTTOM, a null pointer in every ABI.
    if (data.dense() && !buffer && data.bytes && !packs()) good = false;
    if (data.bytes == 0) {
      data.view = {};
      layout.reset();
    }
  }
};

}  // namespace nearfield::mpi
