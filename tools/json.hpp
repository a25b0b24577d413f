// What the programs here print for the command to read: one object, or one to a line.
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

// At once, so that who reads sees it while this program goes on. What is no UTF-8 (the system's texts) is replaced.
inline void print(const Json& value, int indent = -1) {
  std::puts(value.dump(indent, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

}  // namespace nearfield
