// Which MPI libraries Nearfield serves, by their names and by what they say they are.
#pragma once

namespace nearfield::preload {

// Whether the name may be one's; said before anything of it is called.
bool known_by_name(const char* soname);

// The ABI of the library of that name, and the name of the shim for it: "mpich", "ompi" or "abi"; nullptr, with the
// reason: it is not known. `find` returns its symbol of a name, or of a library below it: in Open MPI 6 libmpi has
// functions alone.
const char* known_abi(const char* soname, void* (*find)(const char*), const char*& reason);

}  // namespace nearfield::preload
