/* Rank 1 holds an exclusive lock for a minute; the others wait for it. Tells its processes, and takes a file for
 * standard error, for jobs.report_after_kill. */
#include "windows.inc"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (!freopen(argv[argc - 1], "a", stderr)) return 1;
  int64_t* base;
  MPI_Win win;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  if (rank == 1) {
    int64_t value = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d process %d\n", rank, (int)getpid());
  fflush(stdout);
  if (rank == 1) {
    sleep(60);
  } else {
    int64_t value;
    MPI_Win_lock(rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    fprintf(stderr, "rank %d got the lock\n", rank);
  }
  MPI_Win_unlock(0, win);
  MPI_Win_free(&win);
  return finish();
}
