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

// Whether the host raises an error where a rank's own block lies at one address in send and receive buffer. Open MPI
// does not look; the MPICH family does, unless MPIR_CVAR_COLL_ALIAS_CHECK forbids it. Where it does not, equal
// addresses mean in place.
extern bool host_rejects_aliases;
// Whether it is an error on this host to expect more of a bcast than the root sends.
#ifdef NEARFIELD_HOST_OMPI
inline constexpr bool host_compares_lengths = false;
#else
inline constexpr bool host_compares_lengths = true;
#endif

// clang-format off
// Functions that every host has.
#define NEARFIELD_HOST_FUNCTIONS(F) \
  F(Init) F(Init_thread) F(Finalize) F(Barrier) F(Bcast) F(Reduce) F(Allreduce) F(Allgather) F(Alltoall) F(Gather) \
  F(Alltoallv) F(Alltoallw) \
  F(Scatter) F(Reduce_scatter_block) F(Alloc_mem) F(Free_mem) F(Comm_set_info) F(Comm_rank) F(Comm_size) \
  F(Comm_test_inter) F(Comm_remote_size) F(Comm_create_keyval) F(Comm_get_attr) F(Comm_set_attr) F(Comm_free_keyval) \
  F(Comm_call_errhandler) F(Iallgather) F(Iallreduce) F(Ibarrier) F(Test) F(Pack) F(Unpack) F(Type_size_x) \
  F(Win_create) F(Win_allocate) F(Win_allocate_shared) F(Win_create_dynamic) F(Win_free) F(Type_get_extent) F(Info_get_nkeys) \
  F(Info_get) F(Abort) F(Initialized) F(Query_thread) \
  F(Send) F(Bsend) F(Ssend) F(Rsend) F(Recv) F(Isend) F(Ibsend) F(Issend) F(Irsend) F(Irecv) F(Send_init) \
  F(Bsend_init) F(Ssend_init) F(Rsend_init) F(Recv_init) F(Sendrecv) F(Sendrecv_replace) F(Probe) F(Iprobe) F(Mprobe) \
  F(Improbe) F(Mrecv) F(Imrecv) F(Start) F(Startall) F(Wait) F(Waitall) F(Waitany) F(Waitsome) F(Testall) F(Testany) \
  F(Testsome) F(Request_free) F(Request_get_status) F(Cancel) F(Buffer_attach) F(Buffer_detach) F(Status_set_elements_x) F(Status_set_cancelled) \
  F(Comm_group) F(Group_translate_ranks) F(Group_free) F(Group_size) F(Comm_dup) F(Comm_dup_with_info) F(Comm_idup) \
  F(Comm_create) F(Comm_create_group) F(Comm_split) F(Comm_split_type) F(Cart_create) F(Cart_sub) F(Graph_create) \
  F(Dist_graph_create) F(Dist_graph_create_adjacent) F(Type_get_envelope) F(Type_get_contents) F(Type_free) \
  F(Topo_test) F(Cartdim_get) F(Graph_neighbors_count) F(Dist_graph_neighbors_count) \
  F(Type_get_true_extent) F(Type_contiguous) F(Type_commit) F(Type_create_keyval) F(Type_get_attr) F(Type_set_attr)

// Large-count forms; a host of an older standard lacks them.
#define NEARFIELD_LARGE_FUNCTIONS(F)                                                                  \
  F(Bcast_c, (void*, MPI_Count, MPI_Datatype, int, MPI_Comm))                                         \
  F(Reduce_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm))                   \
  F(Allreduce_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm))                     \
  F(Iallreduce_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*))      \
  F(Allgather_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm))    \
  F(Alltoall_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm))     \
  F(Gather_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int, MPI_Comm))  \
  F(Scatter_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int, MPI_Comm)) \
  F(Reduce_scatter_block_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm))          \
  F(Win_create_c, (void*, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win*))                          \
  F(Win_allocate_c, (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*))                        \
  F(Win_allocate_shared_c, (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*))


