// Flattening: a type's constructor, read back from the host, becomes runs of bytes; what that cannot describe (of a
// newer standard, or with gaps inside of a predefined type) is found out by packing. Types that take too many runs, or
// more memory than there is, stay undescribed: the host packs their data. Made under one lock, then never changed.
#include "mpi/shim/handles/layouts.hpp"

#include <array>
#include <cstring>
#include <mutex>
#include <vector>

#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {
namespace {

using layout::Builder;

int type_keyval = MPI_KEYVAL_INVALID;
std::atomic<std::uint64_t> layout_epoch{1};  // raised when a type goes; pairs with the load in find_layout

int forget_type(MPI_Datatype, int, void* value, void*) {
  layout_epoch.fetch_add(1, std::memory_order_acq_rel);
  delete static_cast<std::shared_ptr<const TypeLayout>*>(value);
  return MPI_SUCCESS;
}

int do_not_copy_type(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// What a type was constructed from, with counts in `numbers` and bytes in `addresses`, whichever form made it.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Count> numbers, addresses;
  std::vector<MPI_Datatype> types;
};

bool predefined(int combiner) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0)
  if (combiner == MPI_COMBINER_VALUE_INDEX) return true;
#endif
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

// Large forms give all counts and displacements in one array.
void sort_large(Contents& c, const std::vector<MPI_Count>& large) {
  std::size_t bytes_from = large.size();
  switch (c.combiner) {
    case MPI_COMBINER_HVECTOR: bytes_from = 2; break;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT: bytes_from = 1 + std::size_t(large[0]); break;
    case MPI_COMBINER_HINDEXED_BLOCK: bytes_from = 2; break;
    case MPI_COMBINER_RESIZED: bytes_from = 0; break;
    default: break;
  }
  bytes_from = std::min(bytes_from, large.size());
  if (c.combiner == MPI_COMBINER_SUBARRAY) {  // dimensions, sizes..., order
    c.numbers.insert(c.numbers.begin() + 1, large.begin(), large.end());
    return;
  }
  if (c.combiner == MPI_COMBINER_DARRAY) {  // size, rank, dimensions, sizes..., the rest
    c.numbers.insert(c.numbers.begin() + 3, large.begin(), large.end());
    return;
  }
  c.numbers.assign(large.begin(), large.begin() + std::ptrdiff_t(bytes_from));
  c.addresses.assign(large.begin() + std::ptrdiff_t(bytes_from), large.end());
}

bool read_contents(MPI_Datatype type, Contents& c) {
  if (host.Type_get_envelope_c && host.Type_get_contents_c) {
    MPI_Count ints = 0, addresses = 0, large = 0, types = 0;
    if (host.Type_get_envelope_c(type, &ints, &addresses, &large, &types, &c.combiner) != MPI_SUCCESS) return false;
    if (predefined(c.combiner)) return true;
    std::vector<int> i(std::size_t(ints) + 1);
    std::vector<MPI_Aint> a(std::size_t(addresses) + 1);
    std::vector<MPI_Count> l(std::size_t(large) + 1);
    c.types.resize(std::size_t(types) + 1);
    if (host.Type_get_contents_c(type, ints, addresses, large, types, i.data(), a.data(), l.data(), c.types.data()) !=
        MPI_SUCCESS)
      return false;
    c.types.resize(std::size_t(types));
    c.numbers.assign(i.begin(), i.end() - 1);
    c.addresses.assign(a.begin(), a.end() - 1);
    l.resize(std::size_t(large));
    if (large) sort_large(c, l);
    return true;
  }
  int ints = 0, addresses = 0, types = 0;
  if (host.Type_get_envelope(type, &ints, &addresses, &types, &c.combiner) != MPI_SUCCESS) return false;
  if (predefined(c.combiner)) return true;
  std::vector<int> i(std::size_t(ints) + 1);
  std::vector<MPI_Aint> a(std::size_t(addresses) + 1);
  c.types.resize(std::size_t(types) + 1);
  if (host.Type_get_contents(type, ints, addresses, types, i.data(), a.data(), c.types.data()) != MPI_SUCCESS)
    return false;
  c.types.resize(std::size_t(types));
  c.numbers.assign(i.begin(), i.end() - 1);
  c.addresses.assign(a.begin(), a.end() - 1);
  return true;
}

