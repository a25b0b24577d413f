/* Reductions that only the host can combine: all bytes of the buffers have to be what they should, gaps and what lies
   around included, and Nearfield has to have carried the call. Operands are matrices of two by two, whose product is
   associative and does not commute, in types with and without gaps, against the product and the host's result (where
   the types begin at their address: MPICH 5.0.2 writes elsewhere if not); and Fortran's integers as truth values,
   against what the host makes of them. Argument: the longest count. */
#include "scenarios.h"

enum { shapes = 4, before = 128, calls = 6 };
static const char* const names[calls] = {"reduce", "allreduce", "reduce_scatter_block",
                                         "scan",   "exscan",    "reduce_scatter"};
/* Where a type has the four numbers of a matrix, and the bytes from one element to the next. */
struct Shape {
  long at[4], extent;
  MPI_Datatype type;
};
static struct Shape shape[shapes] = {
    {{0, 4, 8, 12}, 16, 0}, {{0, 8, 16, 24}, 28, 0}, {{40, -12, 16, 4}, 64, 0}, {{4, 8, 12, 20}, 24, 0}};
static MPI_Comm comm;
static long compared, strange;
static unsigned char *kept, *sent, *got[2], *expected, *start;
static size_t room; /* of the call */

static void make_shapes(void) {
  int ones[4] = {1, 1, 1, 1};
  MPI_Datatype inner;
  for (int s = 0; s < shapes; ++s) {
    MPI_Aint places[4] = {shape[s].at[0], shape[s].at[1], shape[s].at[2], shape[s].at[3]};
    MPI_Type_create_hindexed(4, ones, places, MPI_UNSIGNED, &inner);
    MPI_Type_create_resized(inner, s == 2 ? -16 : 0, shape[s].extent, &shape[s].type);
    MPI_Type_commit(&shape[s].type);
    MPI_Type_free(&inner);
  }
}

static uint32_t kept_at(long at, int r) {
  uint32_t value = 0;
  for (int b = 3; b >= 0; --b) value = value << 8 | (unsigned char)(((at + b) * 31 + (at + b) / 251 + 7 * r) % 253);
  return value;
}
static uint32_t start_at(long at, int r) {
  uint32_t value = 0;
  for (int b = 3; b >= 0; --b) value = value << 8 | (unsigned char)(((at + b) * 17 + (at + b) / 241 + 3 * r) % 251);
  return value;
}

static void product_of(const uint32_t* a, const uint32_t* b, uint32_t* c) {
  c[0] = a[0] * b[0] + a[1] * b[2], c[1] = a[0] * b[1] + a[1] * b[3];
  c[2] = a[2] * b[0] + a[3] * b[2], c[3] = a[2] * b[1] + a[3] * b[3];
}

static void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  const struct Shape* s = shape;
  while (s < shape + shapes && s->type != *type) ++s;
  if (s == shape + shapes || *count <= 0) {
    ++strange;
    return;
  }
  for (long i = 0; i < *count; ++i) {
    uint32_t a[4], b[4], c[4];
    char *x = (char*)in + i * s->extent, *y = (char*)inout + i * s->extent;
    if ((uintptr_t)x % 4 || (uintptr_t)y % 4) ++strange;
    for (int k = 0; k < 4; ++k) a[k] = *(uint32_t*)(x + s->at[k]), b[k] = *(uint32_t*)(y + s->at[k]);
    product_of(a, b, c);
    for (int k = 0; k < 4; ++k) *(uint32_t*)(y + s->at[k]) = c[k];
  }
}

struct Case {
  int call, in_place, large, root, shape;
  long count;
  MPI_Datatype type;
  MPI_Op op;
};

/* Elements of a member's part of reduce_scatter: equal ones, growing ones, or nearly all of them the last member's. */
static long part(const struct Case* c, int member) {
  if (c->root % 3 == 0) return c->count;
  if (c->root % 3 == 1) return c->count * 2 * member / size;
  return member == size - 1 ? c->count : member % 2;
}

static int make(const struct Case* c, void* s, void* r) {
  const void* from = c->in_place && (c->call || rank == c->root) ? MPI_IN_PLACE : s;
#if MPI_VERSION >= 4
#define CALL(f, ...) (c->large ? f##_c(__VA_ARGS__) : f(__VA_ARGS__))
#else
#define CALL(f, ...) f(__VA_ARGS__)
#endif
  switch (c->call) {
    case 0: return CALL(MPI_Reduce, from, r, c->count, c->type, c->op, c->root, comm);
    case 1: return CALL(MPI_Allreduce, from, r, c->count, c->type, c->op, comm);
    case 2: return CALL(MPI_Reduce_scatter_block, from, r, c->count, c->type, c->op, comm);
    case 3: return CALL(MPI_Scan, from, r, c->count, c->type, c->op, comm);
    case 4: return CALL(MPI_Exscan, from, r, c->count, c->type, c->op, comm);
    default: {
      int parts[16];
#if MPI_VERSION >= 4
      MPI_Count large[16];
      for (int q = 0; q < size; ++q) large[q] = part(c, q);
      if (c->large) return MPI_Reduce_scatter_c(from, r, large, c->type, c->op, comm);
#endif
      for (int q = 0; q < size; ++q) parts[q] = (int)part(c, q);
      return MPI_Reduce_scatter(from, r, parts, c->type, c->op, comm);
    }
  }
}

