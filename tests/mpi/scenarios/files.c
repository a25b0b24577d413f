/* Files, which hosts read and write by calls from MPI_BOTTOM, and such a call. The argument is a path. */
#include "scenarios.h"

enum { n = 1000 };

/* Interleaved blocks of all ranks, written and read back together. */
SCENARIO(files) {
  int out[n], in[n];
  MPI_File file;
  MPI_Datatype view, absolute;
  MPI_Aint place;
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, length = n / 2;
  for (int i = 0; i < n; ++i) out[i] = rank * n + i;
  MPI_Type_vector(n / 10, 10, 10 * size, MPI_INT, &view);
  MPI_Type_commit(&view);
  REQUIRE(MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  MPI_File_set_view(file, (MPI_Offset)(rank * 10 * sizeof(int)), MPI_INT, view, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, out, n, MPI_INT, MPI_STATUS_IGNORE);
  memset(in, 0, sizeof in);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read_all(file, in, n, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(!memcmp(in, out, sizeof in));
  MPI_File_close(&file);
  MPI_Type_free(&view);
  MPI_Get_address(in, &place);
  MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  for (int i = 0; i < length; ++i) in[i] = rank == 1 ? -i : 0;
  MPI_Bcast(MPI_BOTTOM, 1, absolute, 1, MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i) CHECK(in[i] == (i < length ? -i : out[i]), "%d is %d", i, in[i]);
  MPI_Type_free(&absolute);
}
