/* Derived types in collectives: dense ones, with gaps, out of order, and at absolute addresses from MPI_BOTTOM; and
   files, which hosts read and write by such calls. Every byte is checked, those in gaps too. */
#include "scenarios.h"

enum { kinds = 4, untouched = 0xAA };
static int wrong;

/* Where an element's data lies: blocks in the order of the signature, and what the element spans. */
static const struct {
  int blocks, offset[3], length[3], extent;
} shape[kinds] = {
    {1, {0}, {10}, 10},              /* five shorts */
    {3, {0, 16, 32}, {8, 8, 8}, 40}, /* vector of pairs of ints */
    {2, {24, 0}, {8, 8}, 32},        /* two doubles, the second first */
    {2, {1, 8}, {1, 8}, 48},         /* a character and a double */
};
static MPI_Datatype type[kinds];

static void make_types(void) {
  MPI_Aint places[2] = {24, 0}, fields[2] = {1, 8};
  int ones[2] = {1, 1};
  MPI_Datatype two[2] = {MPI_CHAR, MPI_DOUBLE}, bare;
  MPI_Type_contiguous(5, MPI_SHORT, &type[0]);
  MPI_Type_vector(3, 2, 4, MPI_INT, &type[1]);
  MPI_Type_create_hindexed(2, ones, places, MPI_DOUBLE, &type[2]);
  MPI_Type_create_struct(2, ones, fields, two, &bare);
  MPI_Type_create_resized(bare, 0, 48, &type[3]);
  MPI_Type_free(&bare);
  for (int k = 0; k < kinds; ++k) MPI_Type_commit(&type[k]);
}

static unsigned char value(int owner, int block, int element, int byte) {
  return (unsigned char)(1 + (owner * 7 + block * 31 + element * 13 + byte * 3) % 150);
}

/* One side of a call: `blocks` blocks of `n` elements. */
struct Side {
  unsigned char* memory;
  void* buffer;
  int count;
  MPI_Datatype type, made;
  long bytes;
};

static struct Side side(int kind, int blocks, int n, int bottom) {
  struct Side s = {0};
  s.bytes = (long)shape[kind].extent * n * blocks + 64;
  s.memory = malloc(s.bytes);
  memset(s.memory, untouched, s.bytes);
  s.buffer = s.memory;
  s.count = n;
  s.type = type[kind];
  s.made = MPI_DATATYPE_NULL;
  if (bottom) {
    MPI_Aint at, low, extent;
    MPI_Get_address(s.memory, &at);
    MPI_Datatype absolute;
    MPI_Type_create_hindexed(1, &n, &at, type[kind], &absolute);
    MPI_Type_get_extent(type[kind], &low, &extent);
    MPI_Type_create_resized(absolute, at, extent * n, &s.made);
    MPI_Type_commit(&s.made);
    MPI_Type_free(&absolute);
    s.buffer = MPI_BOTTOM;
    s.count = 1;
    s.type = s.made;
  }
  return s;
}

static void visit(struct Side* s, int kind, int n, int at, int owner, int block, int check, unsigned char* seen) {
  for (int e = 0; e < n; ++e)
    for (int b = 0, byte = 0; b < shape[kind].blocks; ++b)
      for (int i = 0; i < shape[kind].length[b]; ++i, ++byte) {
        const long place = (long)shape[kind].extent * (at * n + e) + shape[kind].offset[b] + i;
        const unsigned char want = value(owner, block, e, byte);
        if (!check) s->memory[place] = want;
        else if (s->memory[place] != want) ++wrong;
        if (seen) seen[place] = 1;
      }
}

/* owner_of(block) has sent what must lie in that block; blocks of no owner are untouched. */
static void finish(const char* what, struct Side* s, int kind, int n, int blocks, const int* owners,
                   const int* numbers) {
  const int before = wrong;
  unsigned char* const seen = calloc(s->bytes, 1);
  for (int b = 0; b < blocks; ++b) visit(s, kind, n, b, owners[b], numbers[b], 1, seen);
  for (long i = 0; i < s->bytes; ++i)
    if (!seen[i] && s->memory[i] != untouched) ++wrong;
  CHECK(wrong == before, "%s, kind %d, %d elements: %d bytes", what, kind, n, wrong - before);
  free(seen);
}

