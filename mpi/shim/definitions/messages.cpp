// Made by scripts/functions.py from mpi/functions.toml and the standard's machine-readable form: functions, each
// with the class that serves it (in the headers below).
// clang-format off
#include "mpi/shim/p2p/sending.hpp"
#include "mpi/shim/p2p/receiving.hpp"
#include "mpi/shim/p2p/sendrecv.hpp"

namespace nearfield::mpi {

// MPI_Send
int Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Send, SendMode::standard, Function::Isend>(buf, count, datatype, dest, tag, comm);
}

// MPI_Send_c
int Send_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Send_c, SendMode::standard, Function::Isend_c>(buf, count, datatype, dest, tag, comm);
}

// MPI_Bsend
int Bsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Bsend, SendMode::buffered, Function::Ibsend>(buf, count, datatype, dest, tag, comm);
}

// MPI_Bsend_c
int Bsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Bsend_c, SendMode::buffered, Function::Ibsend_c>(buf, count, datatype, dest, tag, comm);
}

// MPI_Ssend
int Ssend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Ssend, SendMode::synchronous, Function::Issend>(buf, count, datatype, dest, tag, comm);
}

// MPI_Ssend_c
int Ssend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Ssend_c, SendMode::synchronous, Function::Issend_c>(buf, count, datatype, dest, tag, comm);
}

// MPI_Rsend
int Rsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Rsend, SendMode::ready, Function::Irsend>(buf, count, datatype, dest, tag, comm);
}

// MPI_Rsend_c
int Rsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send<Function::Rsend_c, SendMode::ready, Function::Irsend_c>(buf, count, datatype, dest, tag, comm);
}

// MPI_Isend
int Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  return make_send<Function::Isend, SendMode::standard, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Isend_c
int Isend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Isend_c, SendMode::standard, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Ibsend
int Ibsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  return make_send<Function::Ibsend, SendMode::buffered, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Ibsend_c
int Ibsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Ibsend_c, SendMode::buffered, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Issend
int Issend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  return make_send<Function::Issend, SendMode::synchronous, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Issend_c
int Issend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Issend_c, SendMode::synchronous, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Irsend
int Irsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  return make_send<Function::Irsend, SendMode::ready, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Irsend_c
int Irsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Irsend_c, SendMode::ready, false>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Send_init
int Send_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Send_init, SendMode::standard, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Send_init_c
int Send_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Send_init_c, SendMode::standard, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Bsend_init
int Bsend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Bsend_init, SendMode::buffered, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Bsend_init_c
int Bsend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Bsend_init_c, SendMode::buffered, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Ssend_init
int Ssend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Ssend_init, SendMode::synchronous, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Ssend_init_c
int Ssend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Ssend_init_c, SendMode::synchronous, true>(buf, count, datatype, dest, tag, comm,
      request);
}

// MPI_Rsend_init
int Rsend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Rsend_init, SendMode::ready, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Rsend_init_c
int Rsend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_send<Function::Rsend_init_c, SendMode::ready, true>(buf, count, datatype, dest, tag, comm, request);
}

// MPI_Recv
int Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return receive<Function::Recv, Function::Irecv>(buf, count, datatype, source, tag, comm, status);
}

// MPI_Recv_c
int Recv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return receive<Function::Recv_c, Function::Irecv_c>(buf, count, datatype, source, tag, comm, status);
}

// MPI_Irecv
int Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return make_receive<Function::Irecv, false>(buf, count, datatype, source, tag, comm, request);
}

// MPI_Irecv_c
int Irecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_receive<Function::Irecv_c, false>(buf, count, datatype, source, tag, comm, request);
}

// MPI_Recv_init
int Recv_init(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return make_receive<Function::Recv_init, true>(buf, count, datatype, source, tag, comm, request);
}

// MPI_Recv_init_c
int Recv_init_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
    MPI_Request* request) {
  return make_receive<Function::Recv_init_c, true>(buf, count, datatype, source, tag, comm, request);
}

// MPI_Sendrecv
int Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
    int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return sendrecv<Function::Sendrecv>(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
      source, recvtag, comm, status);
}

// MPI_Sendrecv_c
int Sendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return sendrecv<Function::Sendrecv_c>(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
      source, recvtag, comm, status);
}

// MPI_Sendrecv_replace
int Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
    MPI_Comm comm, MPI_Status* status) {
  return sendrecv_replace<Function::Sendrecv_replace>(buf, count, datatype, dest, sendtag, source, recvtag, comm,
      status);
}

// MPI_Sendrecv_replace_c
int Sendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
    int recvtag, MPI_Comm comm, MPI_Status* status) {
  return sendrecv_replace<Function::Sendrecv_replace_c>(buf, count, datatype, dest, sendtag, source, recvtag, comm,
      status);
}

// MPI_Isendrecv
int Isendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
    int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return sendrecv<Function::Isendrecv>(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
      source, recvtag, comm, request);
}

// MPI_Isendrecv_c
int Isendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return sendrecv<Function::Isendrecv_c>(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
      source, recvtag, comm, request);
}

// MPI_Isendrecv_replace
int Isendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
    MPI_Comm comm, MPI_Request* request) {
  return sendrecv_replace<Function::Isendrecv_replace>(buf, count, datatype, dest, sendtag, source, recvtag, comm,
      request);
}

// MPI_Isendrecv_replace_c
int Isendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
    int recvtag, MPI_Comm comm, MPI_Request* request) {
  return sendrecv_replace<Function::Isendrecv_replace_c>(buf, count, datatype, dest, sendtag, source, recvtag, comm,
      request);
}

}  // namespace nearfield::mpi
