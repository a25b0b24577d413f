/* What is outstanding needs nothing of its rank that its peer can do, and costs no other call more the more of it there
   is. Two ranks. */
#include <time.h>

#include "scenarios.h"

/* A word of each rank that the other one sees without any call. */
static volatile long* words(MPI_Win* win) {
  volatile long* memory;
  MPI_Aint bytes;
  int unit;
  MPI_Win_allocate_shared(rank == 0 ? 4096 : 0, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&memory, win);
  MPI_Win_shared_query(*win, 0, &bytes, &unit, (void*)&memory);
  if (rank == 0) *memory = 0;
  return memory;
}

/* The sender is in no call until its receiver has got the message, or for five seconds. */
static void computes_meanwhile(volatile long* received, char* data, int bytes, long nth) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Request request;
    memset(data, (int)nth, (size_t)bytes);
    usleep(2000); /* the receiver waits by then */
    MPI_Isend(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    for (const double end = now() + 5; *received < nth && now() < end;) sched_yield();
    CHECK(*received >= nth, "%d bytes wait for their sender's next call", bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(data[0] == (char)nth && data[bytes - 1] == (char)nth, "%d bytes", bytes);
    *received = nth;
  }
}

SCENARIO(outstanding_sender_computes) {
  static const int sizes[] = {64, 147, 192, 256, 320, 512, 768, 2048};
  MPI_Win win;
  volatile long* const received = words(&win);
  long nth = 0;
  /* At first, and when the ways of such messages have been tried out. */
  for (int tried = 0; tried < 2; ++tried)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      const int bytes = sizes[i] << 10;
      char* data = malloc((size_t)bytes);
      for (int k = 0; tried && k < 200; ++k)
        for (int sender = 0; sender < 2; ++sender)
          if (rank == sender) MPI_Send(data, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD);
          else MPI_Recv(data, bytes, MPI_CHAR, sender, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = 0; k < 3; ++k) computes_meanwhile(received, data, bytes, ++nth);
      free(data);
    }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time of this thread that one send takes, of n that the program frees and that are received later. */
static double freed_sends(int n) {
  enum { bytes = 2000 };
  static char data[bytes];
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = cpu_seconds();
  for (int i = 0; rank == 0 && i < n; ++i) {
    MPI_Isend(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  const double each = (cpu_seconds() - start) / n;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; rank == 1 && i < n; ++i) MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return each;
}

SCENARIO(outstanding_freed) {
  freed_sends(1000);
  const double few = freed_sends(1000), many = freed_sends(50000);
  CHECK(many < 12 * few, "%.0f ns each of 50000 sends, %.0f of 1000", many * 1e9, few * 1e9);
}

/* Large sends out of memory that peers cannot reach, received in their order and against it. */
SCENARIO(outstanding_large) {
  enum { n = 400, bytes = 20000 };
  static char data[n][bytes], other[bytes];
  static MPI_Request request[n];
  for (int against = 0; against < 2; ++against) {
    if (rank == 0) {
      for (int i = 0; i < n; ++i) {
        memset(data[i], i & 0x7f, bytes);
        MPI_Isend(data[i], bytes, MPI_CHAR, 1, i, MPI_COMM_WORLD, &request[i]);
      }
      MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
    }
    for (int k = 0; rank == 1 && k < n; ++k) {
      const int i = against ? n - 1 - k : k;
      MPI_Recv(other, bytes, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(other[0] == (i & 0x7f) && other[bytes - 1] == (i & 0x7f), "message %d", i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
