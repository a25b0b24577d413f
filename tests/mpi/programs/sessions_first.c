/* Sessions before MPI_Init, to which ranks then come at different times: the host is up already and does not hold them
   together there.

     sessions_first world|self */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* set = argc > 1 && !strcmp(argv[1], "self") ? "mpi://SELF" : "mpi://WORLD";
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, set, &group);
  MPI_Comm_create_from_group(group, "first", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  const char* number = getenv("PMI_RANK");
  if (!number) number = getenv("PMIX_RANK");
  if (number && atoi(number) == 1) usleep(300000);
  int one = 1, sum = 0, size = 0, rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && sum == size) printf("good\n");
  MPI_Finalize();
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return 0;
}
