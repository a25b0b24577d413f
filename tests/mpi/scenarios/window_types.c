/* Accumulates of predefined types with all operators, and of types made of them: what each call says, and what the
   target holds afterwards. The lines of two runs can be compared. */
#include "scenarios.h"

enum { count = 3, room = 64 * count };

typedef struct {
  const char* name;
  MPI_Datatype type;
  int doubles;
} Type;
typedef struct {
  const char* name;
  MPI_Op op;
} Op;
#define T(x) {#x, MPI_##x}

static unsigned char* memory;
static MPI_Win win;

/* Ten bytes of each sixteen: the others are padding of the longest type. */
static unsigned sum_of(const unsigned char* at, int bytes) {
  unsigned sum = 0;
  for (int i = 0; i < bytes; ++i)
    if (i % 16 < 10) sum = sum * 31 + at[i];
  return sum;
}

/* Right truth values, right numbers. */
static void fill(unsigned char* at, int seed, int doubles) {
  for (int i = 0; i < room; ++i) at[i] = (unsigned char)(i * seed % 7 % 2);
  for (int i = 0; doubles && i < room / 8; ++i) ((double*)at)[i] = i * seed % 7 - 2.5;
}

static void combine(const Type* type, const Op* op, int blocks) {
  static _Alignas(16) unsigned char from[room], before[room];
  fill(memory, 1, type->doubles);
  fill(from, 3, type->doubles);
  memset(before, 0, room);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  const int first = class_of(MPI_Accumulate(from, blocks, type->type, 0, 0, blocks, type->type, op->op, win));
  MPI_Win_flush(0, win);
  const int second = class_of(
      MPI_Get_accumulate(from, blocks, type->type, before, blocks, type->type, 0, 0, blocks, type->type, op->op, win));
  MPI_Win_unlock(0, win);
  printf("%s %s: %s %s %u %u\n", type->name, op->name, first ? "refused" : "good", second ? "refused" : "good",
         first ? 0 : sum_of(memory, room), second ? 0 : sum_of(before, room));
}

SCENARIO(window_types) {
  MPI_Datatype f90, parts, pair;
  MPI_Type_create_f90_real(15, 300, &f90);
  MPI_Type_vector(count, 1, 2, MPI_CHAR, &parts);
  MPI_Type_commit(&parts);
  MPI_Type_contiguous(2, f90, &pair);
  MPI_Type_commit(&pair);
  const Type types[] = {T(CHAR),
                        T(SIGNED_CHAR),
                        T(UNSIGNED_CHAR),
                        T(BYTE),
                        T(CHARACTER),
                        T(SHORT),
                        T(INT),
                        T(LONG),
                        T(UNSIGNED),
                        T(WCHAR),
                        T(C_BOOL),
                        T(AINT),
                        T(OFFSET),
                        T(COUNT),
                        T(INT8_T),
                        T(UINT16_T),
                        T(UINT64_T),
                        {"f90", f90, 1},
                        {"DOUBLE", MPI_DOUBLE, 1},
                        {"parts", parts},
                        {"pair of f90", pair, 1}};
  const Op ops[] = {T(SUM), T(PROD), T(MIN), T(MAX), T(LAND), T(LXOR), T(BAND), T(BXOR), T(MINLOC), T(REPLACE)};
  MPI_Win_allocate(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (rank > 0) goto end;
  for (unsigned t = 0; t < sizeof types / sizeof *types; ++t)
    for (unsigned o = 0; o < sizeof ops / sizeof *ops; ++o) combine(&types[t], &ops[o], count);
  /* One word each. */
  signed char mine = 'b', there = 'a', found = 0;
  memory[0] = 'a';
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  printf("swap: %d", class_of(MPI_Compare_and_swap(&mine, &there, &found, MPI_CHAR, 0, 0, win)));
  MPI_Win_flush(0, win);
  printf(" %c %c\n", found, memory[0]);
  MPI_Win_unlock(0, win);
end:
  MPI_Win_free(&win);
  MPI_Type_free(&parts);
  MPI_Type_free(&pair);
}
