// Programs that are wrong, or late, a scenario each: some ranks wait for what never comes. All end once a file is
// there, which appears when the test (tests/mpi/test_hang_report.py) has seen the report.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static const char* pipe_name;
static char large[1 << 22], more[1 << 22];

// Ends the process, whatever MPI does; not by a signal, so that launchers say little.
static void* end_when_asked(void* file) {
  for (int looks = 0; looks < 6000 && access(file, F_OK); ++looks) usleep(10000);
  _exit(3);
}

static void away(void) {
  for (;;) pause();
}

// Writes a hang report by a signal, again and again: nobody knows when the others have come to where they wait.
static void ask(void) {
  for (;;) usleep(200000), kill(getpid(), SIGUSR2);
}

static void compute(void) {
  for (volatile unsigned long i = 0;; ++i) {
  }
}

static void* receive(void* tag) {
  int value;
  MPI_Recv(&value, 1, MPI_INT, 1 - rank, (int)(size_t)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

static atomic_int idling;
static void* idle(void* unused) {
  int flag;
  MPI_Iprobe(1 - rank, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  ++idling;
  away();
  return unused;
}

static void go_wrong(const char* what) {
  int value = rank, sum = 0, other = 1 - rank;
  MPI_Comm comm, half;
  MPI_Request request[2];
  if (!strcmp(what, "computes")) {
    if (rank == 1) compute();
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "finalizes")) {
    if (rank != 1) MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (!strcmp(what, "operation")) {
    if (rank == 0) MPI_Bcast(large, sizeof large, MPI_CHAR, 1, MPI_COMM_WORLD);
    else MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "root")) {
    MPI_Bcast(&value, 1, MPI_INT, (rank + 1) % size, MPI_COMM_WORLD);
  } else if (!strcmp(what, "count")) {
    MPI_Allreduce(large, more, rank == 0 ? 2 : 1 << 19, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  } else if (!strcmp(what, "missing send")) {
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else away();
  } else if (!strcmp(what, "tag")) {
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "communicator")) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 5, comm);
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else away();
  } else if (!strcmp(what, "both send")) {
    MPI_Send(large, sizeof large, MPI_CHAR, other, 3, MPI_COMM_WORLD);
    MPI_Recv(more, sizeof more, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (!strcmp(what, "sendrecv")) {
    if (rank == 0) MPI_Sendrecv(&value, 1, MPI_INT, 1, 4, &sum, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Recv(&sum, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (!strcmp(what, "waitall")) {
    if (rank == 0) {
      MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request[0]);
      MPI_Irecv(&sum, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request[1]);
      MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    } else {
      MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  } else if (!strcmp(what, "waitany")) {
    int which;
    if (rank == 0) {
      MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request[0]);
      MPI_Irecv(&sum, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, &request[1]);
      MPI_Waitany(2, request, &which, MPI_STATUS_IGNORE);
    } else {
      away();
    }
  } else if (!strcmp(what, "any source")) {
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "probe")) {
    MPI_Status status;
    if (rank == 0) MPI_Probe(1, 12, MPI_COMM_WORLD, &status);
    else compute();
  } else if (!strcmp(what, "ibarrier")) {
    if (rank != 1) {
      MPI_Ibarrier(MPI_COMM_WORLD, &request[0]);
      MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    } else {
      away();
    }
  } else if (!strcmp(what, "persistent")) {
    if (rank == 0) {
      MPI_Recv_init(&value, 1, MPI_INT, 1, 15, MPI_COMM_WORLD, &request[0]);
      MPI_Start(&request[0]);
      MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    } else {
      away();
    }
  } else if (!strcmp(what, "split")) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, rank % 2 ? "odd ones" : "even ones");
    for (int i = 0; i < 10; ++i) MPI_Barrier(half); /* more than the host serves of a deferred one's calls */
    if (rank != 2) MPI_Barrier(half);
    if (rank % 2 || rank == 2) away();
  } else if (!strcmp(what, "fence") || !strcmp(what, "lock")) {
    MPI_Win win;
    int* memory;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (!strcmp(what, "fence")) {
      if (rank == 1) away();
      MPI_Win_fence(0, win);
    } else {
      if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
      else away();
    }
  } else if (!strcmp(what, "host")) {
    // A pipe that nobody writes to: the host waits in it.
    MPI_File file;
    if (rank == 1) MPI_File_open(MPI_COMM_SELF, pipe_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "tests")) {
    int flag = 0;
    if (rank == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request[0]);
      while (!flag) MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE);
    }
  } else if (!strcmp(what, "ahead")) {
    if (rank == size - 1) away();
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "roots")) {
    if (rank == size - 1) away();
    for (int root = 0; root < size; ++root) MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  } else if (!strcmp(what, "lists")) {
    int counts[64], places[64];
    if (rank == size - 1) away();
    for (int r = 0, at = 0; r < size; ++r) places[r] = at, at += counts[r] = 300000 * (r + 1);
    MPI_Gatherv(large, counts[rank], MPI_CHAR, more, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(large, counts[rank], MPI_CHAR, more, counts, places, MPI_CHAR, MPI_COMM_WORLD);
  } else if (!strcmp(what, "overlapping")) {
    if (rank == size - 1) away();
    MPI_Ibarrier(MPI_COMM_WORLD, &request[0]);
    if (rank == 0) MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank) MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  } else if (!strcmp(what, "thread that goes on")) {
    pthread_t thread;
    if (rank == 0) {
      pthread_create(&thread, NULL, receive, (void*)5);
      away();  // this thread has what the other rank waits for
    }
    receive((void*)6);
  } else if (!strcmp(what, "threads")) {
    pthread_t thread;
    for (int i = 0; i < 4; ++i) pthread_create(&thread, NULL, idle, NULL);
    while (idling < 4) usleep(1000);
    pthread_create(&thread, NULL, receive, (void*)5);
    away();
  } else if (!strcmp(what, "from afar")) {
    if (rank == 1) ask();
    if (rank == size - 1) away();
    MPI_Recv(&value, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (!strcmp(what, "elsewhere")) {
    if (chdir("/") == 0 && rank == 0) receive((void*)5);
    away();
  } else if (!strcmp(what, "signal")) {
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    ask();
  }
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc > 1 && !strncmp(argv[1], "thread", 6)) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3) return 1;
  pipe_name = argc > 3 ? argv[3] : "";
  MPI_Barrier(MPI_COMM_WORLD);
  pthread_create(&thread, NULL, end_when_asked, argv[2]);
  go_wrong(argv[1]);
  MPI_Finalize();
  return 0;
}
