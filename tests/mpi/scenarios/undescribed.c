/* Types of so many separate blocks that no description of them is kept: every kind of call, one side with such a type
   and the other with a dense one, or both with it. Two ranks. */
#include "scenarios.h"

enum { data = 6, extent = 9 }; /* ints of an element */
static const int lengths[] = {1, 2, 3}, places[] = {0, 2, 5};
static MPI_Datatype sparse;
static int peer, elements;
static int *scattered, *dense;
static size_t ints, span;

static int value(int who, size_t i) { return (int)(i * 3 + (size_t)who * 1000003 + 1); }

/* Element by element, in the order of the signature. */
static void fill_sparse(int who) {
  for (size_t i = 0; i < span; ++i) scattered[i] = -1;
  size_t k = 0;
  for (int e = 0; e < elements; ++e)
    for (int b = 0; b < 3; ++b)
      for (int w = 0; w < lengths[b]; ++w) scattered[(size_t)e * extent + places[b] + w] = value(who, k++);
}
static void fill_dense(int who) {
  for (size_t k = 0; k < ints; ++k) dense[k] = value(who, k);
}
static void clear(void) {
  for (size_t i = 0; i < span; ++i) scattered[i] = -1;
  for (size_t i = 0; i < ints; ++i) dense[i] = -1;
}
static void check_sparse(const char* what, int who, size_t upto) {
  size_t k = 0;
  int bad = 0;
  for (int e = 0; e < elements; ++e) {
    const int* at = scattered + (size_t)e * extent;
    bad |= at[1] != -1 || at[4] != -1 || at[8] != -1;
    for (int b = 0; b < 3; ++b)
      for (int w = 0; w < lengths[b]; ++w, ++k) bad |= at[places[b] + w] != (k < upto ? value(who, k) : -1);
  }
  CHECK(!bad, "%s: scattered data", what);
}
static void check_dense(const char* what, int who) {
  int bad = 0;
  for (size_t k = 0; k < ints; ++k) bad |= dense[k] != value(who, k);
  CHECK(!bad, "%s: dense data", what);
}

/* The same type under a handle that goes as soon as a request has been made of it. */
static MPI_Datatype another(void) {
  MPI_Datatype type;
  MPI_Type_dup(sparse, &type);
  return type;
}

