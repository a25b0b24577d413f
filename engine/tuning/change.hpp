// When what is known of a cost holds no more.
#pragma once
#include "engine/tuning/constants.hpp"

namespace nearfield::tuning {

inline bool differs(float now, float known) {
  constexpr auto factor = float(constants::changed);
  return now > factor * known || now * factor < known;
}

}  // namespace nearfield::tuning
