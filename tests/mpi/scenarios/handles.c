/* Handles that Nearfield and the host share. Functions that not every host has are looked up. */
#include "scenarios.h"

/* A constructor whose arguments are wrong on one rank, which then tries again: messages on the children still match. */
static void created(void) {
  MPI_Comm comm, child, again;
  int got = -1, periodic = 0, wrong[1] = {size + 5};
  const int peer = rank ^ 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    CHECK(MPI_Comm_split(comm, -77, 0, &child) != MPI_SUCCESS);
    CHECK(MPI_Cart_create(comm, 1, wrong, &periodic, 0, &child) != MPI_SUCCESS);
  }
  MPI_Comm_split(comm, 0, rank, &child);
  MPI_Comm_dup(child, &again);
  if (peer < size) {
    MPI_Sendrecv(&rank, 1, MPI_INT, peer, 1, &got, 1, MPI_INT, peer, 1, child, MPI_STATUS_IGNORE);
    CHECK(got == peer);
    MPI_Sendrecv(&rank, 1, MPI_INT, peer, 2, &got, 1, MPI_INT, peer, 2, again, MPI_STATUS_IGNORE);
    CHECK(got == peer);
  }
  MPI_Comm_free(&again);
  MPI_Comm_free(&child);
  MPI_Comm_free(&comm);
}

/* MPICH's question whether a request is complete. */
static void complete(void) {
  int (*is_complete)(MPI_Request) = (int (*)(MPI_Request))dlsym(RTLD_DEFAULT, "MPIX_Request_is_complete");
  int value = 0, token = 1;
  const int peer = rank ^ 1;
  MPI_Request request;
  if (!is_complete || peer >= size) return;
  if (rank % 2 == 0) {
    MPI_Irecv(&value, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &request);
    CHECK(!is_complete(request));
    MPI_Send(&token, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
    while (!is_complete(request)) {
    }
    CHECK(value == 7);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    int seven = 7;
    MPI_Recv(&token, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&seven, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
  }
}

/* The buffer of a communicator goes with it. */
static void buffers(void) {
  int (*attach)(MPI_Comm, void*, int) = (int (*)(MPI_Comm, void*, int))dlsym(RTLD_DEFAULT, "MPI_Comm_attach_buffer");
  if (!attach) return;
  static char room[100000];
  char message[5000] = {0}, got[5000]; /* Open MPI sends shorter ones without a buffer */
  for (int round = 0; round < 4; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (round % 2 == 0) {
      REQUIRE(attach(comm, room, sizeof room) == MPI_SUCCESS);
      CHECK(MPI_Bsend(message, sizeof message, MPI_BYTE, rank, 0, comm) == MPI_SUCCESS);
      MPI_Recv(got, sizeof got, MPI_BYTE, rank, 0, comm, MPI_STATUS_IGNORE);
    } else {
      /* The handle is the same as before, as a rule; there is no buffer now. */
      CHECK(class_of(MPI_Bsend(message, sizeof message, MPI_BYTE, rank, 0, comm)) == MPI_ERR_BUFFER);
    }
    MPI_Comm_free(&comm);
  }
}

/* MPICH of PyPI checks few arguments. */
SCENARIO(handles_created) { created(); }
SCENARIO(handles_complete) { complete(); }
SCENARIO(handles_buffers) { buffers(); }
