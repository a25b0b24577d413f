#include "engine/api/types.hpp"

#include <string>

#include "engine/api/failed.hpp"
#include "engine/reducing/wide.hpp"

namespace nearfield::api {
namespace {

using reducing::Op;
using reducing::Type;

struct TypeRow {
  const char* name;
  Type type;
};
constexpr TypeRow types[] = {
    {"byte", Type::byte},   {"int8", Type::i8},       {"int16", Type::i16},      {"int32", Type::i32},
    {"int64", Type::i64},   {"uint8", Type::u8},      {"uint16", Type::u16},     {"uint32", Type::u32},
    {"uint64", Type::u64},  {"float16", Type::f16},   {"bfloat16", Type::bf16},  {"float32", Type::f32},
    {"float64", Type::f64}, {"complex64", Type::c32}, {"complex128", Type::c64}, {"bool", Type::boolean},
};
static_assert(std::size(types) == NF_BOOL + 1);

struct OperatorRow {
  const char* name;
  Op op, of_bool;
};
constexpr OperatorRow operators[] = {
    {"sum", Op::sum, Op::lor},        {"average", Op::sum, Op::count},     {"product", Op::prod, Op::land},
    {"minimum", Op::min, Op::land},   {"maximum", Op::max, Op::lor},       {"bitwise and", Op::band, Op::land},
    {"bitwise or", Op::bor, Op::lor}, {"bitwise xor", Op::bxor, Op::lxor},
};
static_assert(std::size(operators) == NF_BXOR + 1);

const TypeRow& row_of(nf_type type) {
  if (unsigned(type) >= std::size(types))
    throw Failed(NF_INVALID, "there is no type " + std::to_string(int(type)) + "; they are NF_BYTE to NF_BOOL");
  return types[type];
}

}  // namespace

std::size_t bytes_of(nf_type type) { return reducing::size_of(row_of(type).type); }

CollectiveCall reduction(collectives::Collective collective, std::size_t count, nf_type type, nf_op op) {
  const TypeRow& of = row_of(type);
  if (unsigned(op) >= std::size(operators))
    throw Failed(NF_INVALID, "there is no operator " + std::to_string(int(op)) + "; they are NF_SUM to NF_BXOR");
  const OperatorRow& by = operators[op];
  CollectiveCall made;
  made.averages = op == NF_AVG;
  collectives::Call& call = made.call;
  call.collective = collective;
  call.count = count;
  call.bytes = count * reducing::size_of(of.type);
  call.type = of.type;
  call.op = type == NF_BOOL ? by.of_bool : by.op;
  if (call.op != Op::count && (!made.averages || reducing::can_scale(of.type))) {
    call.fold = reducing::wide_fold(call.op, call.type);
    if (!call.fold) call.fold = reducing::fold(call.op, call.type);
  }
  if (!call.fold) throw Failed(NF_UNSUPPORTED, std::string("the ") + by.name + " of " + of.name + " is not defined");
  return made;
}

}  // namespace nearfield::api
