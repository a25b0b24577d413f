// Made by scripts/functions.py from mpi/functions.toml and the standard's machine-readable form: functions, each
// with the class that serves it (in the headers below).
// clang-format off
#include "mpi/shim/collectives/vector/classes.hpp"

namespace nearfield::mpi {

// MPI_Allgatherv
int Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
    const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Allgatherv, classes::all_gathered<Collective::allgatherv>>(sendbuf, sendcount, sendtype,
      recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Allgatherv_c
int Allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Allgatherv_c, classes::all_gathered<Collective::allgatherv>>(sendbuf, sendcount, sendtype,
      recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Iallgatherv
int Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
    const int* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iallgatherv, classes::all_gathered<Collective::allgatherv>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Iallgatherv_c
int Iallgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iallgatherv_c, classes::all_gathered<Collective::allgatherv>>(request, sendbuf,
      sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Allgatherv_init
int Allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
    const int* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Allgatherv_init, classes::all_gathered<Collective::allgatherv>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Allgatherv_init_c
int Allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Allgatherv_init_c, classes::all_gathered<Collective::allgatherv>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Gatherv
int Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
    const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Gatherv, classes::gathered<Collective::gatherv>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcounts, displs, recvtype, root, comm);
}

// MPI_Gatherv_c
int Gatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Gatherv_c, classes::gathered<Collective::gatherv>>(sendbuf, sendcount, sendtype, recvbuf,
      recvcounts, displs, recvtype, root, comm);
}

// MPI_Igatherv
int Igatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
    const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Igatherv, classes::gathered<Collective::gatherv>>(request, sendbuf, sendcount, sendtype,
      recvbuf, recvcounts, displs, recvtype, root, comm);
}

// MPI_Igatherv_c
int Igatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, int root, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Igatherv_c, classes::gathered<Collective::gatherv>>(request, sendbuf, sendcount,
      sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
}

// MPI_Gatherv_init
int Gatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
    const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Gatherv_init, classes::gathered<Collective::gatherv>>(info, request, sendbuf, sendcount,
      sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
}

// MPI_Gatherv_init_c
int Gatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Gatherv_init_c, classes::gathered<Collective::gatherv>>(info, request, sendbuf,
      sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
}

