/* Calls that block in the host while a message of this rank is under way: even ranks have a receive outstanding and
   enter the call, odd ones send first, synchronously. Arguments: a path for a file, names of calls (none: all). Prints
   for each whether its result was right or the library lacks it. Functions are looked up, so that every library can be
   linked. */
#include "scenarios.h"

enum { n = 1 << 20, most = 8, lacking = -1 };
static MPI_Comm comm, ring;
static MPI_File file;

#define LOOK_UP(name, ...)                                                     \
  int (*name)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, #name); \
  if (!name) return lacking

static MPI_Count ones[most], counts[2] = {1, 1};
static MPI_Aint places[most], two_places[2] = {0, 1}, two_bytes[2] = {0, sizeof(int)};

static int sum_to(int r) { return r * (r + 1) / 2; }

static int allgatherv_c(void) {
  LOOK_UP(MPI_Allgatherv_c, const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
          MPI_Datatype, MPI_Comm);
  int mine = rank + 1, all[most], good = 1;
  MPI_Allgatherv_c(&mine, 1, MPI_INT, all, ones, places, MPI_INT, comm);
  for (int r = 0; r < size; ++r) good &= all[size - 1 - r] == r + 1;
  return good;
}
static int gatherv_c(void) {
  LOOK_UP(MPI_Gatherv_c, const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype,
          int, MPI_Comm);
  int mine = rank + 1, all[most], good = 1;
  const int root = rank == 1; /* what is not significant elsewhere may be anything */
  MPI_Gatherv_c(&mine, 1, MPI_INT, all, root ? ones : (MPI_Count*)8, root ? places : (MPI_Aint*)8, MPI_INT, 1, comm);
  for (int r = 0; root && r < size; ++r) good &= all[size - 1 - r] == r + 1;
  return good;
}
static int scatterv_c(void) {
  LOOK_UP(MPI_Scatterv_c, const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, MPI_Count, MPI_Datatype,
          int, MPI_Comm);
  int mine = 0, all[most];
  for (int r = 0; r < size; ++r) all[size - 1 - r] = r + 7;
  MPI_Scatterv_c(all, rank == 1 ? ones : NULL, rank == 1 ? places : NULL, MPI_INT, &mine, 1, MPI_INT, 1, comm);
  return mine == rank + 7;
}
static int reduce_scatter_c(void) {
  LOOK_UP(MPI_Reduce_scatter_c, const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm);
  int out[most], in = 0;
  for (int r = 0; r < size; ++r) out[r] = r;
  MPI_Reduce_scatter_c(out, &in, ones, MPI_INT, MPI_SUM, comm);
  return in == rank * size;
}
static int scan_c(void) {
  LOOK_UP(MPI_Scan_c, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
  int mine = rank + 1, sum = 0;
  MPI_Scan_c(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == sum_to(rank + 1);
}
static int exscan_c(void) {
  LOOK_UP(MPI_Exscan_c, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
  int mine = rank + 1, sum = 0;
  MPI_Exscan_c(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  return rank == 0 || sum == sum_to(rank);
}

/* On a ring: neighbour 0 is the rank before, 1 the one after. */
static int before(void) { return (rank + size - 1) % size; }
static int after(void) { return (rank + 1) % size; }
static int neighbor_allgather_c(void) {
  LOOK_UP(MPI_Neighbor_allgather_c, const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
  int got[2] = {-1, -1};
  MPI_Neighbor_allgather_c(&rank, 1, MPI_INT, got, 1, MPI_INT, ring);
  return got[0] == before() && got[1] == after();
}
static int neighbor_allgatherv_c(void) {
  LOOK_UP(MPI_Neighbor_allgatherv_c, const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
          MPI_Datatype, MPI_Comm);
  int got[2] = {-1, -1};
  MPI_Neighbor_allgatherv_c(&rank, 1, MPI_INT, got, counts, two_places, MPI_INT, ring);
  return got[0] == before() && got[1] == after();
}
static int neighbor_alltoallv_c(void) {
  LOOK_UP(MPI_Neighbor_alltoallv_c, const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
          const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm);
  int out[2] = {rank * 2, rank * 2 + 1}, got[2] = {-1, -1};
  MPI_Neighbor_alltoallv_c(out, counts, two_places, MPI_INT, got, counts, two_places, MPI_INT, ring);
  return size == 2 || (got[0] == before() * 2 + 1 && got[1] == after() * 2);
}
static int neighbor_alltoallw_c(void) {
  LOOK_UP(MPI_Neighbor_alltoallw_c, const void*, const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, void*,
          const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm);
  int out[2] = {rank * 2, rank * 2 + 1}, got[2] = {-1, -1};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Neighbor_alltoallw_c(out, counts, two_bytes, types, got, counts, two_bytes, types, ring);
  return size == 2 || (got[0] == before() * 2 + 1 && got[1] == after() * 2);
}

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
  } calls[] = {{"allgatherv_c", allgatherv_c},
               {"gatherv_c", gatherv_c},
               {"scatterv_c", scatterv_c},
               {"reduce_scatter_c", reduce_scatter_c},
               {"scan_c", scan_c},
               {"exscan_c", exscan_c},
               {"neighbor_allgather_c", neighbor_allgather_c},
               {"neighbor_allgatherv_c", neighbor_allgatherv_c},
               {"neighbor_alltoallv_c", neighbor_alltoallv_c},
               {"neighbor_alltoallw_c", neighbor_alltoallw_c},
               {"comm_create_from_group", comm_create_from_group},
               {"session", session},
               {"shrink", shrink},
               {"agree", agree},
               {"at_all_c", at_all_c},
               {"all_c", all_c},
               {"ordered", ordered},
               {"split", split},
               {"file_state", file_state}};
  for (int r = 0; r < size; ++r) {
    ones[r] = 1;
    places[r] = size - 1 - r;
  }
  const int periodic = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
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
  MPI_Comm_free(&ring);
  MPI_Comm_free(&comm);
}
