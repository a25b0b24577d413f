#include "engine/spread/costs.hpp"
#include <algorithm>
#include <cmath>
namespace nearfield::spread {
double leader_cost(const Shape& s, const Call& call) { return 10e3 + double(call.bytes) * s.node.size; }
double lanes_cost(const Shape&, const Call& call) { return 20e3 + double(call.bytes); }
double pipelined_cost(const Shape&, const Call& call) { return 40e3 + 0.9 * double(call.bytes); }
int chunks(const Shape&, const Call& call) { return int(std::clamp(std::sqrt(double(call.bytes) / 16e3), 2.0, 16.0)); }
}  // namespace nearfield::spread