// Of the type that is being flattened; under the lock of find_layout.
struct Basic {
  const TypeInfo* type = nullptr;
  bool several = false;
  void add(const TypeInfo* one) {
    if (!one || (type && type != one)) several = true;
    type = one;
  }
  const TypeInfo* only() const { return several ? nullptr : type; }
} basic;
bool keeps_gaps = false;

bool flatten(MPI_Datatype type, Builder& out);

// The host itself tells where every packed byte comes from: it packs numbers that name their own position.
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
  MPI_Count size = 0;
  MPI_Aint low = 0, extent = 0;
  if (host.Type_size_x(type, &size) != MPI_SUCCESS || host.Type_get_extent(type, &low, &extent) != MPI_SUCCESS)
    return false;
  const TypeInfo* const known = find_type(type);
  basic.add(known ? known : find_other_type(type));
  if (low == 0 && (extent == size || keeps_gaps)) {
    out.add(0, std::uint64_t(extent));
    return true;
  }
  return flatten_by_packing(type, out);  // pairs of a value and an integer, with a gap
}

// One old type of a constructor: flattened, with its extent, and given back.
struct Child {
  Builder builder;
  std::int64_t extent = 0;
  bool good = false;
  explicit Child(MPI_Datatype type) {
    MPI_Aint low = 0, length = 0;
    good = host.Type_get_extent(type, &low, &length) == MPI_SUCCESS && flatten(type, builder);
    extent = length;
  }
};

void give_back(MPI_Datatype type) {
  int a = 0, b = 0, c = 0, combiner = MPI_COMBINER_NAMED;
  MPI_Count al = 0, bl = 0, cl = 0, dl = 0;
  if (host.Type_get_envelope_c) host.Type_get_envelope_c(type, &al, &bl, &cl, &dl, &combiner);
  else host.Type_get_envelope(type, &a, &b, &c, &combiner);
  if (!predefined(combiner)) host.Type_free(&type);
}

