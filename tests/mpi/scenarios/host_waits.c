/* Calls that block in the host while a message of this rank is under way: even ranks have a receive outstanding and
   enter the call, odd ones send first, synchronously. Arguments: a path for a file, names of calls (none: all). Prints
   for each whether its result was right or the library lacks it. Functions are looked up, so that every library can be
   linked. */
#include "scenarios.h"

enum { n = 1 << 20, lacking = -1 };
static MPI_Comm comm;
static MPI_File file;

#define LOOK_UP(name, ...)                                                     \
  int (*name)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, #name); \
  if (!name) return lacking

static int comm_create_from_group(void) {
  LOOK_UP(MPI_Comm_create_from_group, MPI_Group, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*);
  MPI_Group group;
  MPI_Comm made;
  int is = 0;
  MPI_Comm_group(comm, &group);
  const int code = MPI_Comm_create_from_group(group, "host_waits", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
  MPI_Group_free(&group);
  if (code != MPI_SUCCESS) return lacking;
  MPI_Comm_size(made, &is);
  MPI_Comm_free(&made);
  return is == size;
}
static int session(void) {
#if MPI_VERSION >= 4
  LOOK_UP(MPI_Session_init, MPI_Info, MPI_Errhandler, MPI_Session*);
  LOOK_UP(MPI_Session_finalize, MPI_Session*);
  MPI_Session made;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &made) != MPI_SUCCESS) return lacking;
  return MPI_Session_finalize(&made) == MPI_SUCCESS;
#else
  return lacking;
#endif
}
static int shrink(void) {
  LOOK_UP(MPIX_Comm_shrink, MPI_Comm, MPI_Comm*);
  MPI_Comm made;
  int is = 0;
  if (MPIX_Comm_shrink(comm, &made) != MPI_SUCCESS) return lacking;
  MPI_Comm_size(made, &is);
  MPI_Comm_free(&made);
  return is == size;
}
static int agree(void) {
  LOOK_UP(MPIX_Comm_agree, MPI_Comm, int*);
  int flag = rank == 0 ? 3 : 5;
  if (MPIX_Comm_agree(comm, &flag) != MPI_SUCCESS) return lacking;
  return flag == 1;
}

/* Files: rank r has the r-th int. */
static int written_and_read(int wrote, int read, int got) {
  return wrote == MPI_SUCCESS && read == MPI_SUCCESS && got == rank + 5;
}
static int at_all_c(void) {
  LOOK_UP(MPI_File_write_at_all_c, MPI_File, MPI_Offset, const void*, MPI_Count, MPI_Datatype, MPI_Status*);
  LOOK_UP(MPI_File_read_at_all_c, MPI_File, MPI_Offset, void*, MPI_Count, MPI_Datatype, MPI_Status*);
  int mine = rank + 5, got = 0;
  const int wrote = MPI_File_write_at_all_c(file, rank * 4, &mine, 1, MPI_INT, MPI_STATUS_IGNORE);
  const int read = MPI_File_read_at_all_c(file, rank * 4, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
  return written_and_read(wrote, read, got);
}
static int all_c(void) {
  LOOK_UP(MPI_File_write_all_c, MPI_File, const void*, MPI_Count, MPI_Datatype, MPI_Status*);
  LOOK_UP(MPI_File_read_all_c, MPI_File, void*, MPI_Count, MPI_Datatype, MPI_Status*);
  int mine = rank + 5, got = 0;
  MPI_File_seek(file, rank * 4, MPI_SEEK_SET);
  const int wrote = MPI_File_write_all_c(file, &mine, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_seek(file, rank * 4, MPI_SEEK_SET);
  const int read = MPI_File_read_all_c(file, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
  return written_and_read(wrote, read, got);
}
static int ordered(void) {
  LOOK_UP(MPI_File_write_ordered_c, MPI_File, const void*, MPI_Count, MPI_Datatype, MPI_Status*);
  LOOK_UP(MPI_File_read_ordered_c, MPI_File, void*, MPI_Count, MPI_Datatype, MPI_Status*);
  int mine = rank + 5, got = 0;
  if (MPI_File_seek_shared(file, 0, MPI_SEEK_SET) != MPI_SUCCESS) return lacking; /* a file system without locks */
  const int wrote = MPI_File_write_ordered_c(file, &mine, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  const int read = MPI_File_read_ordered_c(file, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
  return written_and_read(wrote, read, got);
}
static int split(void) {
  int mine = rank + 5, got = 0;
  MPI_File_write_at_all_begin(file, rank * 4, &mine, 1, MPI_INT);
  const int wrote = MPI_File_write_at_all_end(file, &mine, MPI_STATUS_IGNORE);
  MPI_File_read_at_all_begin(file, rank * 4, &got, 1, MPI_INT);
  const int read = MPI_File_read_at_all_end(file, &got, MPI_STATUS_IGNORE);
  return written_and_read(wrote, read, got);
}
static int file_state(void) {
  int atomic = 0, good = 1;
  MPI_Offset bytes = 0;
  good &= MPI_File_set_info(file, MPI_INFO_NULL) == MPI_SUCCESS;
  good &= MPI_File_set_atomicity(file, 1) == MPI_SUCCESS;
  MPI_File_get_atomicity(file, &atomic);
  good &= MPI_File_set_atomicity(file, 0) == MPI_SUCCESS;
  good &= MPI_File_preallocate(file, 8192) == MPI_SUCCESS;
  MPI_File_get_size(file, &bytes);
  return good && atomic == 1 && bytes >= 8192;
}

static int with_a_transfer(int (*call)(void)) {
  const int peer = rank ^ 1, receives = peer < size && rank % 2 == 0, sends = peer < size && rank % 2 == 1;
  char* data = malloc(n);
  MPI_Request request;
  int good = 1;
  memset(data, sends ? 42 : 0, n);
  if (receives) MPI_Irecv(data, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request);
  if (sends) MPI_Ssend(data, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  const int outcome = call();
  if (receives) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    good = data[0] == 42 && data[n - 1] == 42;
  }
  free(data);
  return good ? outcome : 0;
}

SCENARIO(host_waits) {
  const struct {
    const char* name;
    int (*call)(void);
  } calls[] = {{"comm_create_from_group", comm_create_from_group},
               {"session", session},
               {"shrink", shrink},
               {"agree", agree},
               {"at_all_c", at_all_c},
               {"all_c", all_c},
               {"ordered", ordered},
               {"split", split},
               {"file_state", file_state}};
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_File_open(comm, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    int wanted = argc == 2;
    for (int a = 2; a < argc; ++a) wanted |= !strcmp(argv[a], calls[i].name);
    if (!wanted) continue;
    const int outcome = with_a_transfer(calls[i].call);
    int least = 0;
    MPI_Allreduce(&outcome, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %s\n", calls[i].name, least > 0 ? "good" : least < 0 ? "lacking" : "wrong");
    fflush(stdout);
  }
  MPI_File_close(&file);
  MPI_Comm_free(&comm);
}