// MPI_Scatterv
int Scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype, void* recvbuf,
    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Scatterv, classes::scattered<Collective::scatterv>>(sendbuf, sendcounts, displs, sendtype,
      recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatterv_c
int Scatterv_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs, MPI_Datatype sendtype,
    void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return blocking<Function::Scatterv_c, classes::scattered<Collective::scatterv>>(sendbuf, sendcounts, displs,
      sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Iscatterv
int Iscatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype, void* recvbuf,
    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iscatterv, classes::scattered<Collective::scatterv>>(request, sendbuf, sendcounts,
      displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Iscatterv_c
int Iscatterv_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs, MPI_Datatype sendtype,
    void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Iscatterv_c, classes::scattered<Collective::scatterv>>(request, sendbuf, sendcounts,
      displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatterv_init
int Scatterv_init(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype, void* recvbuf,
    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Scatterv_init, classes::scattered<Collective::scatterv>>(info, request, sendbuf,
      sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Scatterv_init_c
int Scatterv_init_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs, MPI_Datatype sendtype,
    void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Scatterv_init_c, classes::scattered<Collective::scatterv>>(info, request, sendbuf,
      sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

// MPI_Neighbor_allgather
int Neighbor_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_allgather, classes::neighbors_block<Collective::neighbor_allgather>>(sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_allgather_c
int Neighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_allgather_c, classes::neighbors_block<Collective::neighbor_allgather>>(sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Ineighbor_allgather
int Ineighbor_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_allgather, classes::neighbors_block<Collective::neighbor_allgather>>(request,
      sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Ineighbor_allgather_c
int Ineighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_allgather_c, classes::neighbors_block<Collective::neighbor_allgather>>(
      request, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_allgather_init
int Neighbor_allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_allgather_init, classes::neighbors_block<Collective::neighbor_allgather>>(info,
      request, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_allgather_init_c
int Neighbor_allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_allgather_init_c, classes::neighbors_block<Collective::neighbor_allgather>>(
      info, request, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_allgatherv
int Neighbor_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_allgatherv, classes::neighbors_gathered<Collective::neighbor_allgatherv>>(sendbuf,
      sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Neighbor_allgatherv_c
int Neighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_allgatherv_c, classes::neighbors_gathered<Collective::neighbor_allgatherv>>(
      sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Ineighbor_allgatherv
int Ineighbor_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_allgatherv, classes::neighbors_gathered<Collective::neighbor_allgatherv>>(
      request, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Ineighbor_allgatherv_c
int Ineighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_allgatherv_c, classes::neighbors_gathered<Collective::neighbor_allgatherv>>(
      request, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Neighbor_allgatherv_init
int Neighbor_allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Neighbor_allgatherv_init, classes::neighbors_gathered<Collective::neighbor_allgatherv>>(
      info, request, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Neighbor_allgatherv_init_c
int Neighbor_allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count* recvcounts, const MPI_Aint* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Neighbor_allgatherv_init_c, classes::neighbors_gathered<Collective::neighbor_allgatherv>>(
      info, request, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

// MPI_Neighbor_alltoall
int Neighbor_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_alltoall, classes::neighbors_blocks<Collective::neighbor_alltoall>>(sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_alltoall_c
int Neighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_alltoall_c, classes::neighbors_blocks<Collective::neighbor_alltoall>>(sendbuf,
      sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Ineighbor_alltoall
int Ineighbor_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_alltoall, classes::neighbors_blocks<Collective::neighbor_alltoall>>(request,
      sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Ineighbor_alltoall_c
int Ineighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_alltoall_c, classes::neighbors_blocks<Collective::neighbor_alltoall>>(request,
      sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_alltoall_init
int Neighbor_alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_alltoall_init, classes::neighbors_blocks<Collective::neighbor_alltoall>>(info,
      request, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_alltoall_init_c
int Neighbor_alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_alltoall_init_c, classes::neighbors_blocks<Collective::neighbor_alltoall>>(info,
      request, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

// MPI_Neighbor_alltoallv
int Neighbor_alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Neighbor_alltoallv, classes::neighbors_varying<Collective::neighbor_alltoallv>>(sendbuf,
      sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Neighbor_alltoallv_c
int Neighbor_alltoallv_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, MPI_Datatype recvtype,
    MPI_Comm comm) {
  return blocking<Function::Neighbor_alltoallv_c, classes::neighbors_varying<Collective::neighbor_alltoallv>>(sendbuf,
      sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Ineighbor_alltoallv
int Ineighbor_alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Ineighbor_alltoallv, classes::neighbors_varying<Collective::neighbor_alltoallv>>(
      request, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Ineighbor_alltoallv_c
int Ineighbor_alltoallv_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, MPI_Datatype recvtype,
    MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_alltoallv_c, classes::neighbors_varying<Collective::neighbor_alltoallv>>(
      request, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Neighbor_alltoallv_init
int Neighbor_alltoallv_init(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Neighbor_alltoallv_init, classes::neighbors_varying<Collective::neighbor_alltoallv>>(
      info, request, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Neighbor_alltoallv_init_c
int Neighbor_alltoallv_init_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, MPI_Datatype recvtype,
    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_alltoallv_init_c, classes::neighbors_varying<Collective::neighbor_alltoallv>>(
      info, request, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Neighbor_alltoallw
int Neighbor_alltoallw(const void* sendbuf, const int* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm) {
  return blocking<Function::Neighbor_alltoallw, classes::neighbors_typed<Collective::neighbor_alltoallw>>(sendbuf,
      sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Neighbor_alltoallw_c
int Neighbor_alltoallw_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm) {
  return blocking<Function::Neighbor_alltoallw_c, classes::neighbors_typed<Collective::neighbor_alltoallw>>(sendbuf,
      sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Ineighbor_alltoallw
int Ineighbor_alltoallw(const void* sendbuf, const int* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_alltoallw, classes::neighbors_typed<Collective::neighbor_alltoallw>>(request,
      sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Ineighbor_alltoallw_c
int Ineighbor_alltoallw_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ineighbor_alltoallw_c, classes::neighbors_typed<Collective::neighbor_alltoallw>>(
      request, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Neighbor_alltoallw_init
int Neighbor_alltoallw_init(const void* sendbuf, const int* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_alltoallw_init, classes::neighbors_typed<Collective::neighbor_alltoallw>>(info,
      request, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Neighbor_alltoallw_init_c
int Neighbor_alltoallw_init_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Neighbor_alltoallw_init_c, classes::neighbors_typed<Collective::neighbor_alltoallw>>(
      info, request, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Alltoallv
int Alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype, void* recvbuf,
    const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Alltoallv, classes::all_pairs<Collective::alltoallv>>(sendbuf, sendcounts, sdispls,
      sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Alltoallv_c
int Alltoallv_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
  return blocking<Function::Alltoallv_c, classes::all_pairs<Collective::alltoallv>>(sendbuf, sendcounts, sdispls,
      sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Ialltoallv
int Ialltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype, void* recvbuf,
    const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ialltoallv, classes::all_pairs<Collective::alltoallv>>(request, sendbuf, sendcounts,
      sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Ialltoallv_c
int Ialltoallv_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Ialltoallv_c, classes::all_pairs<Collective::alltoallv>>(request, sendbuf, sendcounts,
      sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Alltoallv_init
int Alltoallv_init(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request* request) {
  return persistent<Function::Alltoallv_init, classes::all_pairs<Collective::alltoallv>>(info, request, sendbuf,
      sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Alltoallv_init_c
int Alltoallv_init_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, MPI_Datatype sendtype,
    void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Alltoallv_init_c, classes::all_pairs<Collective::alltoallv>>(info, request, sendbuf,
      sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

// MPI_Alltoallw
int Alltoallw(const void* sendbuf, const int* sendcounts, const int* sdispls, const MPI_Datatype* sendtypes,
    void* recvbuf, const int* recvcounts, const int* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm) {
  return blocking<Function::Alltoallw, classes::all_pairs<Collective::alltoallw>>(sendbuf, sendcounts, sdispls,
      sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Alltoallw_c
int Alltoallw_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm) {
  return blocking<Function::Alltoallw_c, classes::all_pairs<Collective::alltoallw>>(sendbuf, sendcounts, sdispls,
      sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Ialltoallw
int Ialltoallw(const void* sendbuf, const int* sendcounts, const int* sdispls, const MPI_Datatype* sendtypes,
    void* recvbuf, const int* recvcounts, const int* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm,
    MPI_Request* request) {
  return nonblocking<Function::Ialltoallw, classes::all_pairs<Collective::alltoallw>>(request, sendbuf, sendcounts,
      sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Ialltoallw_c
int Ialltoallw_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm, MPI_Request* request) {
  return nonblocking<Function::Ialltoallw_c, classes::all_pairs<Collective::alltoallw>>(request, sendbuf, sendcounts,
      sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Alltoallw_init
int Alltoallw_init(const void* sendbuf, const int* sendcounts, const int* sdispls, const MPI_Datatype* sendtypes,
    void* recvbuf, const int* recvcounts, const int* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm,
    MPI_Info info, MPI_Request* request) {
  return persistent<Function::Alltoallw_init, classes::all_pairs<Collective::alltoallw>>(info, request, sendbuf,
      sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

// MPI_Alltoallw_init_c
int Alltoallw_init_c(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
    const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls,
    const MPI_Datatype* recvtypes, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return persistent<Function::Alltoallw_init_c, classes::all_pairs<Collective::alltoallw>>(info, request, sendbuf,
      sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
}

}  // namespace nearfield::mpi
