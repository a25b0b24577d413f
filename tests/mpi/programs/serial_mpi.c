/* An MPI that is none: what programs bring to run serially. With -DLIBRARY it is the library, with -DPMPI one that has
   PMPI functions too, with -DVERSION="..." one that says who it is; otherwise a program that uses it. */
#include <stdio.h>
#include <string.h>

int MPI_Init(int* argc, char*** argv);
int MPI_Allreduce(const void* send, void* recv, int count, int type, int op, int comm);
int MPI_Finalize(void);

#ifdef LIBRARY

int MPI_Init(int* argc, char*** argv) { return argc && argv ? 0 : 1; }
int MPI_Allreduce(const void* send, void* recv, int count, int type, int op, int comm) {
  memcpy(recv, send, (size_t)count * sizeof(int));
  return type + op + comm;
}
int MPI_Finalize(void) { return 0; }

#ifdef PMPI
int PMPI_Init(int* argc, char*** argv) { return argc && argv ? 0 : 1; }
int PMPI_Finalize(void) { return 0; }
#endif
#ifdef VERSION
int MPI_Get_library_version(char* text, int* length) {
  *length = sprintf(text, "%s", VERSION);
  return 0;
}
#endif

#else

int main(int argc, char** argv) {
  int value = 7, sum = 0;
  int code = MPI_Init(&argc, &argv);
  code |= MPI_Allreduce(&value, &sum, 1, 0, 0, 0);
  code |= MPI_Finalize();
  puts(!code && sum == 7 ? "good" : "bad");
  return 0;
}

#endif
