/* Threads that receive from anybody at the same time, and one that probes, in a job over several nodes.

   Every rank sends to all ranks; messages say who sends them and how many came before from there with this tag. Several
   threads of a rank share a tag, each message goes to one of them. */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { threads = 3, longest = 20000 };
static int rank, size, per_rank;
static atomic_int taken, sum_of_numbers;

static void fail(const char *what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void look_at(const int32_t *data, const MPI_Status *status) {
  int length;
  MPI_Get_count(status, MPI_INT32_T, &length);
  if (length != 2 + (data[1] * 977 + data[0]) % longest || data[0] != status->MPI_SOURCE) fail("a wrong message");
  for (int i = 2; i < length; ++i)
    if (data[i] != data[0] + data[1] + i) fail("wrong data");
  atomic_fetch_add(&sum_of_numbers, data[1]);
}

static void *receive(void *argument) {
  const int me = (int)(intptr_t)argument, all = per_rank * size;
  int32_t *data = malloc((longest + 2) * 4);
  MPI_Status status;
  while (atomic_fetch_add(&taken, 1) < all) {
    MPI_Message message;
    MPI_Request request;
    int flag = 0;
    switch (me) {
      case 0: MPI_Recv(data, longest + 2, MPI_INT32_T, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status); break;
      case 1:
        MPI_Irecv(data, longest + 2, MPI_INT32_T, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &request);
        while (!flag) MPI_Test(&request, &flag, &status);
        break;
      default:
        MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(data, longest + 2, MPI_INT32_T, &message, &status);
    }
    look_at(data, &status);
  }
  free(data);
  return NULL;
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  per_rank = atoi(argv[1]);
  if (level < MPI_THREAD_MULTIPLE) return puts("no threads"), MPI_Finalize();
  pthread_t thread[threads];
  for (intptr_t i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, receive, (void *)i);
  int32_t *data = malloc((longest + 2) * 4);
  for (int k = 0; k < per_rank; ++k)
    for (int to = 0; to < size; ++to) {
      const int length = 2 + (k * 977 + rank) % longest;
      data[0] = rank, data[1] = k;
      for (int i = 2; i < length; ++i) data[i] = rank + k + i;
      (k % 3 ? MPI_Send : MPI_Ssend)(data, length, MPI_INT32_T, to, 5, MPI_COMM_WORLD);
    }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  if (sum_of_numbers != size * per_rank * (per_rank - 1) / 2) fail("messages are missing");
  MPI_Barrier(MPI_COMM_WORLD);
  puts("good");
  free(data);
  MPI_Finalize();
}
