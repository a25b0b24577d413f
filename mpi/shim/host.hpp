// The host MPI: its functions, called only through this table of its own addresses, and its predefined objects.
//
// Open MPI's predefined handles are addresses of data symbols. The shim must not refer to them by name, since the
// host may be loaded privately (mpi4py does); its macros are redirected to a run-time look-up here.
#pragma once
#include <mpi.h>

#include <cstdint>

#ifdef NEARFIELD_HOST_OMPI
namespace nearfield::mpi {
void* host_data(const char* symbol);  // address of a data symbol of the host; nullptr when it has none
}
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(nearfield::mpi::host_data(#global)))
#endif

namespace nearfield::mpi {

#ifdef NEARFIELD_HOST_OMPI
inline constexpr bool host_accepts_aliases = true;  // it does not look whether send and receive buffer are the same
#else
inline constexpr bool host_accepts_aliases = false;
#endif

// clang-format off
// Functions that every host has.
#define NEARFIELD_HOST_FUNCTIONS(F) \
  F(Init) F(Init_thread) F(Finalize) F(Barrier) F(Bcast) F(Reduce) F(Allreduce) F(Allgather) F(Alltoall) F(Gather) \
  F(Scatter) F(Reduce_scatter_block) F(Alloc_mem) F(Free_mem) F(Comm_set_info) F(Comm_rank) F(Comm_size) \
  F(Comm_test_inter) F(Comm_create_keyval) F(Comm_get_attr) F(Comm_set_attr) F(Comm_free_keyval) \
  F(Comm_call_errhandler) F(Iallgather) F(Iallreduce) F(Test) F(Iprobe) F(Pack) F(Unpack) F(Type_size_x) \
  F(Win_create) F(Win_allocate) F(Win_allocate_shared) F(Win_create_dynamic) F(Type_get_extent) F(Info_get_nkeys) \
  F(Info_get) F(Abort) F(Initialized)

// Large-count forms; a host of an older standard lacks them.
#define NEARFIELD_LARGE_FUNCTIONS(F)                                                                  \
  F(Bcast_c, (void*, MPI_Count, MPI_Datatype, int, MPI_Comm))                                         \
  F(Reduce_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm))                   \
  F(Allreduce_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm))                     \
  F(Allgather_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm))    \
  F(Alltoall_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm))     \
  F(Gather_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int, MPI_Comm))  \
  F(Scatter_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int, MPI_Comm)) \
  F(Reduce_scatter_block_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm))          \
  F(Win_create_c, (void*, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win*))                          \
  F(Win_allocate_c, (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*))                        \
  F(Win_allocate_shared_c, (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*))

// clang-format on

struct Host {
#define F(name) decltype(&PMPI_##name) name;
  NEARFIELD_HOST_FUNCTIONS(F)
#undef F
#define F(name, arguments) int(*name) arguments;
  NEARFIELD_LARGE_FUNCTIONS(F)
#undef F
  int (*Comm_is_revoked)(MPI_Comm, int*);  // fault-tolerant hosts only
  MPI_Comm world, self;
  MPI_Comm comm_null;
  MPI_Datatype type_null;
};
extern Host host;

// Fills the table from the host's handle; false (with a line in the log) when the host lacks something.
bool bind_host(void* library);

}  // namespace nearfield::mpi
