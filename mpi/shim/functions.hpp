// The functions that the shim offers in place of the host's, and large-count calls to hosts that lack them.
#pragma once
#include <climits>
#include <type_traits>

#include "mpi/shim/host.hpp"

namespace nearfield::mpi {

// Reports `text` and raises an error through the communicator's error handler.
int raise(MPI_Comm comm, const char* function, const char* text, int code = MPI_ERR_OTHER);

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

// A function that a host of an older standard may lack.
template <class Function, class... Arguments>
int young(Function function, const char* name, MPI_Comm comm, Arguments... arguments) {
  if (function) return function(arguments...);
  return raise(comm, name, "this MPI library does not have it, and the communicator's messages are the library's");
}

// The host's large-count form; where it has none, its int form, as long as the counts fit.
template <class Large, class Plain, class... Arguments>
int large(Large large_form, Plain plain_form, const char* function, MPI_Comm comm, Arguments... arguments) {
  if (large_form) return large_form(arguments...);
  bool fits = true;
  ((void)narrow(arguments, fits), ...);
  if (!fits) return raise(comm, function, "this MPI library has no large-count form and the count exceeds an int");
  return young(plain_form, function, comm, narrow(arguments, fits)...);
}

int Init(int* argc, char*** argv);
int Init_thread(int* argc, char*** argv, int required, int* provided);
int Finalize();
int Session_init(MPI_Info info, MPI_Errhandler errhandler, void* session);
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
int Win_free(MPI_Win* win);

int Barrier(MPI_Comm comm);
int Bcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c);
int Bcast_c(void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c);
int Allgather(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, MPI_Comm c);
int Allgather_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, MPI_Comm c);
int Alltoall(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, MPI_Comm c);
int Alltoall_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, MPI_Comm c);
int Alltoallv(const void* s, const int* ns, const int* ds, MPI_Datatype ts, void* r, const int* nr, const int* dr,
              MPI_Datatype tr, MPI_Comm c);
int Alltoallv_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, MPI_Datatype ts, void* r, const MPI_Count* nr,
                const MPI_Aint* dr, MPI_Datatype tr, MPI_Comm c);
int Alltoallw(const void* s, const int* ns, const int* ds, const MPI_Datatype* ts, void* r, const int* nr,
              const int* dr, const MPI_Datatype* tr, MPI_Comm c);
int Alltoallw_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, const MPI_Datatype* ts, void* r,
                const MPI_Count* nr, const MPI_Aint* dr, const MPI_Datatype* tr, MPI_Comm c);
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
int Ibarrier(MPI_Comm c, MPI_Request* q);
int Iallreduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q);
int Iallreduce_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q);
int Reduce_scatter_block(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c);
int Reduce_scatter_block_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c);

