/* Random datatypes of random constructors, three deep, sent and received in messages and collectives; every byte as
   MPI_Pack and MPI_Unpack of the host have it. Two ranks or more. */
#include "scenarios.h"

enum { arena = 1 << 18, middle = arena / 2, most_ints = 1 << 14 };
static unsigned long long state;
static char description[2048];

static int pick(int from, int to) { /* inclusive */
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return from + (int)((state >> 33) % (unsigned)(to - from + 1));
}
static void say(const char* what) {
  if (strlen(description) + strlen(what) + 2 < sizeof description) strcat(strcat(description, what), " ");
}

static MPI_Datatype make(int depth);

static MPI_Datatype construct(int depth) {
  MPI_Datatype inner = make(depth - 1), made = MPI_DATATYPE_NULL;
  int counts[4], places[4], n = pick(1, 4);
  MPI_Aint far[4], low, extent;
  MPI_Type_get_extent(inner, &low, &extent);
  for (int i = 0; i < n; ++i) {
    counts[i] = pick(0, 3);
    places[i] = pick(-3, 6) + 4 * i;
    far[i] = 4 * pick(-20, 40);
  }
  switch (pick(0, 10)) {
    case 0: say("contiguous"), MPI_Type_contiguous(pick(0, 4), inner, &made); break;
    case 1: say("vector"), MPI_Type_vector(n, pick(0, 3), pick(-5, 6), inner, &made); break;
    case 2: say("hvector"), MPI_Type_create_hvector(n, pick(1, 3), 4 * pick(-30, 30), inner, &made); break;
    case 3: say("indexed"), MPI_Type_indexed(n, counts, places, inner, &made); break;
    case 4: say("hindexed"), MPI_Type_create_hindexed(n, counts, far, inner, &made); break;
    case 5: say("indexed_block"), MPI_Type_create_indexed_block(n, pick(1, 2), places, inner, &made); break;
    case 6: say("hindexed_block"), MPI_Type_create_hindexed_block(n, pick(1, 2), far, inner, &made); break;
    case 7: {
      MPI_Datatype types[4];
      say("struct");
      for (int i = 0; i < n; ++i) types[i] = i % 2 ? MPI_INT : inner;
      MPI_Type_create_struct(n, counts, far, types, &made);
      break;
    }
    case 8: {
      int sizes[3], parts[3], starts[3];
      const int dimensions = pick(1, 3);
      say("subarray");
      for (int i = 0; i < dimensions; ++i) {
        sizes[i] = pick(1, 5);
        parts[i] = pick(1, sizes[i]);
        starts[i] = pick(0, sizes[i] - parts[i]);
      }
      MPI_Type_create_subarray(dimensions, sizes, parts, starts, pick(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner,
                               &made);
      break;
    }
    case 9: {
      const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
      int sizes[2], how[2], with[2], grid[2];
      say("darray");
      for (int i = 0; i < 2; ++i) {
        sizes[i] = pick(1, 7);
        how[i] = kinds[pick(0, 2)];
        grid[i] = how[i] == MPI_DISTRIBUTE_NONE ? 1 : pick(1, 3);
        with[i] = how[i] == MPI_DISTRIBUTE_CYCLIC && pick(0, 1) ? pick(1, 2) : MPI_DISTRIBUTE_DFLT_DARG;
      }
      const int all = grid[0] * grid[1];
      MPI_Type_create_darray(all, pick(0, all - 1), 2, sizes, how, with, grid,
                             pick(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner, &made);
      break;
    }
    default:
      say("resized");
      MPI_Type_create_resized(inner, 4 * pick(-8, 2), 4 * pick(0, 40), &made);
      break;
  }
  if (made == MPI_DATATYPE_NULL) { /* hosts refuse some that are empty */
    say("refused");
    return inner;
  }
  if (inner != MPI_INT) MPI_Type_free(&inner);
  return made;
}

static MPI_Datatype make(int depth) { return depth == 0 || pick(0, 4) == 0 ? MPI_INT : construct(depth); }

/* Arguments: the first seed, and how many. */
SCENARIO(nested) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int tried = 0, received = 0;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  char *data = malloc(arena), *ours = malloc(arena), *hosts = malloc(arena);
  int *packed = malloc(4 * most_ints), *came = malloc(4 * most_ints * (size_t)size), *numbers = malloc(4 * most_ints);
  for (int i = 0; i < most_ints; ++i) numbers[i] = 1000000 + i;
  for (int i = 0; i < arena / 4; ++i) ((int*)data)[i] = i;
  const int first = atoi(argv[1]), times = atoi(argv[2]);
  for (int seed = first; seed < first + times; ++seed) {
    state = (unsigned long long)seed * 0x9e3779b97f4a7c15ull;
    description[0] = 0;
    MPI_Datatype type = construct(3);
    if (type == MPI_INT) continue;
    const int absolute = pick(0, 3) == 0, count = absolute ? 1 : pick(1, 3);
    MPI_Aint low, extent, true_low, true_extent;
    int bytes, position = 0;
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &low, &extent);
    MPI_Type_get_true_extent(type, &true_low, &true_extent);
    const MPI_Aint reach = labs(extent) * count + labs(true_low) + true_extent;
    if (!bytes || reach >= middle - 64 || (long)bytes * count > 4L * most_ints) {
      MPI_Type_free(&type);
      continue;
    }
    char *from = data + middle, *into = ours + middle;
    if (absolute) { /* at an absolute address, from MPI_BOTTOM */
      MPI_Aint place;
      int one = 1;
      MPI_Datatype there;
      MPI_Get_address(from, &place);
      MPI_Type_create_struct(1, &one, &place, &type, &there);
      MPI_Type_free(&type);
      type = there;
      say("from MPI_BOTTOM");
    }
    MPI_Type_commit(&type);
    const void* send = absolute ? MPI_BOTTOM : from;
    const int ints = bytes * count / 4;
    MPI_Pack(send, count, type, packed, 4 * most_ints, &position, MPI_COMM_SELF);
    ++tried;
    int good = position == 4 * ints;
    memset(came, 0xff, 4 * (size_t)ints);
    MPI_Sendrecv(send, count, type, right, 0, came, ints, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    good &= memcmp(came, packed, 4 * (size_t)ints) == 0;
    memset(came, 0xff, 4 * (size_t)ints * (size_t)size);
    MPI_Allgather(send, count, type, came, ints, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) good &= memcmp(came + (size_t)r * (size_t)ints, packed, 4 * (size_t)ints) == 0;
    if (!absolute) { /* types that put two numbers into one place cannot receive */
      memset(hosts, 0, arena);
      position = 0;
      MPI_Unpack(numbers, 4 * ints, &position, hosts + middle, count, type, MPI_COMM_SELF);
      position = 0;
      MPI_Pack(hosts + middle, count, type, packed, 4 * most_ints, &position, MPI_COMM_SELF);
      if (memcmp(packed, numbers, 4 * (size_t)ints) == 0) {
        ++received;
        memset(ours, 0, arena);
        MPI_Sendrecv(numbers, ints, MPI_INT, right, 0, into, count, type, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        good &= memcmp(ours, hosts, arena) == 0;
        memset(ours, 0, arena);
        MPI_Sendrecv(hosts + middle, count, type, right, 0, into, count, type, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        good &= memcmp(ours, hosts, arena) == 0;
        memset(ours, 0, arena);
        if (rank == 0) memcpy(ours, hosts, arena);
        MPI_Bcast(into, count, type, 0, MPI_COMM_WORLD);
        good &= memcmp(ours, hosts, arena) == 0;
      }
    }
    CHECK(good, "seed %d, %d of: %s", seed, count, description);
    MPI_Type_free(&type);
  }
  CHECK(tried > times * 3 / 4 && received > times * 3 / 8, "%d types, %d of which could receive", tried, received);
  free(data), free(ours), free(hosts), free(packed), free(came), free(numbers);
}
