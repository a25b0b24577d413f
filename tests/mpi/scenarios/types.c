/* Every predefined datatype with every operator: Nearfield's result against the host's on the same communicator. */
#include "scenarios.h"

enum { count = 67, longest = 32 };

static MPI_Comm comm;

/* Small exact values in whatever the type is; `kind`: 0 integer, 1 floating, 2 pair of value and int,
   3 truth value. */
static void fill(char* data, int bytes, int extent, int kind, int pair_value) {
  memset(data, 0, (size_t)count * size * extent);
  for (int i = 0; i < count * size; ++i) {
    int value = (rank * 3 + i) % 5 + 1;
    char* at = data + (size_t)i * extent;
    if (kind == 0) memcpy(at, &value, bytes < 4 ? 1 : 4);
    if (kind == 3) *at = value & 1;
    if (kind == 1 && bytes == 4) *(float*)at = value;
    if (kind == 1 && bytes == 8) *(double*)at = value;
    if (kind == 1 && bytes == 16) *(long double*)at = value;
    if (kind == 2) {
      if (pair_value == 4) *(float*)at = value;
      if (pair_value == 8) *(double*)at = value;
      if (pair_value == 16) *(long double*)at = value;
      if (pair_value == -4) memcpy(at, &value, 4);
      if (pair_value == -2) *(short*)at = (short)value;
      if (pair_value == -8) *(long*)at = value;
      *(int*)(at + (abs(pair_value) < 4 ? 4 : abs(pair_value))) = (rank * 7 + i) % 11;
    }
  }
}

#define T(type, kind, pair) {#type, type, kind, pair}

SCENARIO(types) {
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  struct {
    const char* name;
    MPI_Datatype type;
    int kind, pair;
  } types[] = {T(MPI_CHAR, 0, 0),
               T(MPI_SIGNED_CHAR, 0, 0),
               T(MPI_UNSIGNED_CHAR, 0, 0),
               T(MPI_BYTE, 0, 0),
               T(MPI_WCHAR, 0, 0),
               T(MPI_SHORT, 0, 0),
               T(MPI_UNSIGNED_SHORT, 0, 0),
               T(MPI_INT, 0, 0),
               T(MPI_UNSIGNED, 0, 0),
               T(MPI_LONG, 0, 0),
               T(MPI_UNSIGNED_LONG, 0, 0),
               T(MPI_LONG_LONG, 0, 0),
               T(MPI_UNSIGNED_LONG_LONG, 0, 0),
               T(MPI_FLOAT, 1, 0),
               T(MPI_DOUBLE, 1, 0),
               T(MPI_LONG_DOUBLE, 1, 0),
               T(MPI_INT8_T, 0, 0),
               T(MPI_INT16_T, 0, 0),
               T(MPI_INT32_T, 0, 0),
               T(MPI_INT64_T, 0, 0),
               T(MPI_UINT8_T, 0, 0),
               T(MPI_UINT16_T, 0, 0),
               T(MPI_UINT32_T, 0, 0),
               T(MPI_UINT64_T, 0, 0),
               T(MPI_C_BOOL, 3, 0),
               T(MPI_AINT, 0, 0),
               T(MPI_OFFSET, 0, 0),
               T(MPI_COUNT, 0, 0),
               T(MPI_C_FLOAT_COMPLEX, 1, 0),
               T(MPI_C_DOUBLE_COMPLEX, 1, 0),
               T(MPI_C_LONG_DOUBLE_COMPLEX, 1, 0),
               T(MPI_FLOAT_INT, 2, 4),
               T(MPI_DOUBLE_INT, 2, 8),
               T(MPI_LONG_DOUBLE_INT, 2, 16),
               T(MPI_2INT, 2, -4),
               T(MPI_SHORT_INT, 2, -2),
               T(MPI_LONG_INT, 2, -8),
               T(MPI_CHARACTER, 0, 0),
               T(MPI_INTEGER, 0, 0),
               T(MPI_REAL, 1, 0),
               T(MPI_DOUBLE_PRECISION, 1, 0),
               T(MPI_COMPLEX, 1, 0),
               T(MPI_DOUBLE_COMPLEX, 1, 0),
               T(MPI_LOGICAL, 0, 0),
               T(MPI_2INTEGER, 2, -4),
               T(MPI_2REAL, 1, 0),
               T(MPI_2DOUBLE_PRECISION, 1, 0)};
  struct {
    const char* name;
    MPI_Op op;
  } ops[] = {{"SUM", MPI_SUM},   {"PROD", MPI_PROD}, {"MIN", MPI_MIN},       {"MAX", MPI_MAX},
             {"LAND", MPI_LAND}, {"LOR", MPI_LOR},   {"LXOR", MPI_LXOR},     {"BAND", MPI_BAND},
             {"BOR", MPI_BOR},   {"BXOR", MPI_BXOR}, {"MINLOC", MPI_MINLOC}, {"MAXLOC", MPI_MAXLOC}};
  size_t room = (size_t)count * size * longest * 2;
  char *send = malloc(room), *results[2] = {malloc(room), malloc(room)};
  int compared = 0;
  for (size_t t = 0; t < sizeof types / sizeof *types; ++t) {
    int bytes;
    MPI_Aint low, extent;
    if (types[t].type == MPI_DATATYPE_NULL) continue;
    MPI_Type_size(types[t].type, &bytes);
    MPI_Type_get_extent(types[t].type, &low, &extent);
    if (bytes == 0) continue; /* a Fortran type that this host was built without */
    for (size_t o = 0; o < sizeof ops / sizeof *ops; ++o) {
      for (int which = 0; which < 3; ++which) {
        int class[2];
        for (int nearfield = 0; nearfield < 2; ++nearfield) {
          fill(send, bytes, (int)extent, types[t].kind, types[t].pair);
          memset(results[nearfield], 0, room);
          set_nearfield(comm, nearfield ? "on" : "off");
          int code;
          if (which == 0) code = MPI_Allreduce(send, results[nearfield], count, types[t].type, ops[o].op, comm);
          else if (which == 1)
            code = MPI_Reduce(send, results[nearfield], count, types[t].type, ops[o].op, size - 1, comm);
          else code = MPI_Reduce_scatter_block(send, results[nearfield], count, types[t].type, ops[o].op, comm);
          class[nearfield] = class_of(code);
        }
        int differs = class[0] != class[1];
        for (int i = 0; !differs && class[0] == MPI_SUCCESS && (which != 1 || rank == size - 1) && i < count; ++i) {
          /* Padding inside an element has no value. */
          char *x = results[0] + i * extent, *y = results[1] + i * extent;
          int value = types[t].kind == 2 ? abs(types[t].pair) : bytes;
          int used = value == 16 && types[t].kind ? 10 : value;
          if (types[t].kind == 1 && bytes == 32) differs = memcmp(x, y, 10) || memcmp(x + 16, y + 16, 10);
          else if (types[t].kind == 1 && bytes == 16 && types[t].type != MPI_LONG_DOUBLE) differs = memcmp(x, y, 16);
          else differs = memcmp(x, y, used);
          if (types[t].kind == 2) differs |= memcmp(x + (value < 4 ? 4 : value), y + (value < 4 ? 4 : value), 4);
        }
        CHECK(!differs, "%s %s, call %d: error classes %d and %d, or other results", types[t].name, ops[o].name, which,
              class[0], class[1]);
        ++compared;
      }
    }
  }
  CHECK(compared > 1000, "%d comparisons", compared);
  MPI_Comm_free(&comm);
  free(send), free(results[0]), free(results[1]);
}
