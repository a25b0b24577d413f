// Tables from handles to types and operators. A handle that a host lacks is null and is left out. If a type's size
// differs from that of the engine's type, its data are moved, but not reduced.
#include "mpi/shim/handles/types.hpp"
#include "engine/base/made.hpp"

#include <complex>
#include <cstring>
#include <map>
#include <mutex>

namespace nearfield::mpi {

using reducing::Op;
using reducing::Type;

// Open addressing, filled at start and read-only afterwards. Keys are handles, which fit an integer in every ABI.
template <class Key, class Value, std::size_t capacity>
class HandleTable {
 public:
  void add(Key key, const Value& value) {
    for (std::size_t at = hash(key);; at = (at + 1) % capacity) {
      if (entries_[at].used && entries_[at].key != key) continue;
      if (!entries_[at].used) entries_[at] = {key, true, value};
      return;
    }
  }
  const Value* find(Key key) const {
    for (std::size_t at = hash(key); entries_[at].used; at = (at + 1) % capacity)
      if (entries_[at].key == key) return &entries_[at].value;
    return nullptr;
  }

 private:
  struct Entry {
    Key key;
    bool used;
    Value value;
  };
  static std::size_t hash(Key key) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &key, sizeof key);
    return (bits * 0x9e3779b97f4a7c15u) >> 32 & (capacity - 1);
  }
  Entry entries_[capacity] = {};
};

struct PredefinedHandles {
  HandleTable<MPI_Datatype, TypeInfo, 512> types;
  HandleTable<MPI_Op, Op, 64> ops;
};

struct OtherTypes {
  std::mutex mutex;
  std::map<std::uint64_t, TypeInfo> all;
};

namespace {

PredefinedHandles& predefined() { return made<PredefinedHandles>(); }

void add(MPI_Datatype handle, Type type, bool fortran_integer = false) {
  if (handle == host.type_null || !handle) return;
  MPI_Count bytes = 0;
  if (host.Type_size_x(handle, &bytes) != MPI_SUCCESS || bytes <= 0) return;
  MPI_Aint low = 0, extent = 0;
  host.Type_get_extent(handle, &low, &extent);
  // A host may be built with other sizes than we expect (long double, Fortran kinds): such a type is only moved.
  if (std::size_t(extent) != reducing::size_of(type)) type = Type::none;
  predefined().types.add(handle, {type, std::uint32_t(bytes), low == 0 && extent == bytes, fortran_integer, handle});
}

constexpr Type signed_type(std::size_t bytes) {
  return bytes == 1 ? Type::i8 : bytes == 2 ? Type::i16 : bytes == 4 ? Type::i32 : bytes == 8 ? Type::i64 : Type::none;
}
constexpr Type unsigned_type(std::size_t bytes) {
  return bytes == 1 ? Type::u8 : bytes == 2 ? Type::u16 : bytes == 4 ? Type::u32 : bytes == 8 ? Type::u64 : Type::none;
}

// Fortran's types of a given precision and range are stored like one of the engine's types.
Type parameterised(int combiner, std::size_t bytes) {
  if (combiner == MPI_COMBINER_F90_INTEGER) return signed_type(bytes);
  if (combiner == MPI_COMBINER_F90_REAL) return bytes == 4 ? Type::f32 : bytes == 8 ? Type::f64 : Type::none;
  if (combiner == MPI_COMBINER_F90_COMPLEX) return bytes == 8 ? Type::c32 : bytes == 16 ? Type::c64 : Type::none;
  return Type::none;
}

// Adds a type of Fortran, whose size the host decides.
void add_sized(MPI_Datatype handle, Type of4, Type of8, Type of16 = Type::none, bool fortran_integer = false) {
  if (handle == host.type_null || !handle) return;
  MPI_Count bytes = 0;
  if (host.Type_size_x(handle, &bytes) != MPI_SUCCESS) return;
  add(handle, bytes == 4 ? of4 : bytes == 8 ? of8 : bytes == 16 ? of16 : Type::none, fortran_integer);
}

}  // namespace

