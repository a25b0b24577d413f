// Which MPI libraries Nearfield serves: their SONAMEs and their MPI_Get_library_version tell.
#pragma once

namespace nearfield::preload {

// Returns whether a library of that name may be one of them. Calls nothing of the library.
bool known_by_name(const char* soname);

// Returns the ABI of the library, which is also the name of its shim: "mpich", "ompi" or "abi"; nullptr and the reason
// if the library is not known. `find` looks a symbol up in the library and in those that it depends on: in Open MPI 6
// libmpi has only functions.
const char* known_abi(const char* soname, void* (*find)(const char*), const char*& reason);

}  // namespace nearfield::preload
