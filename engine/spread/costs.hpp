#pragma once
#include "engine/collectives/call.hpp"
#include "engine/spread/shape.hpp"
namespace nearfield::spread {
using collectives::Call;
double leader_cost(const Shape& s, const Call& call);
double lanes_cost(const Shape& s, const Call& call);
double pipelined_cost(const Shape& s, const Call& call);
int chunks(const Shape& s, const Call& call);
}  // namespace nearfield::spread