/* What the call has to leave: the results in elements of the receive buffer, else what was there. */
static void expect(const struct Case* c, int by_host) {
  memcpy(expected, start, room);
  if ((c->call == 0 && rank != c->root) || (c->call == 4 && rank == 0)) return;
  const int last = c->call == 3 ? rank : c->call == 4 ? rank - 1 : size - 1;
  long first = c->call == 2 ? rank * c->count : 0, count = c->call == 5 ? part(c, rank) : c->count;
  for (int r = 0; c->call == 5 && r < rank; ++r) first += part(c, r);
  for (long i = 0; i < count; ++i) {
    uint32_t result[4] = {1, 0, 0, 1};
    for (int r = 0; !by_host && r <= last; ++r) {
      uint32_t factor[4], so_far[4];
      const int in_place = c->in_place && (c->call || r == c->root);
      for (int k = 0; k < 4; ++k) {
        const long at = before + (first + i) * shape[c->shape].extent + shape[c->shape].at[k];
        factor[k] = in_place ? start_at(at, r) : kept_at(at, r);
      }
      memcpy(so_far, result, sizeof result);
      product_of(so_far, factor, result);
    }
    for (int k = 0; k < 4; ++k) {
      const long at = before + (c->shape < 0 ? 16 * i + 4 * k : i * shape[c->shape].extent + shape[c->shape].at[k]);
      memcpy(expected + at, by_host ? (void*)(got[0] + at) : (void*)(result + k), 4);
    }
  }
}

/* In place, the rest of the operands of a block is undefined afterwards. */
static int differs(const struct Case* c, const unsigned char* buffer) {
  const long count = c->call == 5 ? part(c, rank) : c->count;
  const int parts = c->in_place && (c->call == 2 || c->call == 5);
  return memcmp(expected, buffer, parts ? (size_t)(before + (count ? count * shape[c->shape].extent - 16 : 0)) : room);
}

static void compare(struct Case c) {
  int code[2] = {0, 0}, class[2] = {0, 0};
  const long count = c.count;
  const int asks_host = c.shape < 2 && count <= 1000;
  room = (size_t)count * size * 64 + 2 * before;
  if (c.shape < 0) c.count *= 4; /* four integers for a matrix */
  for (int ours = !asks_host; ours < 2; ++ours) {
    set_nearfield(comm, ours ? "on" : "off");
    memcpy(got[ours], start, room);
    memcpy(sent, kept, room);
    code[ours] = make(&c, sent + before, got[ours] + before);
    class[ours] = class_of(code[ours]);
  }
  const char* const by = last_algorithm();
  c.count = count;
  expect(&c, c.shape < 0);
  const char* what = NULL;
  if (asks_host && class[0] != class[1]) what = "another error";
  else if (class[1] == MPI_SUCCESS) {
    long all = c.count;
    if (c.call == 5) all = 0;
    for (int r = 0; c.call == 5 && r < size; ++r) all += part(&c, r);
    if (all && strcmp(by, "combined")) what = "passed on";
    else if (memcmp(sent, kept, room)) what = "has written to the operands";
    else if (differs(&c, got[1])) what = "another result";
    else if (asks_host && differs(&c, got[0])) what = "the host has another result";
  }
  ++compared;
  CHECK(!what, "%s, in place %d, count %ld, shape %d, root %d, large %d: %d and %d, by %s: %s", names[c.call],
        c.in_place, c.count, c.shape, c.root, c.large, code[0], code[1], by, what);
}

SCENARIO(combining) {
  static const long counts[] = {0, 1, 2, 7, 300, 1000, 100000};
  const long longest = atol(argv[1]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  make_shapes();
  room = (size_t)longest * size * 64 + 2 * before;
  kept = malloc(room), sent = malloc(room), expected = malloc(room), start = malloc(room);
  got[0] = malloc(room), got[1] = malloc(room);
  for (size_t i = 0; i < room; ++i) {
    kept[i] = (unsigned char)((i * 31 + i / 251 + 7 * (size_t)rank) % 253);
    start[i] = (unsigned char)((i * 17 + i / 241 + 3 * (size_t)rank) % 251);
  }
  MPI_Op product;
  MPI_Op_create(multiply, 0, &product);
  const MPI_Op logical[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
  for (int call = 0; call < calls; ++call)
    for (int k = 0; k < 7 && counts[k] <= longest; ++k)
      for (int in_place = 0; in_place < 2; ++in_place)
        for (int s = 0; s < shapes; ++s)
          for (int large = 0; large < (counts[k] > 1000 ? 1 : 2); ++large) {
            if (counts[k] > 1000 && s != (call + in_place) % 2 * 2) continue;
            compare((struct Case){call, in_place, large, (k + s) % size, s, counts[k], shape[s].type, product});
          }
  /* Whatever the host makes of integers as truth values. */
  for (int call = 0; call < calls; ++call)
    for (int k = 0; k < 6 && counts[k] <= longest; ++k)
      for (int o = 0; o < 3; ++o)
        compare((struct Case){call, 0, 0, call == 5 ? 0 : k % size, -1, counts[k], MPI_INTEGER, logical[o]});
  CHECK(!strange, "%ld times a strange call of the operator", strange);
  CHECK(compared > 400, "%ld compared", compared);
  MPI_Op_free(&product);
  for (int s = 0; s < shapes; ++s) MPI_Type_free(&shape[s].type);
  MPI_Comm_free(&comm);
  free(kept), free(sent), free(expected), free(start), free(got[0]), free(got[1]);
}
