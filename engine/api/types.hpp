// Maps types and operators of the C API to those of the kernels.
#pragma once
#include <nearfield.h>

#include <cstddef>

#include "engine/collectives/call.hpp"

namespace nearfield::api {

// Bytes of an element. Throws Failed: there is no such type.
std::size_t bytes_of(nf_type type);

// A call of the engine. `averages`: it sums, and scale_result() divides the sums.
struct CollectiveCall {
  collectives::Call call;
  bool averages = false;
};
// Throws Failed: there is no such type or operator, or it is not defined for the type.
CollectiveCall reduction(collectives::Collective collective, std::size_t count, nf_type type, nf_op op);

}  // namespace nearfield::api