bool flatten_subarray(const Contents& c, const Child& child, Builder& out) {
  const auto dimensions = std::size_t(c.numbers[0]);
  const MPI_Count *sizes = &c.numbers[1], *parts = sizes + dimensions, *starts = parts + dimensions;
  const bool by_rows = c.numbers[1 + 3 * dimensions] == MPI_ORDER_C;
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

// The part of a distributed array that one process of a grid has. Along each dimension blocks go round the processes:
// of one element (cyclic), of several, or so long that every process gets one (block) or the only one everything.
bool flatten_darray(const Contents& c, const Child& child, Builder& out) {
  const auto dimensions = std::size_t(c.numbers[2]);
  const MPI_Count *sizes = &c.numbers[3], *kinds = sizes + dimensions, *arguments = kinds + dimensions,
                  *processes = arguments + dimensions;
  const bool by_rows = c.numbers[3 + 4 * dimensions] == MPI_ORDER_C;
  std::vector<MPI_Count> mine(dimensions);  // our coordinates in the grid: it is by rows in either order of the array
  MPI_Count rank = c.numbers[1];
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

bool constructed(int combiner) {
  for (const int known : {MPI_COMBINER_DUP, MPI_COMBINER_RESIZED, MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_VECTOR,
                          MPI_COMBINER_HVECTOR, MPI_COMBINER_INDEXED, MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK,
                          MPI_COMBINER_HINDEXED_BLOCK, MPI_COMBINER_STRUCT, MPI_COMBINER_SUBARRAY, MPI_COMBINER_DARRAY})
    if (combiner == known) return true;
  return false;
}

bool flatten_from(const Contents& c, Builder& out) {
  const auto& n = c.numbers;
  const auto& a = c.addresses;
  if (c.combiner == MPI_COMBINER_STRUCT) {
    const auto count = std::size_t(n[0]);
    for (std::size_t k = 0; k < count; ++k) {
      if (n[1 + k] == 0) continue;
      const Child child(c.types[k]);
      if (!child.good) return false;
      out.add(child.builder, a[k], std::uint64_t(n[1 + k]), child.extent);
      if (out.too_long()) return false;
    }
    return true;
  }
  const Child child(c.types[0]);
  if (!child.good) return false;
  const std::int64_t extent = child.extent;
  // `count` groups of `length` elements, `at(k)` bytes from the start.
  auto groups = [&](MPI_Count count, auto length, auto at) {
    for (MPI_Count k = 0; k < count && !out.too_long(); ++k)
      out.add(child.builder, at(k), std::uint64_t(length(k)), extent);
    return !out.too_long();
  };
  // The same at a regular stride: one group, many times.
  auto vector = [&](MPI_Count count, MPI_Count length, std::int64_t stride) {
    Builder group;
    group.add(child.builder, 0, std::uint64_t(length), extent);
    out.add(group, 0, std::uint64_t(count), stride);
    return !out.too_long();
  };
  switch (c.combiner) {
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
    case MPI_COMBINER_SUBARRAY: return flatten_subarray(c, child, out);
    case MPI_COMBINER_DARRAY: return flatten_darray(c, child, out);
    default: return false;
  }
}

bool flatten(MPI_Datatype type, Builder& out) {
  Contents c;
  if (!read_contents(type, c)) return false;
  if (predefined(c.combiner)) return flatten_named(type, out);
  const bool known = constructed(c.combiner);
  const bool good = known && flatten_from(c, out);
  for (const MPI_Datatype old : c.types) give_back(old);
  if (known) return good;
  basic.several = true;  // a constructor of a newer standard
  return flatten_by_packing(type, out);
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

// The same type with the gaps inside of its elements.
std::shared_ptr<const TypeLayout> make_with_gaps(MPI_Datatype type, MPI_Aint extent) {
  auto made = std::make_shared<TypeLayout>();
  Builder builder;
  keeps_gaps = true;
  const bool flat = flatten(type, builder);
  keeps_gaps = false;
  if (!flat) return nullptr;
  made->size = builder.size();
  keep_view(*made, std::move(builder), extent);
  return made;
}

std::shared_ptr<const TypeLayout> make_layout(MPI_Datatype type) {
  MPI_Count size = 0;
  MPI_Aint low = 0, extent = 0;
  if (host.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return nullptr;
  if (host.Type_get_extent(type, &low, &extent) != MPI_SUCCESS) return nullptr;
  auto made = std::make_shared<TypeLayout>();
  made->size = std::uint64_t(size);
  if (size == 0) return made;
  Builder builder;
  basic = {};
  try {
    made->described = flatten(type, builder) && builder.size() == made->size;
    if (!made->described) return made;
    made->basic = basic.only();
    keep_view(*made, std::move(builder), extent);
    if (made->basic && !made->basic->dense) made->with_gaps = make_with_gaps(type, extent);
  } catch (const std::bad_alloc&) {
    made->described = false;
  }
  return made;
}

struct CachedLayout {
  MPI_Datatype type;
  std::uint64_t epoch = 0;
  std::shared_ptr<const TypeLayout> layout;
};
const PerThread<std::array<CachedLayout, 4>> layout_cache;

}  // namespace

void bind_layouts() {
  if (host.Type_create_keyval(do_not_copy_type, forget_type, &type_keyval, nullptr) != MPI_SUCCESS)
    type_keyval = MPI_KEYVAL_INVALID;
}

std::shared_ptr<const TypeLayout> find_layout(MPI_Datatype type) {
  if (type == host.type_null || !type) return nullptr;
  const auto bits = (std::uint64_t)type;
  CachedLayout& cached = (*layout_cache)[(bits ^ bits >> 6) % 4];
  const std::uint64_t epoch = layout_epoch.load(std::memory_order_acquire);
  if (cached.layout && cached.type == type && cached.epoch == epoch) [[likely]]
    return cached.layout;
  void* value = nullptr;
  int found = 0;
  if (host.Type_get_attr(type, type_keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  std::shared_ptr<const TypeLayout> layout;
  if (!found) {
    // Of threads that meet a type for the first time, one describes it. An error handler may call us again.
    static std::recursive_mutex first_use;
    const std::lock_guard lock(first_use);
    if (host.Type_get_attr(type, type_keyval, &value, &found) != MPI_SUCCESS) return nullptr;
    if (!found) {
      layout = make_layout(type);
      if (!layout) return nullptr;
      auto* const kept = new std::shared_ptr<const TypeLayout>(layout);
      if (host.Type_set_attr(type, type_keyval, kept) != MPI_SUCCESS) delete kept;
    }
  }
  if (!layout) layout = *static_cast<std::shared_ptr<const TypeLayout>*>(value);
  cached = {type, epoch, layout};
  return layout;
}

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
