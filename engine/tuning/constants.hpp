// Constants of the estimates, beside the machine's figures: one table (constants.def).
#pragma once
#include <cstddef>
#include <cstdint>

namespace nearfield::tuning {

namespace units {
using times = double;  // a multiple of the quantity that `about` names
using calls = std::uint32_t;
using bytes = std::size_t;
}  // namespace units

namespace constants {
#define CONSTANT(name, unit, value, about, measured) inline constexpr units::unit name = value;
#include "engine/tuning/constants.def"
#undef CONSTANT
}  // namespace constants

struct Constant {
  const char *name, *unit;
  double value;
  const char *about, *measured;
};
inline constexpr Constant constants_table[] = {
#define CONSTANT(name, unit, value, about, measured) {#name, #unit, double(constants::name), about, measured},
#include "engine/tuning/constants.def"
#undef CONSTANT
};

}  // namespace nearfield::tuning
