// Handles that are pointers: one of ours is the address of its object with the lowest bit set. The host's objects are
// aligned, and its predefined handles lie in the first page or in its library.
#pragma once
#include <cstdint>

namespace nearfield::mpi::abi {

template <class Handle>
bool is_ours(Handle handle) {
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return (bits & 1) && bits > 4095;
}
// Returns the handle of our object at address `at` with the number `index`, from 1 to below most_handles.
template <class Handle>
Handle handle_of(const void* at, std::uint32_t /*index*/) {
  return reinterpret_cast<Handle>(reinterpret_cast<std::uintptr_t>(at) + 1);
}
// pre: is_ours(handle). `find` returns an object by its number.
template <class Object, class Handle, class Find>
Object* object_of(Handle handle, const Find& /*find*/) {
  return reinterpret_cast<Object*>(reinterpret_cast<std::uintptr_t>(handle) - 1);
}

// Convert handles to integers and back (MPI_X_toint, MPI_X_fromint, MPI_X_c2f, MPI_X_f2c) by calling `convert`.
template <class Handle, class Convert>
int integer_of(Handle handle, const Convert& convert) {
  return convert(handle);
}
template <class Handle, class Convert>
Handle of_integer(int number, const Convert& convert) {
  return convert(number);
}

}  // namespace nearfield::mpi::abi
