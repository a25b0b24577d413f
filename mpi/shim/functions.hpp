// The functions that the shim offers in place of the host's, and large-count calls to hosts that lack them.
#pragma once
#include <climits>
#include <type_traits>

#include "mpi/shim/host.hpp"

namespace nearfield::mpi {

int raise(MPI_Comm comm, const char* function, const char* text);

// An argument for the int form of a function: counts are narrowed, everything else passes.
template <class T>
auto narrow(T value, bool& fits) {
  if constexpr (std::is_same_v<T, MPI_Count>) {
    if (value > INT_MAX || value < INT_MIN) fits = false;
    return int(value);
  } else {
    return value;
  }
}

// The host's large-count form; where it has none, its int form, as long as the counts fit.
template <class Large, class Plain, class... Arguments>
int large(Large large_form, Plain plain_form, const char* function, MPI_Comm comm, Arguments... arguments) {
  if (large_form) return large_form(arguments...);
  bool fits = true;
  ((void)narrow(arguments, fits), ...);
  if (!fits) return raise(comm, function, "this MPI library has no large-count form and the count exceeds an int");
  return plain_form(narrow(arguments, fits)...);
}

int Init(int* argc, char*** argv);
int Init_thread(int* argc, char*** argv, int required, int* provided);
int Finalize();
int Alloc_mem(MPI_Aint size, MPI_Info info, void* base_pointer);
int Free_mem(void* base);
int Comm_set_info(MPI_Comm comm, MPI_Info info);

int Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win);

int Barrier(MPI_Comm comm);
int Bcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c);
int Bcast_c(void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c);
int Allgather(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, MPI_Comm c);
int Allgather_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, MPI_Comm c);
int Alltoall(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, MPI_Comm c);
int Alltoall_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, MPI_Comm c);
int Gather(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, int root, MPI_Comm c);
int Gather_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, int root,
             MPI_Comm c);
int Scatter(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, int root, MPI_Comm c);
int Scatter_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, int root,
              MPI_Comm c);
int Reduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c);
int Reduce_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c);
int Allreduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c);
int Allreduce_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c);
int Reduce_scatter_block(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c);
int Reduce_scatter_block_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c);

}  // namespace nearfield::mpi