static void drop(struct Side* s) {
  if (s->made != MPI_DATATYPE_NULL) MPI_Type_free(&s->made);
  free(s->memory);
}

static void collectives(int kind, int n, int bottom) {
  int all[64], zeros[64] = {0}, mine[64], numbers[64];
  for (int r = 0; r < size; ++r) {
    all[r] = r;
    mine[r] = rank;
    numbers[r] = r;
  }
  const int root = (kind + n) % size;
  const int other = bottom ? rank % 2 : 0; /* some ranks give addresses, others not */
  for (int in_place = 0; in_place < 2; ++in_place) {
    struct Side one = side(kind, 1, n, bottom), many = side(kind, size, n, other), got = side(kind, size, n, bottom);
    /* bcast */
    if (rank == root) visit(&one, kind, n, 0, root, 0, 0, NULL);
    MPI_Bcast(one.buffer, one.count, one.type, root, MPI_COMM_WORLD);
    finish("bcast", &one, kind, n, 1, &root, zeros);
    /* allgather and gather */
    visit(&one, kind, n, 0, rank, 0, 0, NULL);
    if (in_place) visit(&got, kind, n, rank, rank, 0, 0, NULL);
    MPI_Allgather(in_place ? MPI_IN_PLACE : one.buffer, one.count, one.type, got.buffer, got.count, got.type,
                  MPI_COMM_WORLD);
    finish("allgather", &got, kind, n, size, all, zeros);
    memset(got.memory, untouched, got.bytes);
    if (in_place && rank == root) visit(&got, kind, n, rank, rank, 0, 0, NULL);
    MPI_Gather(in_place && rank == root ? MPI_IN_PLACE : one.buffer, one.count, one.type, got.buffer, got.count,
               got.type, root, MPI_COMM_WORLD);
    if (rank == root) finish("gather", &got, kind, n, size, all, zeros);
    /* scatter */
    memset(one.memory, untouched, one.bytes);
    for (int r = 0; r < size; ++r) visit(&many, kind, n, r, rank, r, 0, NULL);
    MPI_Scatter(many.buffer, many.count, many.type, in_place && rank == root ? MPI_IN_PLACE : one.buffer, one.count,
                one.type, root, MPI_COMM_WORLD);
    if (rank != root || !in_place) finish("scatter", &one, kind, n, 1, &root, &rank);
    finish("scatter's source", &many, kind, n, size, mine, numbers);
    /* alltoall */
    memset(got.memory, untouched, got.bytes);
    if (in_place)
      for (int r = 0; r < size; ++r) visit(&got, kind, n, r, rank, r, 0, NULL);
    MPI_Alltoall(in_place ? MPI_IN_PLACE : many.buffer, many.count, many.type, got.buffer, got.count, got.type,
                 MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) zeros[r] = rank;
    finish("alltoall", &got, kind, n, size, all, zeros);
    memset(zeros, 0, sizeof zeros);
    drop(&one);
    drop(&many);
    drop(&got);
  }
}

/* Interleaved blocks of all ranks, written and read back together. */
static void files(const char* path) {
  enum { n = 1000 };
  int out[n], in[n];
  MPI_File file;
  MPI_Datatype view;
  for (int i = 0; i < n; ++i) out[i] = rank * n + i;
  MPI_Type_vector(n / 10, 10, 10 * size, MPI_INT, &view);
  MPI_Type_commit(&view);
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  REQUIRE(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  MPI_File_set_view(file, (MPI_Offset)(rank * 10 * sizeof(int)), MPI_INT, view, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, out, n, MPI_INT, MPI_STATUS_IGNORE);
  memset(in, 0, sizeof in);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read_all(file, in, n, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(!memcmp(in, out, sizeof in));
  MPI_File_close(&file);
  MPI_Type_free(&view);
}

/* The argument is a path for a file. */
SCENARIO(derived) {
  make_types();
  const int counts[] = {1, 3, 100, 5000};
  for (int kind = 0; kind < kinds; ++kind)
    for (int c = 0; c < 4; ++c)
      for (int bottom = 0; bottom < 2; ++bottom) collectives(kind, counts[c], bottom);
  files(argv[1]);
  for (int k = 0; k < kinds; ++k) MPI_Type_free(&type[k]);
}
