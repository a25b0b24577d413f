// Flattening: a type's contents, read back from the host (contents.hpp), become runs of bytes. Types whose contents do
// not tell the runs (constructors of a newer standard, predefined types with gaps) are flattened by packing. If a type
// has too many runs, or memory is short, the layout stays undescribed: the host packs the type's data. Layouts are made
// under one lock and never changed.
#include "mpi/shim/handles/layouts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <vector>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/handles/contents.hpp"

namespace nearfield::mpi {
namespace {

using layout::Builder;

constinit int type_keyval = MPI_KEYVAL_INVALID;

int forget_type(MPI_Datatype, int, void* value, void*) {
  types_gone();
  delete static_cast<std::shared_ptr<const TypeLayout>*>(value);
  return MPI_SUCCESS;
}

int do_not_copy_type(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

}  // namespace

// State of the type that is being flattened; guarded by the lock of find_layout.
struct FlattenedType {
  // The predefined type that all its elements have, if there is only one.
  struct {
    const TypeInfo* type = nullptr;
    bool several = false;
    void add(const TypeInfo* one) {
      if (!one || (type && type != one)) several = true;
      type = one;
    }
    const TypeInfo* only() const { return several ? nullptr : type; }
  } basic;
  bool keeps_gaps = false;  // gaps inside of predefined types count as data
};

namespace {

FlattenedType& flattened() { return made<FlattenedType>(); }

bool flatten(const Node& node, Builder& out);

// Finds where each packed byte comes from: the host packs an array in which each byte tells its own position.
bool flatten_by_packing(MPI_Datatype type, Builder& out) {
  const Committed committed(type);
  if (!committed.good()) return false;
  MPI_Aint low = 0, extent = 0;
  MPI_Count size = 0;
  if (host.Type_get_true_extent(type, &low, &extent) != MPI_SUCCESS || host.Type_size_x(type, &size) != MPI_SUCCESS)
    return false;
  if (size == 0) return true;
  if (extent <= 0 || extent > 1 << 28 || size > 1 << 28) return false;
  const auto bytes = std::size_t(size), covered = std::size_t(extent);
  std::vector<unsigned char> image(covered), packed(bytes);
  std::vector<std::uint32_t> from(bytes);
  for (int digit = 0; digit < 4; ++digit) {
    for (std::size_t at = 0; at < image.size(); ++at) image[at] = std::uint8_t(at >> (8 * digit));
    int position = 0;
    if (host.Pack(image.data() - low, 1, committed.type(), packed.data(), int(size), &position, host.self) !=
            MPI_SUCCESS ||
        position != int(size))
      return false;
    for (std::size_t k = 0; k < from.size(); ++k) from[k] |= std::uint32_t(packed[k]) << (8 * digit);
  }
  for (std::size_t k = 0; k < from.size();) {
    std::size_t length = 1;
    while (k + length < from.size() && from[k + length] == from[k] + length) ++length;
    out.add(std::int64_t(from[k]) + low, length);
    k += length;
  }
  return !out.too_long();
}

bool flatten_named(MPI_Datatype type, Builder& out) {
  if (const TypeInfo* const known = find_type(type); known && known->dense) [[likely]] {
    flattened().basic.add(known);
    out.add(0, known->bytes);
    return true;
  }
  MPI_Count size = 0;
  MPI_Aint low = 0, extent = 0;
  if (host.Type_size_x(type, &size) != MPI_SUCCESS || host.Type_get_extent(type, &low, &extent) != MPI_SUCCESS)
    return false;
  const TypeInfo* const known = find_type(type);
  flattened().basic.add(known ? known : find_other_type(type));
  if (low == 0 && (extent == size || flattened().keeps_gaps)) {
    out.add(0, std::uint64_t(extent));
    return true;
  }
  return flatten_by_packing(type, out);  // pairs of a value and an integer, with a gap
}

// One old type of a constructor, flattened, with its extent.
struct Child {
  Builder builder;
  std::int64_t extent;
  bool good;
  explicit Child(const Node& node) : extent(node.extent()), good(flatten(node, builder)) {}
};

bool flatten_subarray(std::span<const MPI_Count> numbers, const Child& child, Builder& out) {
  const auto dimensions = std::size_t(numbers[0]);
  const MPI_Count *sizes = &numbers[1], *parts = sizes + dimensions, *starts = parts + dimensions;
  const bool by_rows = numbers[1 + 3 * dimensions] == MPI_ORDER_C;
  Builder inner = child.builder;
  std::int64_t stride = child.extent;
  for (std::size_t k = 0; k < dimensions; ++k) {
    const std::size_t d = by_rows ? dimensions - 1 - k : k;
    Builder outer;
    outer.add(inner, starts[d] * stride, std::uint64_t(parts[d]), stride);
    stride *= sizes[d];
    inner = std::move(outer);
  }
  out.add(inner, 0, 1, 0);
  return !out.too_long();
}

// Flattens one process's part of a distributed array. Along each dimension the processes get blocks in turn: blocks of
// one element or of several (cyclic), or blocks so long that every process gets one (block), or one process gets all.
bool flatten_darray(std::span<const MPI_Count> numbers, const Child& child, Builder& out) {
  const auto dimensions = std::size_t(numbers[2]);
  const MPI_Count *sizes = &numbers[3], *kinds = sizes + dimensions, *arguments = kinds + dimensions,
                  *processes = arguments + dimensions;
  const bool by_rows = numbers[3 + 4 * dimensions] == MPI_ORDER_C;
  // our coordinates in the grid, which is in row order for either order of the array
  std::vector<MPI_Count> mine(dimensions);
  MPI_Count rank = numbers[1];
  for (std::size_t d = dimensions; d-- > 0; rank /= processes[d]) mine[d] = rank % processes[d];
  Builder inner = child.builder;
  std::int64_t stride = child.extent;
  for (std::size_t k = 0; k < dimensions; ++k) {
    const std::size_t d = by_rows ? dimensions - 1 - k : k;
    const MPI_Count size = sizes[d], all = processes[d];
    const bool by_default = arguments[d] == MPI_DISTRIBUTE_DFLT_DARG;
    MPI_Count block = size;
    if (kinds[d] == MPI_DISTRIBUTE_BLOCK) block = by_default ? (size + all - 1) / all : arguments[d];
    if (kinds[d] == MPI_DISTRIBUTE_CYCLIC) block = by_default ? 1 : arguments[d];
    const MPI_Count first = mine[d] * block, step = all * block;
    const MPI_Count whole = first + block <= size ? (size - first - block) / step + 1 : 0, rest = first + whole * step;
    Builder group, outer;
    group.add(inner, 0, std::uint64_t(block), stride);
    outer.add(group, first * stride, std::uint64_t(whole), step * stride);
    if (rest < size) outer.add(inner, rest * stride, std::uint64_t(size - rest), stride);
    stride *= size;
    inner = std::move(outer);
  }
  out.add(inner, 0, 1, 0);
  return !out.too_long();
}

bool flatten(const Node& node, Builder& out) {
  if (predefined(node.combiner())) return flatten_named(node.predefined(), out);
  const auto n = node.numbers(), a = node.addresses();
  Node old = node.first_child();
  if (node.combiner() == MPI_COMBINER_STRUCT) {
    const auto count = std::size_t(n[0]);
    for (std::size_t k = 0; k < count; ++k, old = old.next()) {
      if (n[1 + k] == 0) continue;
      const Child child(old);
      if (!child.good) return false;
      out.add(child.builder, a[k], std::uint64_t(n[1 + k]), child.extent);
      if (out.too_long()) return false;
    }
    return true;
  }
  const Child child(old);
  if (!child.good) return false;
  const std::int64_t extent = child.extent;
  // Adds `count` groups of `length` elements, `at(k)` bytes from the start.
  auto groups = [&](MPI_Count count, auto length, auto at) {
    for (MPI_Count k = 0; k < count && !out.too_long(); ++k)
      out.add(child.builder, at(k), std::uint64_t(length(k)), extent);
    return !out.too_long();
  };
  // The same at a regular stride.
  auto vector = [&](MPI_Count count, MPI_Count length, std::int64_t stride) {
    Builder group;
    group.add(child.builder, 0, std::uint64_t(length), extent);
    out.add(group, 0, std::uint64_t(count), stride);
    return !out.too_long();
  };
  switch (node.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: out.add(child.builder, 0, 1, 0); return true;
    case MPI_COMBINER_CONTIGUOUS: return vector(n[0], 1, extent);
    case MPI_COMBINER_VECTOR: return vector(n[0], n[1], n[2] * extent);
    case MPI_COMBINER_HVECTOR: return vector(n[0], n[1], a[0]);
    case MPI_COMBINER_INDEXED:
      return groups(n[0], [&](MPI_Count k) { return n[1 + k]; }, [&](MPI_Count k) { return n[1 + n[0] + k] * extent; });
    case MPI_COMBINER_HINDEXED:
      return groups(n[0], [&](MPI_Count k) { return n[1 + k]; }, [&](MPI_Count k) { return a[k]; });
    case MPI_COMBINER_INDEXED_BLOCK:
      return groups(n[0], [&](MPI_Count) { return n[1]; }, [&](MPI_Count k) { return n[2 + k] * extent; });
    case MPI_COMBINER_HINDEXED_BLOCK:
      return groups(n[0], [&](MPI_Count) { return n[1]; }, [&](MPI_Count k) { return a[k]; });
    case MPI_COMBINER_SUBARRAY: return flatten_subarray(n, child, out);
    case MPI_COMBINER_DARRAY: return flatten_darray(n, child, out);
    default: return false;
  }
}

// Throws std::bad_alloc.
void keep_view(TypeLayout& made, Builder&& builder, MPI_Aint extent) {
  if (the_messenger) {
    made.view = the_messenger->share(builder, extent, made.keep);
    return;
  }
  auto kept = std::make_shared<Builder>(std::move(builder));
  made.view = kept->view(extent);
  made.keep = std::move(kept);
}

// Makes the layout in which gaps inside of elements count as data.
std::shared_ptr<const TypeLayout> make_with_gaps(const Node& node) {
  auto made = std::make_shared<TypeLayout>();
  Builder builder;
  flattened().keeps_gaps = true;
  const bool flat = flatten(node, builder);
  flattened().keeps_gaps = false;
  if (!flat) return nullptr;
  made->size = builder.size();
  keep_view(*made, std::move(builder), node.extent());
  return made;
}

// `contents`: empty if only the host knows the type's contents.
std::shared_ptr<const TypeLayout> make_layout(MPI_Datatype type, const std::vector<MPI_Count>& contents) {
  MPI_Count size = 0;
  MPI_Aint low = 0, extent = 0;
  if (host.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return nullptr;
  if (host.Type_get_extent(type, &low, &extent) != MPI_SUCCESS) return nullptr;
  auto made = std::make_shared<TypeLayout>();
  made->size = std::uint64_t(size);
  if (size == 0) return made;
  Builder builder;
  flattened().basic = {};
  try {
    made->described =
        (contents.empty() ? flatten_by_packing(type, builder) : flatten(Node(contents.data()), builder)) &&
        builder.size() == made->size;
    if (!made->described) return made;
    made->basic = contents.empty() ? nullptr : flattened().basic.only();
    keep_view(*made, std::move(builder), extent);
    if (made->basic && !made->basic->dense) made->with_gaps = make_with_gaps(Node(contents.data()));
  } catch (const OutOfMemory&) {
    made->described = false;
  }
  return made;
}

}  // namespace

// Layouts by the contents of their types, since programs make, use and free equal types repeatedly. Guarded by the lock
// of find_layout.
class LayoutCache {
 public:
  static constexpr std::size_t most_contents = 2048, most_runs = 1024;
  // Returns the entry; empty: unknown.
  std::shared_ptr<const TypeLayout>& find(const std::vector<MPI_Count>& contents) {
    std::uint64_t hash = 0;
    for (const MPI_Count number : contents) hash = (hash ^ std::uint64_t(number)) * 0x9e3779b97f4a7c15u;
    Entry& entry = entries_[hash >> 59];
    if (entry.contents != contents) {
      entry.layout.reset();
      entry.contents = contents;
    }
    return entry.layout;
  }

