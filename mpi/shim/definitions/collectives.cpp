// Made by scripts/functions.py from mpi/functions.toml and the standard's machine-readable form: functions, each
// with the class that serves it (in the headers below).
// clang-format off
#include "mpi/shim/collectives/engine/classes.hpp"

namespace nearfield::mpi {

// MPI_Bcast
int Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return blocking<Function::Bcast, classes::one_buffer<Collective::bcast>>(buffer, count, datatype, root, comm);
}

// MPI_Bcast_c
int Bcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return blocking<Function::Bcast_c, classes::one_buffer<Collective::bcast>>(buffer, count, datatype, root, comm);
}

// MPI_Ibcast
int Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ibcast, classes::one_buffer<Collective::bcast>>(request, buffer, count, datatype, root,
      comm);
}

// MPI_Ibcast_c
int Ibcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ibcast_c, classes::one_buffer<Collective::bcast>>(request, buffer, count, datatype,
      root, comm);
}

// MPI_Bcast_init
int Bcast_init(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Bcast_init, classes::one_buffer<Collective::bcast>>(info, request, buffer, count,
      datatype, root, comm);
}

// MPI_Bcast_init_c
int Bcast_init_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Bcast_init_c, classes::one_buffer<Collective::bcast>>(info, request, buffer, count,
      datatype, root, comm);
}

// MPI_Allgather
int Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Allgather, classes::blocks<Collective::allgather>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcount, recvtype, comm);
}

// MPI_Allgather_c
int Allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Allgather_c, classes::blocks<Collective::allgather>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcount, recvtype, comm);
}

// MPI_Iallgather
int Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iallgather, classes::blocks<Collective::allgather>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Iallgather_c
int Iallgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iallgather_c, classes::blocks<Collective::allgather>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Allgather_init
int Allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Allgather_init, classes::blocks<Collective::allgather>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Allgather_init_c
int Allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Allgather_init_c, classes::blocks<Collective::allgather>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Alltoall
int Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Alltoall, classes::blocks<Collective::alltoall>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcount, recvtype, comm);
}

// MPI_Alltoall_c
int Alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Alltoall_c, classes::blocks<Collective::alltoall>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcount, recvtype, comm);
}

// MPI_Ialltoall
int Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ialltoall, classes::blocks<Collective::alltoall>>(request, sendbuf, sendcount, sendtype,
      recvbuf, recvcount, recvtype, comm);
}

// MPI_Ialltoall_c
int Ialltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ialltoall_c, classes::blocks<Collective::alltoall>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Alltoall_init
int Alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Alltoall_init, classes::blocks<Collective::alltoall>>(info, request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Alltoall_init_c
int Alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Alltoall_init_c, classes::blocks<Collective::alltoall>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Gather
int Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Gather, classes::rooted_blocks<Collective::gather>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcount, recvtype, root, comm);
}

// MPI_Gather_c
int Gather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Gather_c, classes::rooted_blocks<Collective::gather>>(sendbuf, sendcount, sendtype,
      recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Igather
int Igather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Igather, classes::rooted_blocks<Collective::gather>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Igather_c
int Igather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Igather_c, classes::rooted_blocks<Collective::gather>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Gather_init
int Gather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Gather_init, classes::rooted_blocks<Collective::gather>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Gather_init_c
int Gather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Gather_init_c, classes::rooted_blocks<Collective::gather>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatter
int Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Scatter, classes::rooted_blocks<Collective::scatter>>(sendbuf, sendcount, sendtype,
      recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatter_c
int Scatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Scatter_c, classes::rooted_blocks<Collective::scatter>>(sendbuf, sendcount, sendtype,
      recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Iscatter
int Iscatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iscatter, classes::rooted_blocks<Collective::scatter>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Iscatter_c
int Iscatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iscatter_c, classes::rooted_blocks<Collective::scatter>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatter_init
int Scatter_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Scatter_init, classes::rooted_blocks<Collective::scatter>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatter_init_c
int Scatter_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Scatter_init_c, classes::rooted_blocks<Collective::scatter>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Reduce
int Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) {
  return blocking<Function::Reduce, classes::rooted_reduction<Collective::reduce>>(sendbuf, recvbuf, count, datatype,
      op, root, comm);
}

// MPI_Reduce_c
int Reduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm) {
  return blocking<Function::Reduce_c, classes::rooted_reduction<Collective::reduce>>(sendbuf, recvbuf, count, datatype,
      op, root, comm);
}

// MPI_Ireduce
int Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Ireduce, classes::rooted_reduction<Collective::reduce>>(request, sendbuf, recvbuf,
      count, datatype, op, root, comm);
}

// MPI_Ireduce_c
int Ireduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ireduce_c, classes::rooted_reduction<Collective::reduce>>(request, sendbuf, recvbuf,
      count, datatype, op, root, comm);
}

// MPI_Reduce_init
int Reduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Reduce_init, classes::rooted_reduction<Collective::reduce>>(info, request, sendbuf,
      recvbuf, count, datatype, op, root, comm);
}

// MPI_Reduce_init_c
int Reduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Reduce_init_c, classes::rooted_reduction<Collective::reduce>>(info, request, sendbuf,
      recvbuf, count, datatype, op, root, comm);
}

// MPI_Allreduce
int Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return blocking<Function::Allreduce, classes::reduction<Collective::allreduce>>(sendbuf, recvbuf, count, datatype,
      op, comm);
}

// MPI_Allreduce_c
int Allreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return blocking<Function::Allreduce_c, classes::reduction<Collective::allreduce>>(sendbuf, recvbuf, count, datatype,
      op, comm);
}

