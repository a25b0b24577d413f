/* Small scenarios, chosen by the first argument; each prints "good" from rank 0 when it went well. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int allreduce_works(MPI_Comm comm) {
  int r, p, sum = 0;
  MPI_Comm_rank(comm, &r);
  MPI_Comm_size(comm, &p);
  int value = r + 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == p * (p + 1) / 2;
}

static int many_communicators(void) {
  enum { alive = 1000, freed = 5000 };
  static MPI_Comm comms[alive];
  int good = 1;
  for (int i = 0; i < alive; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    good &= allreduce_works(comms[i]);
  }
  for (int i = 0; i < alive; ++i) {
    good &= allreduce_works(comms[i]);
    MPI_Comm_free(&comms[i]);
  }
  long before = 0, after = 0;
  for (int i = 0; i < freed; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    good &= allreduce_works(comm);
    MPI_Comm_free(&comm);
    if (i == 100 || i == freed - 1) {
      FILE* status = fopen("/proc/self/status", "r");
      char line[256];
      while (fgets(line, sizeof line, status))
        if (!strncmp(line, "RssShmem:", 9)) *(i == 100 ? &before : &after) = atol(line + 9);
      fclose(status);
    }
  }
  if (after > before + 4096) {
    fprintf(stderr, "shared memory grew from %ld to %ld KiB\n", before, after);
    good = 0;
  }
  return good;
}

static void* thread(void* argument) {
  MPI_Comm comm = *(MPI_Comm*)argument;
  long good = 1;
  static __thread double send[20000], recv[20000];
  for (int i = 0; i < 300; ++i) {
    int n = i % 10 ? 10 : 20000;
    for (int k = 0; k < n; ++k) send[k] = i + k;
    MPI_Allreduce(send, recv, n, MPI_DOUBLE, MPI_SUM, comm);
    for (int k = 0; k < n; ++k) good &= recv[k] == size * (double)(i + k);
  }
  return (void*)good;
}

static int threads(int provided) {
  if (provided < MPI_THREAD_MULTIPLE) return 0;
  MPI_Comm comms[2];
  pthread_t ids[2];
  int good = 1;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 2; ++i) pthread_create(&ids[i], NULL, thread, &comms[i]);
  for (int i = 0; i < 2; ++i) {
    void* result;
    pthread_join(ids[i], &result);
    good &= result == (void*)1;
    MPI_Comm_free(&comms[i]);
  }
  return good;
}

/* A large message of the host under way while the ranks meet in collectives. */
static int progress(void) {
  int n = 8 << 20;
  char* data = malloc(n);
  MPI_Request request;
  if (rank == 0) {
    memset(data, 7, n);
    MPI_Isend(data, n, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (rank == 1) MPI_Recv(data, n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && (data[0] != 7 || data[n - 1] != 7)) return 0;
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  int good = allreduce_works(MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(data);
  return good;
}

static int intercommunicator(void) {
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter);
  int value = rank % 2 ? 100 : 1, sum = 0, there;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Comm_remote_size(inter, &there);
  int good = sum == there * (rank % 2 ? 1 : 100);
  MPI_Comm_free(&inter);
  good &= allreduce_works(half);
  MPI_Comm_free(&half);
  return good;
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

static void different(const char* what) {
  double a[8] = {0}, b[8] = {0};
  int odd = rank == 1;
  if (!strcmp(what, "roots")) MPI_Bcast(a, 4, MPI_DOUBLE, odd, MPI_COMM_WORLD);
  if (!strcmp(what, "lengths")) MPI_Bcast(a, odd ? 3 : 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (!strcmp(what, "operators")) MPI_Allreduce(a, b, 4, MPI_DOUBLE, odd ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(what, "parts") || !strcmp(what, "combined parts")) {
    const int ones[] = {1, 1, 2}, others[] = {2, 1, 1};
    MPI_Op op = MPI_SUM;
    if (!strcmp(what, "combined parts")) MPI_Op_create(add, 1, &op);
    MPI_Reduce_scatter(a, b, odd ? others : ones, MPI_DOUBLE, op, MPI_COMM_WORLD);
  }
  if (!strcmp(what, "collectives")) {
    if (odd) MPI_Barrier(MPI_COMM_WORLD);
    else MPI_Bcast(a, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int provided = 0, good = 1;
  const char* what = argc > 1 ? argv[1] : "plain";
  if (!strcmp(what, "threads")) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!strcmp(what, "plain")) good = allreduce_works(MPI_COMM_WORLD);
  if (!strcmp(what, "many")) good = many_communicators();
  if (!strcmp(what, "threads")) good = threads(provided);
  if (!strcmp(what, "progress")) good = progress();
  if (!strcmp(what, "inter")) good = intercommunicator();
  if (!strcmp(what, "different")) different(argv[2]);
  if (!strcmp(what, "stall")) {
    allreduce_works(MPI_COMM_WORLD);
    if (rank == 0) sleep(3);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int all = 0;
  if (strcmp(what, "nothing")) MPI_Reduce(&good, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
  else all = 1;
  if (rank == 0 && all) printf("good\n");
  MPI_Finalize();
  return 0;
}
