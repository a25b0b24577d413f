// One side of a call that consists of edges: what this rank sends to each partner, or receives from each. Part k is
// that of partner k.
//
//   same      the same elements for all partners, or for the only one
//   blocks    the same number of elements for each, one block after the other
//   varying   a number of elements and a displacement for each. Displacements count extents, or bytes if each partner
//             has a type of its own
//   cut       a vector that is cut into parts, of which the first ones may be longer by one element
//
// There is one type for all of these, and for counts of 32 and 64 bits, since otherwise each call would be compiled for
// every pair of kinds.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi/shim/handles/packing.hpp"

namespace nearfield::mpi {

// Finds the extent of a type, the unit of displacements and blocks. False: the host must judge the type.
bool find_extent(MPI_Datatype type, MPI_Aint& extent);

class PartnerData {
 public:
  PartnerData() = default;
  static PartnerData same(const void* buffer, MPI_Count count, MPI_Datatype type) {
    return {Kind::same, buffer, count, type, nullptr};
  }
  static PartnerData blocks(const void* buffer, MPI_Count count, MPI_Datatype type) {
    return {Kind::blocks, buffer, count, type, nullptr};
  }
  static PartnerData cut(const void* buffer, MPI_Count count, MPI_Datatype type, int parts) {
    PartnerData made{Kind::cut, buffer, count, type, nullptr};
    made.parts_ = parts;
    return made;
  }
  template <class Count, class Place>
  static PartnerData varying(const void* buffer, const Count* counts, const Place* places, MPI_Datatype type) {
    return varying(buffer, counts, places, type, nullptr);
  }
  template <class Count, class Place>
  static PartnerData varying(const void* buffer, const Count* counts, const Place* places, const MPI_Datatype* types) {
    return varying(buffer, counts, places, MPI_DATATYPE_NULL, types);
  }

  // Finds the extent, which is 1 byte before; `same` does not need it. False: arguments that the host must judge. pre
  // of count(), type() and address() of others: it has returned true.
  bool prepare() {
    if (kind_ == Kind::same) return true;
    if (kind_ == Kind::varying && (!counts_ || !places_)) return false;
    if (kind_ == Kind::cut && each_ < 0) return false;
    return types_ || find_extent(element_, extent_);
  }
  void* buffer() const { return buffer_; }
  bool in_place() const { return buffer_ == MPI_IN_PLACE; }
  MPI_Count each() const { return each_; }  // elements of each part; of the vector if it is cut
  MPI_Count count(int k) const {
    if (kind_ == Kind::varying) return element_of(counts_, wide_counts_, k);
    return kind_ == Kind::cut && parts_ > 1 ? begin(k + 1) - begin(k) : each_;
  }
  MPI_Datatype type(int k) const { return types_ ? types_[k] : element_; }
  void* address(int k) const {
    const MPI_Count first = kind_ == Kind::varying  ? element_of(places_, wide_places_, k)
                            : kind_ == Kind::blocks ? MPI_Count(std::uintptr_t(k) * std::uintptr_t(each_))
                            : parts_ > 1            ? begin(k)
                                                    : 0;
    return const_cast<void*>(offset_by(buffer_, std::uintptr_t(first) * std::uintptr_t(extent_)));
  }
  // Returns whether buffer, counts and types are the same; displacements may differ.
  bool aliases(const PartnerData& other) const {
    return buffer_ && buffer_ == other.buffer_ && counts_ == other.counts_ && element_ == other.element_ &&
           types_ == other.types_;
  }

 private:
  enum class Kind : std::uint8_t { same, blocks, varying, cut };

  PartnerData(Kind kind, const void* buffer, MPI_Count each, MPI_Datatype element, const MPI_Datatype* types)
      : kind_(kind), buffer_(const_cast<void*>(buffer)), each_(each), element_(element), types_(types) {}
  template <class Count, class Place>
  static PartnerData varying(const void* buffer, const Count* counts, const Place* places, MPI_Datatype element,
                             const MPI_Datatype* types) {
    static_assert(sizeof(Count) == sizeof(int) || sizeof(Count) == sizeof(MPI_Count));
    static_assert(sizeof(Place) == sizeof(int) || sizeof(Place) == sizeof(MPI_Count));
    PartnerData made{Kind::varying, buffer, 0, element, types};
    made.counts_ = counts;
    made.places_ = places;
    made.wide_counts_ = sizeof(Count) != sizeof(int);
    made.wide_places_ = sizeof(Place) != sizeof(int);
    return made;
  }
  static MPI_Count element_of(const void* array, bool wide, int k) {
    if (!wide) return static_cast<const int*>(array)[k];
    MPI_Count value;  // in the array it may be an MPI_Aint
    std::memcpy(&value, static_cast<const std::byte*>(array) + std::size_t(k) * sizeof value, sizeof value);
    return value;
  }
  MPI_Count begin(int k) const { return each_ / parts_ * k + std::min<MPI_Count>(k, each_ % parts_); }

  Kind kind_ = Kind::same;
  bool wide_counts_ = false, wide_places_ = false;  // of 64 bits
  int parts_ = 1;
  void* buffer_ = nullptr;
  MPI_Count each_ = 0;
  MPI_Datatype element_{};
  const MPI_Datatype* types_ = nullptr;
  const void *counts_ = nullptr, *places_ = nullptr;
  MPI_Aint extent_ = 1;
};

}  // namespace nearfield::mpi