// MPI_Iallreduce
int Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Iallreduce, classes::reduction<Collective::allreduce>>(request, sendbuf, recvbuf, count,
      datatype, op, comm);
}

// MPI_Iallreduce_c
int Iallreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Iallreduce_c, classes::reduction<Collective::allreduce>>(request, sendbuf, recvbuf,
      count, datatype, op, comm);
}

// MPI_Allreduce_init
int Allreduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Allreduce_init, classes::reduction<Collective::allreduce>>(info, request, sendbuf,
      recvbuf, count, datatype, op, comm);
}

// MPI_Allreduce_init_c
int Allreduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Allreduce_init_c, classes::reduction<Collective::allreduce>>(info, request, sendbuf,
      recvbuf, count, datatype, op, comm);
}

// MPI_Reduce_scatter_block
int Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm) {
  return blocking<Function::Reduce_scatter_block, classes::reduction<Collective::reduce_scatter_block>>(sendbuf,
      recvbuf, recvcount, datatype, op, comm);
}

// MPI_Reduce_scatter_block_c
int Reduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm) {
  return blocking<Function::Reduce_scatter_block_c, classes::reduction<Collective::reduce_scatter_block>>(sendbuf,
      recvbuf, recvcount, datatype, op, comm);
}

// MPI_Ireduce_scatter_block
int Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ireduce_scatter_block, classes::reduction<Collective::reduce_scatter_block>>(request,
      sendbuf, recvbuf, recvcount, datatype, op, comm);
}

// MPI_Ireduce_scatter_block_c
int Ireduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ireduce_scatter_block_c, classes::reduction<Collective::reduce_scatter_block>>(request,
      sendbuf, recvbuf, recvcount, datatype, op, comm);
}

// MPI_Reduce_scatter_block_init
int Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Reduce_scatter_block_init, classes::reduction<Collective::reduce_scatter_block>>(info,
      request, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

// MPI_Reduce_scatter_block_init_c
int Reduce_scatter_block_init_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Reduce_scatter_block_init_c, classes::reduction<Collective::reduce_scatter_block>>(info,
      request, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

// MPI_Reduce_scatter
int Reduce_scatter(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm) {
  return blocking<Function::Reduce_scatter, classes::parted_reduction<Collective::reduce_scatter>>(sendbuf, recvbuf,
      recvcounts, datatype, op, comm);
}

// MPI_Reduce_scatter_c
int Reduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm) {
  return blocking<Function::Reduce_scatter_c, classes::parted_reduction<Collective::reduce_scatter>>(sendbuf, recvbuf,
      recvcounts, datatype, op, comm);
}

// MPI_Ireduce_scatter
int Ireduce_scatter(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ireduce_scatter, classes::parted_reduction<Collective::reduce_scatter>>(request,
      sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

// MPI_Ireduce_scatter_c
int Ireduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ireduce_scatter_c, classes::parted_reduction<Collective::reduce_scatter>>(request,
      sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

// MPI_Reduce_scatter_init
int Reduce_scatter_init(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Reduce_scatter_init, classes::parted_reduction<Collective::reduce_scatter>>(info,
      request, sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

// MPI_Reduce_scatter_init_c
int Reduce_scatter_init_c(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Reduce_scatter_init_c, classes::parted_reduction<Collective::reduce_scatter>>(info,
      request, sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

// MPI_Scan
int Scan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return blocking<Function::Scan, classes::reduction<Collective::scan>>(sendbuf, recvbuf, count, datatype, op, comm);
}

// MPI_Scan_c
int Scan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return blocking<Function::Scan_c, classes::reduction<Collective::scan>>(sendbuf, recvbuf, count, datatype, op, comm);
}

// MPI_Iscan
int Iscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Iscan, classes::reduction<Collective::scan>>(request, sendbuf, recvbuf, count, datatype,
      op, comm);
}

// MPI_Iscan_c
int Iscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Iscan_c, classes::reduction<Collective::scan>>(request, sendbuf, recvbuf, count,
      datatype, op, comm);
}

// MPI_Scan_init
int Scan_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Scan_init, classes::reduction<Collective::scan>>(info, request, sendbuf, recvbuf, count,
      datatype, op, comm);
}

// MPI_Scan_init_c
int Scan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Scan_init_c, classes::reduction<Collective::scan>>(info, request, sendbuf, recvbuf,
      count, datatype, op, comm);
}

// MPI_Exscan
int Exscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return blocking<Function::Exscan, classes::reduction<Collective::exscan>>(sendbuf, recvbuf, count, datatype, op,
      comm);
}

// MPI_Exscan_c
int Exscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return blocking<Function::Exscan_c, classes::reduction<Collective::exscan>>(sendbuf, recvbuf, count, datatype, op,
      comm);
}

// MPI_Iexscan
int Iexscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Iexscan, classes::reduction<Collective::exscan>>(request, sendbuf, recvbuf, count,
      datatype, op, comm);
}

// MPI_Iexscan_c
int Iexscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Iexscan_c, classes::reduction<Collective::exscan>>(request, sendbuf, recvbuf, count,
      datatype, op, comm);
}

// MPI_Exscan_init
int Exscan_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Exscan_init, classes::reduction<Collective::exscan>>(info, request, sendbuf, recvbuf,
      count, datatype, op, comm);
}

// MPI_Exscan_init_c
int Exscan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Exscan_init_c, classes::reduction<Collective::exscan>>(info, request, sendbuf, recvbuf,
      count, datatype, op, comm);
}

}  // namespace nearfield::mpi