 private:
  struct Entry {
    std::vector<MPI_Count> contents;
    std::shared_ptr<const TypeLayout> layout;
  };
  std::array<Entry, 32> entries_;
};

struct KnownLayouts {
  LayoutCache cache;
  std::vector<MPI_Count> spare;
  std::recursive_mutex first_use;  // while a new type is described; an error handler may call us again meanwhile
};

namespace {

// Number of slow look-ups of a handle since it, or one of the same hash, was freed.
std::atomic<std::uint8_t>& sightings_of(MPI_Datatype type) {
  static constinit std::atomic<std::uint8_t> sightings[256] = {};
  return sightings[std::uint64_t(type) * 0x9e3779b97f4a7c15u >> 56];
}

// Throws std::bad_alloc.
std::shared_ptr<const TypeLayout> describe_by_contents(MPI_Datatype type) {
  auto& [known, spare, first_use] = made<KnownLayouts>();
  // An error handler may call us again; that call then has contents of its own.
  std::vector<MPI_Count> contents = std::exchange(spare, {});
  contents.clear();
  std::shared_ptr<const TypeLayout> layout;
  switch (read_contents(type, contents)) {
    case Readable::no: return nullptr;
    case Readable::partly: return make_layout(type, {});
    case Readable::yes: break;
  }
  if (contents.size() <= LayoutCache::most_contents) {
    layout = known.find(contents);
    if (!layout) {
      layout = make_layout(type, contents);
      if (layout && layout->described && layout->view.run_count <= LayoutCache::most_runs)
        known.find(contents) = layout;
    }
  } else {
    layout = make_layout(type, contents);
  }
  spare = std::move(contents);
  return layout;
}

std::shared_ptr<const TypeLayout> describe_type(MPI_Datatype type) {
  try {
    return describe_by_contents(type);
  } catch (const OutOfMemory&) {
  }
  MPI_Count size = 0;
  if (host.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return nullptr;
  auto made = std::make_shared<TypeLayout>();
  made->size = std::uint64_t(size);
  made->described = size == 0;
  return made;
}

struct CachedLayout {
  MPI_Datatype type;
  std::uint64_t epoch = 0;
  std::shared_ptr<const TypeLayout> layout;
};
// Number of slow look-ups of a type before the one that stores its layout as an attribute: types that are freed after
// their first use need no attribute.
constexpr std::uint8_t sightings_without = 1;
const PerThread<std::array<CachedLayout, 4>, threads::at::layouts> layout_cache;

}  // namespace

void bind_layouts() {
  if (host.Type_create_keyval(do_not_copy_type, forget_type, &type_keyval, nullptr) != MPI_SUCCESS)
    type_keyval = MPI_KEYVAL_INVALID;
}

std::shared_ptr<const TypeLayout> find_layout(MPI_Datatype type) {
  if (type == host.type_null || !type) return nullptr;
  const auto bits = (std::uint64_t)type;
  CachedLayout& cached = (*layout_cache)[(bits ^ bits >> 6) % 4];
  const std::uint64_t epoch = types_epoch();
  if (cached.layout && cached.type == type && cached.epoch == epoch) [[likely]]
    return cached.layout;
  void* value = nullptr;
  int found = 0;
  if (host.Type_get_attr(type, type_keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  std::shared_ptr<const TypeLayout> layout;
  if (!found) {
    const std::lock_guard lock(made<KnownLayouts>().first_use);
    if (host.Type_get_attr(type, type_keyval, &value, &found) != MPI_SUCCESS) return nullptr;
    if (!found) {
      layout = describe_type(type);
      if (!layout) return nullptr;
      if (sightings_of(type).fetch_add(1, std::memory_order_relaxed) >= sightings_without) {
        auto* const kept = new std::shared_ptr<const TypeLayout>(layout);
        if (host.Type_set_attr(type, type_keyval, kept) != MPI_SUCCESS) delete kept;
      }
    }
  }
  if (!layout) layout = *static_cast<std::shared_ptr<const TypeLayout>*>(value);
  cached = {type, epoch, layout};
  return layout;
}

void forget_sightings(MPI_Datatype type) { sightings_of(type).store(0, std::memory_order_relaxed); }

bool TypedData::describe(std::byte* address, std::uint64_t count, MPI_Datatype type) {
  layout = find_layout(type);
  if (!layout) return false;
  data = {address, count * layout->size, layout->view};
  // Absolute addresses begin at MPI_BOTTOM, a null pointer in every ABI.
  if (data.dense() && !address && data.bytes && !packs()) return false;
  if (data.bytes == 0) {
    data.view = {};
    layout.reset();
  }
  return true;
}

}  // namespace nearfield::mpi
