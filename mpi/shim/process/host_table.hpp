// The host's functions, called only through a table of their addresses, and its predefined objects.
#pragma once
#include <mpi.h>

#include <cstdint>

namespace nearfield::mpi {

// clang-format off
// Functions that we call beside those that we offer (mpi/functions.def): functions of every host ...
#define NEARFIELD_HOST_FUNCTIONS(F) \
  F(Comm_rank) F(Comm_size) F(Comm_get_name) F(Comm_test_inter) F(Comm_remote_size) F(Comm_create_keyval) F(Comm_get_attr) F(Comm_set_attr) \
  F(Comm_free_keyval) F(Comm_call_errhandler) F(Comm_get_errhandler) F(Comm_set_errhandler) F(Errhandler_free) F(Reduce_local) F(Win_call_errhandler) F(Win_get_errhandler) F(Group_translate_ranks) F(Group_size) \
  F(Pack) F(Unpack) F(Info_get_nkeys) F(Info_get) F(Abort) F(Error_string) F(Initialized) F(Query_thread) F(Get_library_version) \
  F(Status_set_elements_x) F(Status_set_cancelled) F(Test_cancelled) F(Get_elements_x) F(Topo_test) F(Cartdim_get) F(Cart_shift) F(Graph_neighbors_count) \
  F(Graph_neighbors) F(Dist_graph_neighbors_count) F(Dist_graph_neighbors) F(Type_size_x) F(Type_get_extent) F(Type_get_true_extent) F(Type_get_envelope) \
  F(Type_get_contents) F(Type_contiguous) F(Type_commit) F(Type_create_keyval) F(Type_get_attr) F(Type_set_attr)

// ... and functions that some hosts or headers lack.
#define NEARFIELD_OPTIONAL_FUNCTIONS(F)                                                                              \
  F(File_call_errhandler, (MPI_File, int))                                                                           \
  F(Info_free, (MPI_Info*))                                                                                          \
  F(T_category_get_info, (int, char*, int*, char*, int*, int*, int*, int*))                                          \
  F(X_Request_is_complete, (MPI_Request))                                                                            \
  F(I_Win_get_attr, (MPI_Win, int, void*, int*, int))                                                                \
  F(Pack_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*, MPI_Comm))                          \
  F(Unpack_c, (const void*, MPI_Count, MPI_Count*, void*, MPI_Count, MPI_Datatype, MPI_Comm))                        \
  F(Type_get_envelope_c, (MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*))                       \
  F(Type_get_contents_c, (MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int*, MPI_Aint*, MPI_Count*,     \
                          MPI_Datatype*))
// clang-format on

struct Host {
#define OURS(name, result, parameters, ...) int(*name) parameters;
#define HANDLE(...)
#define BLOCKING(...) OURS(__VA_ARGS__)
#include "mpi/functions.def"
#define F(name) decltype(&PMPI_##name) name;
  NEARFIELD_HOST_FUNCTIONS(F)
#undef F
#define F(name, arguments) int(*name) arguments;
  NEARFIELD_OPTIONAL_FUNCTIONS(F)
#undef F
  // Convert between handles and integers, if handles are no integers: Open MPI's c2f and f2c, else toint and fromint.
  int (*request_to_int)(MPI_Request);
  MPI_Request (*request_from_int)(int);
  MPI_Win (*window_from_int)(int);
  int (*message_to_int)(MPI_Message);
  MPI_Message (*message_from_int)(int);
#if MPI_VERSION >= 4
  int (*Session_get_info)(MPI_Session, MPI_Info*);
#endif
  // Fault-tolerant hosts only (MPIX_).
  int (*Comm_is_revoked)(MPI_Comm, int*);
  int (*Comm_revoke)(MPI_Comm);
  int (*Comm_failure_ack)(MPI_Comm);
  int (*Comm_failure_get_acked)(MPI_Comm, MPI_Group*);
  MPI_Comm world, self;
  MPI_Comm comm_null;
  MPI_Datatype type_null, byte;
  MPI_Request request_null;
  MPI_Message message_null, message_no_proc;
  int* unweighted;
};

}  // namespace nearfield::mpi