// What not every host or header has.
#define NEARFIELD_OPTIONAL_FUNCTIONS(F)                                                                              \
  F(Alltoallv_c, (const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, const MPI_Count*,             \
                  const MPI_Aint*, MPI_Datatype, MPI_Comm))                                                          \
  F(Alltoallw_c, (const void*, const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, void*, const MPI_Count*,      \
                  const MPI_Aint*, const MPI_Datatype*, MPI_Comm))                                                   \
  F(Send_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm))                                              \
  F(Bsend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm))                                             \
  F(Ssend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm))                                             \
  F(Rsend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm))                                             \
  F(Recv_c, (void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))                                       \
  F(Isend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                               \
  F(Ibsend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                              \
  F(Issend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                              \
  F(Irsend_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                              \
  F(Irecv_c, (void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                                     \
  F(Send_init_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                           \
  F(Bsend_init_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                          \
  F(Ssend_init_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                          \
  F(Rsend_init_c, (const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                          \
  F(Recv_init_c, (void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))                                 \
  F(Sendrecv_c, (const void*, MPI_Count, MPI_Datatype, int, int, void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, \
                 MPI_Status*))                                                                                       \
  F(Sendrecv_replace_c, (void*, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status*))                 \
  F(Isendrecv, (const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm,              \
                MPI_Request*))                                                                                       \
  F(Isendrecv_c, (const void*, MPI_Count, MPI_Datatype, int, int, void*, MPI_Count, MPI_Datatype, int, int,          \
                  MPI_Comm, MPI_Request*))                                                                           \
  F(Isendrecv_replace, (void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*))                       \
  F(Isendrecv_replace_c, (void*, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*))               \
  F(Mrecv_c, (void*, MPI_Count, MPI_Datatype, MPI_Message*, MPI_Status*))                                            \
  F(Imrecv_c, (void*, MPI_Count, MPI_Datatype, MPI_Message*, MPI_Request*))                                          \
  F(Request_get_status_all, (int, const MPI_Request*, int*, MPI_Status*))                                            \
  F(Request_get_status_any, (int, const MPI_Request*, int*, int*, MPI_Status*))                                      \
  F(Request_get_status_some, (int, const MPI_Request*, int*, int*, MPI_Status*))                                     \
  F(Buffer_attach_c, (void*, MPI_Count))                                                                             \
  F(Buffer_detach_c, (void*, MPI_Count*))                                                                            \
  F(Buffer_flush, (void))                                                                                            \
  F(Buffer_iflush, (MPI_Request*))                                                                                   \
  F(Comm_attach_buffer, (MPI_Comm, void*, int))                                                                      \
  F(Comm_attach_buffer_c, (MPI_Comm, void*, MPI_Count))                                                              \
  F(Comm_detach_buffer, (MPI_Comm, void*, int*))                                                                     \
  F(Comm_detach_buffer_c, (MPI_Comm, void*, MPI_Count*))                                                             \
  F(Comm_flush_buffer, (MPI_Comm))                                                                                   \
  F(Comm_iflush_buffer, (MPI_Comm, MPI_Request*))                                                                    \
  F(Comm_idup_with_info, (MPI_Comm, MPI_Info, MPI_Comm*, MPI_Request*))                                              \
  F(File_call_errhandler, (MPI_File, int))                                                                           \
  F(Info_free, (MPI_Info*))                                                                                          \
  F(Session_init, (MPI_Info, MPI_Errhandler, void*))                                                                 \
  F(X_Request_is_complete, (MPI_Request))                                                                            \
  F(Pack_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*, MPI_Comm))                           \
  F(Unpack_c, (const void*, MPI_Count, MPI_Count*, void*, MPI_Count, MPI_Datatype, MPI_Comm))                        \
  F(Type_get_envelope_c, (MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*))                       \
  F(Type_get_contents_c, (MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int*, MPI_Aint*, MPI_Count*,     \
                          MPI_Datatype*))

// clang-format on

struct Host {
#define F(name) decltype(&PMPI_##name) name;
  NEARFIELD_HOST_FUNCTIONS(F)
#undef F
#define F(name, arguments) int(*name) arguments;
#define L(name, arguments) int(*name##_c) arguments;
  NEARFIELD_LARGE_FUNCTIONS(F)
  NEARFIELD_OPTIONAL_FUNCTIONS(F)
#include "mpi/shim/signatures.def"
#undef F
#undef L
  // Between handles and Fortran's integers, where they differ: c2f and f2c of Open MPI, toint and fromint of the ABI.
  int (*request_to_int)(MPI_Request);
  MPI_Request (*request_from_int)(int);
  int (*message_to_int)(MPI_Message);
  MPI_Message (*message_from_int)(int);
#if MPI_VERSION >= 4
  int (*Session_get_info)(MPI_Session, MPI_Info*);
#endif
  // Fault-tolerant hosts only (MPIX_).
  int (*Comm_is_revoked)(MPI_Comm, int*);
  int (*Comm_revoke)(MPI_Comm);
  MPI_Comm world, self;
  MPI_Comm comm_null;
  MPI_Datatype type_null, byte;
  MPI_Request request_null;
  MPI_Message message_null, message_no_proc;
};
extern Host host;

// Fills the table from the host's handle; false (with a line in the log) when the host lacks something.
// Functions are looked up here alone: afterwards the host's symbol table leads to Nearfield (mpi/preload/preload.cpp).
bool bind_host(void* library);

}  // namespace nearfield::mpi
