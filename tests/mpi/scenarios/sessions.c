/* Buffered sends on communicators of sessions take what is attached to the communicator, else to the session, else to
   the process. A buffer of another communicator's, or of another session's, is none of theirs. */
#include "scenarios.h"

#if MPI_VERSION >= 4 || defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5
static int (*attach)(MPI_Session, void*, int), (*detach)(MPI_Session, void*, int*), (*flush)(MPI_Session),
    (*iflush)(MPI_Session, MPI_Request*);
static char sent[1 << 17], got[1 << 17];

/* Of a group that is derived from the session's, as all of its processes but those that are left out. */
static MPI_Comm comm_of(MPI_Session session, const char* name) {
  MPI_Group all, some;
  MPI_Comm comm;
  int ranges[1][3] = {{0, 1, 1}};
  REQUIRE(MPI_Group_from_session_pset(session, "mpi://WORLD", &all) == MPI_SUCCESS, "no group");
  MPI_Group_range_incl(all, 1, ranges, &some);
  MPI_Group_free(&all);
  REQUIRE(MPI_Comm_create_from_group(some, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS, "no child");
  MPI_Group_free(&some);
  return comm;
}

/* Whether rank 0 has room for that many bytes. */
static int has_room(MPI_Comm comm, int bytes) {
  int code = MPI_SUCCESS;
  memset(sent, bytes % 101, (size_t)bytes);
  if (rank == 0) code = MPI_Bsend(sent, bytes, MPI_BYTE, 1, 3, comm);
  MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(code == MPI_SUCCESS || rank || class_of(code) == MPI_ERR_BUFFER, "class %d", class_of(code));
  if (rank == 1 && code == MPI_SUCCESS) {
    MPI_Recv(got, bytes, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
    CHECK(!memcmp(sent, got, (size_t)bytes), "another message");
  }
  return code == MPI_SUCCESS;
}

SCENARIO(sessions_buffers) {
  *(void**)&attach = dlsym(RTLD_DEFAULT, "MPI_Session_attach_buffer");
  *(void**)&detach = dlsym(RTLD_DEFAULT, "MPI_Session_detach_buffer");
  *(void**)&flush = dlsym(RTLD_DEFAULT, "MPI_Session_flush_buffer");
  *(void**)&iflush = dlsym(RTLD_DEFAULT, "MPI_Session_iflush_buffer");
  REQUIRE(attach && detach && flush && iflush, "not there");
  MPI_Session session, other;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other);
  MPI_Comm comm = comm_of(session, "one"), child, others = comm_of(other, "other");
  MPI_Comm_dup(comm, &child);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(others, MPI_ERRORS_RETURN);
  char *of_session = malloc(50000), *of_process = malloc(150000);
  void* was;
  int bytes;
  CHECK(!has_room(comm, 5000), "of nothing");
  CHECK(attach(session, of_session, 50000) == MPI_SUCCESS, "not attached");
  CHECK(has_room(comm, 20000) && has_room(child, 20000), "no room in the session's");
  CHECK(!has_room(comm, 51000) && !has_room(others, 5000), "room that is not there");
  MPI_Buffer_attach(of_process, 150000);
  CHECK(!has_room(child, 51000), "of the process, beside the session's");
  CHECK(has_room(others, 51000), "no room in the process's");
  CHECK(flush(session) == MPI_SUCCESS && flush(other) == MPI_SUCCESS, "not flushed");
  MPI_Request request;
  CHECK(iflush(session, &request) == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS,
        "not flushed");
  CHECK(detach(session, &was, &bytes) == MPI_SUCCESS && was == of_session && bytes == 50000, "another buffer");
  CHECK(has_room(child, 51000), "no room in the process's, without the session's");
  MPI_Buffer_detach(&was, &bytes);
  MPI_Comm_free(&child);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&others);
  MPI_Session_finalize(&session);
  MPI_Session_finalize(&other);
  free(of_session);
  free(of_process);
}
#else
SCENARIO(sessions_buffers) {}
#endif
