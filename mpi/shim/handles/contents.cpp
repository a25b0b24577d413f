#include "mpi/shim/handles/contents.hpp"

#include <algorithm>

namespace nearfield::mpi {
namespace {

bool constructed(int combiner) {
  for (const int known : {MPI_COMBINER_DUP, MPI_COMBINER_RESIZED, MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_VECTOR,
                          MPI_COMBINER_HVECTOR, MPI_COMBINER_INDEXED, MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK,
                          MPI_COMBINER_HINDEXED_BLOCK, MPI_COMBINER_STRUCT, MPI_COMBINER_SUBARRAY, MPI_COMBINER_DARRAY})
    if (combiner == known) return true;
  return false;
}

// Room for `few` numbers, as most types have; more are allocated.
template <class T, std::size_t few = 32>
class Room {
 public:
  explicit Room(std::size_t count) {
    if (count > few) more_.resize(count);
  }
  T* data() { return more_.empty() ? few_ : more_.data(); }
  T& operator[](std::size_t k) { return data()[k]; }

 private:
  T few_[few];
  std::vector<T> more_;
};

// Large-count forms return counts and displacements in one array: `counts` elements of it are counts, the others
// displacements. In a node the counts come after the first `before` integers.
struct Large {
  std::size_t counts, before;
};
Large sort_large(int combiner, std::size_t large, const MPI_Count* values, std::size_t numbers) {
  Large sorted{large, numbers};
  switch (combiner) {
    case MPI_COMBINER_HVECTOR: sorted.counts = 2; break;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT: sorted.counts = 1 + std::size_t(values[0]); break;
    case MPI_COMBINER_HINDEXED_BLOCK: sorted.counts = 2; break;
    case MPI_COMBINER_RESIZED: sorted.counts = 0; break;
    case MPI_COMBINER_SUBARRAY: sorted.before = 1; break;  // dimensions, sizes..., order
    case MPI_COMBINER_DARRAY: sorted.before = 3; break;    // size, rank, dimensions, sizes..., the rest
    default: break;
  }
  sorted.counts = std::min(sorted.counts, large);
  return sorted;
}

struct TypeEnvelope {
  int combiner = MPI_COMBINER_NAMED;
  MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
};

bool read_envelope(MPI_Datatype type, TypeEnvelope& e) {
  if (host.Type_get_envelope_c && host.Type_get_contents_c)
    return host.Type_get_envelope_c(type, &e.integers, &e.addresses, &e.large, &e.types, &e.combiner) == MPI_SUCCESS;
  int integers = 0, addresses = 0, types = 0;
  if (host.Type_get_envelope(type, &integers, &addresses, &types, &e.combiner) != MPI_SUCCESS) return false;
  e.integers = integers, e.addresses = addresses, e.types = types;
  return true;
}

void give_back(MPI_Datatype type) {
  TypeEnvelope e;
  if (read_envelope(type, e) && !predefined(e.combiner)) host.Type_free(&type);
}

}  // namespace

bool predefined(int combiner) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0)
  if (combiner == MPI_COMBINER_VALUE_INDEX) return true;
#endif
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

Readable read_contents(MPI_Datatype type, std::vector<MPI_Count>& contents) {
  TypeEnvelope e;
  MPI_Aint low = 0, extent = 0;
  if (!read_envelope(type, e) || host.Type_get_extent(type, &low, &extent) != MPI_SUCCESS) return Readable::no;
  const std::size_t begin = contents.size();
  if (predefined(e.combiner)) {
    contents.insert(contents.end(), {MPI_Count(MPI_COMBINER_NAMED), extent, Node::head + 1, 1, 0, (MPI_Count)type});
    return Readable::yes;
  }
  if (!constructed(e.combiner)) return Readable::partly;
  const auto integers = std::size_t(e.integers), addresses = std::size_t(e.addresses), large = std::size_t(e.large),
             types = std::size_t(e.types);
  Room<int> i(integers);
  Room<MPI_Aint, 16> a(addresses);
  Room<MPI_Count, 8> l(large);
  Room<MPI_Datatype, 16> old(types);
  const int code =
      host.Type_get_envelope_c && host.Type_get_contents_c
          ? host.Type_get_contents_c(type, e.integers, e.addresses, e.large, e.types, i.data(), a.data(), l.data(),
                                     old.data())
          : host.Type_get_contents(type, int(integers), int(addresses), int(types), i.data(), a.data(), old.data());
  if (code != MPI_SUCCESS) return Readable::no;
  struct Return {
    Room<MPI_Datatype, 16>& old;
    const std::size_t types;
    ~Return() {
      for (std::size_t k = 0; k < types; ++k) give_back(old[k]);
    }
  } give{old, types};
  const Large sorted = large ? sort_large(e.combiner, large, l.data(), integers) : Large{0, integers};
  contents.insert(contents.end(), {MPI_Count(e.combiner), extent, 0, MPI_Count(integers + sorted.counts),
                                   MPI_Count(addresses + large - sorted.counts)});
  contents.insert(contents.end(), i.data(), i.data() + sorted.before);
  contents.insert(contents.end(), l.data(), l.data() + sorted.counts);
  contents.insert(contents.end(), i.data() + sorted.before, i.data() + integers);
  contents.insert(contents.end(), a.data(), a.data() + addresses);
  contents.insert(contents.end(), l.data() + sorted.counts, l.data() + large);
  for (std::size_t k = 0; k < types; ++k)
    if (const Readable readable = read_contents(old[k], contents); readable != Readable::yes) return readable;
  contents[begin + 2] = MPI_Count(contents.size() - begin);
  return Readable::yes;
}

}  // namespace nearfield::mpi