static void sends(void) {
  MPI_Request request;
  MPI_Datatype type;
  void* attached;
  int room = (int)(ints * sizeof(int)) + 2 * MPI_BSEND_OVERHEAD;
  MPI_Buffer_attach(malloc(room), room);
  for (int kind = 0; kind < 7; ++kind) {
    if (rank == 0) {
      fill_sparse(0);
      switch (kind) {
        case 0: MPI_Send(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD); break;
        case 1: MPI_Ssend(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD); break;
        case 2: MPI_Bsend(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD); break;
        case 3: MPI_Isend(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD, &request); break;
        case 4: MPI_Issend(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD, &request); break;
        case 5: MPI_Ibsend(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD, &request); break;
        default:
          /* Each start sends what is there then. */
          type = another();
          MPI_Send_init(scattered, 1, type, peer, kind, MPI_COMM_WORLD, &request);
          MPI_Type_free(&type);
          fill_sparse(5);
          MPI_Start(&request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          fill_sparse(0);
          MPI_Start(&request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          MPI_Request_free(&request);
      }
      if (kind >= 3 && kind < 6) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      clear();
      MPI_Recv(dense, (int)ints, MPI_INT, peer, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (kind == 6) {
        check_dense("the first start", 5);
        MPI_Recv(dense, (int)ints, MPI_INT, peer, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      check_dense("a send", 0);
    }
  }
  MPI_Buffer_detach(&attached, &room);
  free(attached);
}

static void receives(void) {
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  MPI_Datatype type;
  for (int kind = 0; kind < 8; ++kind) {
    const int some = kind == 7 ? (int)ints / 2 + 1 : (int)ints; /* ends within an element */
    int got = 0, flag = 0;
    if (rank == 0) {
      fill_dense(0);
      MPI_Send(dense, some, MPI_INT, peer, kind, MPI_COMM_WORLD);
      if (kind == 3) MPI_Send(dense, some, MPI_INT, peer, kind, MPI_COMM_WORLD);
      continue;
    }
    clear();
    switch (kind) {
      case 0: MPI_Recv(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD, &status); break;
      case 1:
        type = another();
        MPI_Irecv(scattered, 1, type, peer, kind, MPI_COMM_WORLD, &request);
        MPI_Type_free(&type);
        MPI_Wait(&request, &status);
        break;
      case 2:
        MPI_Irecv(scattered, 1, sparse, peer, kind, MPI_COMM_WORLD, &request);
        while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        check_sparse("a status", 0, ints);
        while (MPI_Testall(1, &request, &flag, &status), !flag) {
        }
        break;
      case 3:
        type = another();
        MPI_Recv_init(scattered, 1, type, peer, kind, MPI_COMM_WORLD, &request);
        MPI_Type_free(&type);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_sparse("the first start", 0, ints);
        clear();
        MPI_Start(&request);
        MPI_Waitall(1, &request, &status);
        MPI_Request_free(&request);
        break;
      case 4:
        MPI_Mprobe(peer, kind, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(scattered, 1, sparse, &message, &status);
        break;
      case 5:
        MPI_Mprobe(peer, kind, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        type = another();
        MPI_Imrecv(scattered, 1, type, &message, &request);
        MPI_Type_free(&type);
        MPI_Waitany(1, &request, &flag, &status);
        break;
      default: MPI_Recv(scattered, 1, sparse, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    }
    MPI_Get_count(&status, MPI_BYTE, &got);
    CHECK(got == some * (int)sizeof(int), "received %d bytes of %d ints", got, some);
    check_sparse("a receive", 0, some);
  }
}

static void both(void) {
  MPI_Request request;
  int good = rank == 0;
  for (int kind = 0; kind < 2; ++kind) {
    clear();
    fill_dense(rank);
    if (good)
      MPI_Sendrecv(dense, (int)ints, MPI_INT, peer, kind, scattered, 1, sparse, peer, kind, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    else {
      fill_sparse(rank);
      memset(dense, 0, ints * sizeof(int));
      MPI_Sendrecv(scattered, 1, sparse, peer, kind, dense, (int)ints, MPI_INT, peer, kind, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    }
    if (good) check_sparse("sendrecv", peer, ints);
    else check_dense("sendrecv", peer);
    good = !good;
  }
  fill_sparse(rank);
  MPI_Sendrecv_replace(scattered, 1, sparse, peer, 9, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check_sparse("sendrecv_replace", peer, ints);
#if MPI_VERSION >= 4
  fill_sparse(rank);
  MPI_Isendrecv_replace(scattered, 1, sparse, peer, 9, peer, 9, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check_sparse("isendrecv_replace", peer, ints);
#else
  (void)request;
#endif
}

static void collectives(void) {
  clear();
  if (rank == 1) fill_sparse(1), MPI_Bcast(scattered, 1, sparse, 1, MPI_COMM_WORLD);
  else {
    MPI_Bcast(dense, (int)ints, MPI_INT, 1, MPI_COMM_WORLD);
    check_dense("bcast", 1);
  }
  /* Only this rank's type is not described; the other takes dense data. */
  int counts[2] = {0, 0}, none[2] = {0, 0}, many[2] = {0, 0};
  const MPI_Datatype kinds[2] = {sparse, sparse}, plain[2] = {MPI_INT, MPI_INT};
  counts[peer] = 1;
  many[peer] = (int)ints;
  for (int kind = 0; kind < 2; ++kind) {
    clear();
    if (rank == 0) {
      fill_sparse(0);
      if (kind == 0) MPI_Alltoallv(scattered, counts, none, sparse, dense, many, none, MPI_INT, MPI_COMM_WORLD);
      else MPI_Alltoallw(scattered, counts, none, kinds, dense, many, none, plain, MPI_COMM_WORLD);
      check_dense("alltoallv", 1);
    } else {
      fill_dense(1);
      if (kind == 0) MPI_Alltoallv(dense, many, none, MPI_INT, scattered, counts, none, sparse, MPI_COMM_WORLD);
      else MPI_Alltoallw(dense, many, none, plain, scattered, counts, none, kinds, MPI_COMM_WORLD);
      check_sparse("alltoallv", 0, ints);
    }
  }
  /* Types and communicators may go before the call ends. */
  MPI_Comm own;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Datatype temporary = another();
  clear();
  if (rank == 0) {
    fill_sparse(0);
    MPI_Ialltoallv(scattered, counts, none, temporary, dense, many, none, MPI_INT, own, &request);
  } else {
    fill_dense(1);
    MPI_Ialltoallv(dense, many, none, MPI_INT, scattered, counts, none, temporary, own, &request);
  }
  MPI_Type_free(&temporary);
  MPI_Comm_free(&own);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) check_dense("ialltoallv", 1);
  else check_sparse("ialltoallv", 0, ints);
}

/* The argument is how many elements of six ints in three blocks. */
SCENARIO(undescribed) {
  peer = 1 - rank;
  elements = atoi(argv[1]);
  ints = (size_t)elements * data;
  span = (size_t)elements * extent;
  scattered = malloc(span * sizeof(int));
  dense = malloc(ints * sizeof(int));
  MPI_Datatype blocks, element;
  MPI_Type_indexed(3, lengths, places, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, extent * sizeof(int), &element);
  MPI_Type_contiguous(elements, element, &sparse);
  MPI_Type_commit(&sparse);
  MPI_Type_free(&blocks);
  MPI_Type_free(&element);
  sends();
  receives();
  both();
  collectives();
  MPI_Type_free(&sparse);
  free(scattered), free(dense);
}