// Point to point.
int Send(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Send_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Bsend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Bsend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Ssend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Ssend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Rsend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Rsend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c);
int Isend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Isend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Ibsend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Ibsend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Issend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Issend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Irsend(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Irsend_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Send_init(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Send_init_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Bsend_init(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Bsend_init_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Ssend_init(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Ssend_init_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Rsend_init(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Rsend_init_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r);
int Irecv(void* b, int n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Request* r);
int Irecv_c(void* b, MPI_Count n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Request* r);
int Recv_init(void* b, int n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Request* r);
int Recv_init_c(void* b, MPI_Count n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Request* r);
int Recv(void* b, int n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Status* s);
int Recv_c(void* b, MPI_Count n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Status* s);
int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status);
int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status);
int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status);
int Mrecv(void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Status* s);
int Mrecv_c(void* b, MPI_Count n, MPI_Datatype t, MPI_Message* m, MPI_Status* s);
int Imrecv(void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Request* r);
int Imrecv_c(void* b, MPI_Count n, MPI_Datatype t, MPI_Message* m, MPI_Request* r);
int Sendrecv(const void* s, int ns, MPI_Datatype ts, int dest, int stag, void* r, int nr, MPI_Datatype tr, int source,
             int rtag, MPI_Comm c, MPI_Status* status);
int Sendrecv_c(const void* s, MPI_Count ns, MPI_Datatype ts, int dest, int stag, void* r, MPI_Count nr, MPI_Datatype tr,
               int source, int rtag, MPI_Comm c, MPI_Status* status);
int Sendrecv_replace(void* b, int n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                     MPI_Status* status);
int Sendrecv_replace_c(void* b, MPI_Count n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                       MPI_Status* status);
int Isendrecv(const void* s, int ns, MPI_Datatype ts, int dest, int stag, void* r, int nr, MPI_Datatype tr, int source,
              int rtag, MPI_Comm c, MPI_Request* request);
int Isendrecv_c(const void* s, MPI_Count ns, MPI_Datatype ts, int dest, int stag, void* r, MPI_Count nr,
                MPI_Datatype tr, int source, int rtag, MPI_Comm c, MPI_Request* request);
int Isendrecv_replace(void* b, int n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                      MPI_Request* request);
int Isendrecv_replace_c(void* b, MPI_Count n, MPI_Datatype t, int dest, int stag, int source, int rtag, MPI_Comm c,
                        MPI_Request* request);
int Wait(MPI_Request* request, MPI_Status* status);
int Test(MPI_Request* request, int* flag, MPI_Status* status);
int Waitall(int count, MPI_Request* requests, MPI_Status* statuses);
int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);
int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status);
int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int Waitsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses);
int Testsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses);
int Request_get_status(MPI_Request request, int* flag, MPI_Status* status);
int Request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses);
int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int Request_get_status_some(int count, const MPI_Request* requests, int* out, int* indices, MPI_Status* statuses);
int X_Request_is_complete(MPI_Request request);  // MPIX_, of MPICH
int Start(MPI_Request* request);
int Startall(int count, MPI_Request* requests);
int Cancel(MPI_Request* request);
int Request_free(MPI_Request* request);
int Buffer_attach(void* buffer, int size);
int Buffer_attach_c(void* buffer, MPI_Count size);
int Buffer_detach(void* address, int* size);
int Buffer_detach_c(void* address, MPI_Count* size);
int Buffer_flush();
int Buffer_iflush(MPI_Request* request);
int Comm_attach_buffer(MPI_Comm comm, void* buffer, int size);
int Comm_attach_buffer_c(MPI_Comm comm, void* buffer, MPI_Count size);
int Comm_detach_buffer(MPI_Comm comm, void* address, int* size);
int Comm_detach_buffer_c(MPI_Comm comm, void* address, MPI_Count* size);
int Comm_flush_buffer(MPI_Comm comm);
int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request);
int Comm_dup(MPI_Comm comm, MPI_Comm* child);
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child);
int Comm_idup(MPI_Comm comm, MPI_Comm* child, MPI_Request* request);
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child, MPI_Request* request);
int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* child);
int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* child);
int Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* child);
int Cart_create(MPI_Comm comm, int dims, const int* sizes, const int* periods, int reorder, MPI_Comm* child);
int Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* child);
int Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder, MPI_Comm* child);
int Dist_graph_create(MPI_Comm comm, int n, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, MPI_Info info, int reorder, MPI_Comm* child);
int Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources, const int* source_weights, int out,
                               const int* destinations, const int* weights, MPI_Info info, int reorder,
                               MPI_Comm* child);
int Comm_revoke(MPI_Comm comm);
int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* child);
int Request_c2f(MPI_Request request);
MPI_Request Request_f2c(int number);
int Request_toint(MPI_Request request);
MPI_Request Request_fromint(int number);
int Message_c2f(MPI_Message message);
MPI_Message Message_f2c(int number);
int Message_toint(MPI_Message message);
MPI_Message Message_fromint(int number);

}  // namespace nearfield::mpi
