// Output of the programs here, which the command reads: one JSON object, or one on each line.
#pragma once
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace nearfield {

// Members stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// Figures are measured or estimated: more digits say nothing.
inline double rounded(double value, int digits) {
  const double unit = std::pow(10, digits);
  return std::round(value * unit) / unit;
}

// Prints at once, since a reader may wait for it. Bytes of the system's texts that are not UTF-8 are replaced.
inline void print(const Json& value, int indent = -1) {
  std::puts(value.dump(indent, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

}  // namespace nearfield