void bind_types() {
  add(MPI_CHAR, Type::character);
  add(MPI_SIGNED_CHAR, Type::i8);
  add(MPI_UNSIGNED_CHAR, Type::u8);
  add(MPI_BYTE, Type::byte);
  add(MPI_PACKED, Type::none);
  add(MPI_WCHAR, Type::none);
  add(MPI_SHORT, Type::i16);
  add(MPI_UNSIGNED_SHORT, Type::u16);
  add(MPI_INT, Type::i32);
  add(MPI_UNSIGNED, Type::u32);
  add(MPI_LONG, signed_type(sizeof(long)));
  add(MPI_UNSIGNED_LONG, unsigned_type(sizeof(long)));
  add(MPI_LONG_LONG, Type::i64);
  add(MPI_UNSIGNED_LONG_LONG, Type::u64);
  add(MPI_FLOAT, Type::f32);
  add(MPI_DOUBLE, Type::f64);
  add(MPI_LONG_DOUBLE, Type::f80);
  add(MPI_INT8_T, Type::i8);
  add(MPI_INT16_T, Type::i16);
  add(MPI_INT32_T, Type::i32);
  add(MPI_INT64_T, Type::i64);
  add(MPI_UINT8_T, Type::u8);
  add(MPI_UINT16_T, Type::u16);
  add(MPI_UINT32_T, Type::u32);
  add(MPI_UINT64_T, Type::u64);
  add(MPI_C_BOOL, Type::boolean);
  add(MPI_C_FLOAT_COMPLEX, Type::c32);
  add(MPI_C_DOUBLE_COMPLEX, Type::c64);
  add(MPI_C_LONG_DOUBLE_COMPLEX, Type::c80);
  add(MPI_CXX_BOOL, Type::boolean);
  add(MPI_CXX_FLOAT_COMPLEX, Type::c32);
  add(MPI_CXX_DOUBLE_COMPLEX, Type::c64);
  add(MPI_CXX_LONG_DOUBLE_COMPLEX, Type::c80);
  add(MPI_AINT, signed_type(sizeof(MPI_Aint)));
  add(MPI_OFFSET, signed_type(sizeof(MPI_Offset)));
  add(MPI_COUNT, signed_type(sizeof(MPI_Count)));
  // Pairs: {value, int}.
  add(MPI_FLOAT_INT, Type::f32_i32);
  add(MPI_DOUBLE_INT, Type::f64_i32);
  add(MPI_LONG_INT, Type::i64_i32);
  add(MPI_2INT, Type::i32_i32);
  add(MPI_SHORT_INT, Type::i16_i32);
  add(MPI_LONG_DOUBLE_INT, Type::f80_i32);
  // Fortran.
  add(MPI_CHARACTER, Type::character);
  add_sized(MPI_INTEGER, Type::i32, Type::i64, Type::none, true);
  add_sized(MPI_REAL, Type::f32, Type::f64);
  add_sized(MPI_DOUBLE_PRECISION, Type::f32, Type::f64, Type::f128);
  add_sized(MPI_COMPLEX, Type::none, Type::c32, Type::c64);
  add_sized(MPI_DOUBLE_COMPLEX, Type::none, Type::c32, Type::c64);
  add_sized(MPI_LOGICAL, Type::logical4, Type::logical8);
  add(MPI_INTEGER1, Type::i8, true);
  add(MPI_INTEGER2, Type::i16, true);
  add(MPI_INTEGER4, Type::i32, true);
  add(MPI_INTEGER8, Type::i64, true);
  add(MPI_REAL4, Type::f32);
  add(MPI_REAL8, Type::f64);
  add(MPI_COMPLEX8, Type::c32);
  add(MPI_COMPLEX16, Type::c64);
  add_sized(MPI_2INTEGER, Type::none, Type::i32_i32, Type::i64_i64);
  add_sized(MPI_2REAL, Type::none, Type::f32_f32, Type::f64_f64);
  add_sized(MPI_2DOUBLE_PRECISION, Type::none, Type::f32_f32, Type::f64_f64);
  if (const auto type = abi::float16()) add(*type, Type::f16);

  auto& ops = predefined().ops;
  ops.add(MPI_SUM, Op::sum);
  ops.add(MPI_PROD, Op::prod);
  ops.add(MPI_MIN, Op::min);
  ops.add(MPI_MAX, Op::max);
  ops.add(MPI_LAND, Op::land);
  ops.add(MPI_LOR, Op::lor);
  ops.add(MPI_LXOR, Op::lxor);
  ops.add(MPI_BAND, Op::band);
  ops.add(MPI_BOR, Op::bor);
  ops.add(MPI_BXOR, Op::bxor);
  ops.add(MPI_MINLOC, Op::minloc);
  ops.add(MPI_MAXLOC, Op::maxloc);
}

const TypeInfo* find_type(MPI_Datatype type) { return predefined().types.find(type); }

const TypeInfo* find_other_type(MPI_Datatype type) {
  MPI_Count bytes = 0;
  MPI_Aint low = 0, extent = 0;
  if (host.Type_size_x(type, &bytes) != MPI_SUCCESS || host.Type_get_extent(type, &low, &extent) != MPI_SUCCESS ||
      bytes <= 0 || low != 0 || extent != bytes)
    return nullptr;
  int numbers = 0, addresses = 0, inner = 0, combiner = MPI_COMBINER_NAMED;
  host.Type_get_envelope(type, &numbers, &addresses, &inner, &combiner);
  OtherTypes& others = made<OtherTypes>();
  const std::lock_guard lock(others.mutex);
  const TypeInfo info{parameterised(combiner, std::size_t(bytes)), std::uint32_t(bytes), true,
                      combiner == MPI_COMBINER_F90_INTEGER, type};
  return &others.all.try_emplace((std::uint64_t)type, info).first->second;
}

std::optional<Op> find_op(MPI_Op op) {
  const Op* known = predefined().ops.find(op);
  return known ? std::optional(*known) : std::nullopt;
}

}  // namespace nearfield::mpi
