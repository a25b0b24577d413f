// MPICH and its family, which includes Intel MPI: handles are integers whose highest bits are their kind.
#pragma once
#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "mpi/shim/abi/toint.hpp"

namespace nearfield::mpi::abi {

// A kind of requests and messages that no host makes; the lower bits are the number of the object.
inline constexpr std::uint32_t own_kind = 0x2c000000, index_bits = 0x03ffffff;

template <class Handle>
bool is_ours(Handle handle) {
  const auto bits = std::uint32_t(handle);
  return bits >> 26 == own_kind >> 26 && bits != own_kind;
}
template <class Handle>
Handle handle_of(const void* /*at*/, std::uint32_t index) {
  return Handle(own_kind | index);
}
template <class Object, class Handle, class Find>
Object* object_of(Handle handle, const Find& find) {
  return find(std::uint32_t(handle) & index_bits);
}
template <class Handle, class Convert>
int integer_of(Handle handle, const Convert& /*convert*/) {
  return int(handle);
}
template <class Handle, class Convert>
Handle of_integer(int number, const Convert& /*convert*/) {
  return Handle(number);
}

// True: Fortran's bindings read attributes of windows by a function that we serve, I_Win_get_attr.
inline constexpr bool knows_fortran_keys = true;
inline std::optional<MPI_Datatype> float16() { return MPIX_C_FLOAT16; }
// Reads a variable of the host's, which must not be referred to by name.
inline int* unweighted(void* (*find)(const char*)) {
  int* value = nullptr;
  if (void* const variable = find("MPI_UNWEIGHTED")) std::memcpy(&value, variable, sizeof value);
  return value;
}

}  // namespace nearfield::mpi::abi
