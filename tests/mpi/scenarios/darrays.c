/* Random distributed arrays, plain and as parts of other types: what Nearfield makes of their layout against MPI_Pack.
 */
#include "scenarios.h"

static unsigned long state = 12345;
static int draw(int below) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return (int)((state >> 33) % (unsigned)below);
}

/* Not committed. */
static MPI_Datatype random_array(MPI_Datatype element) {
  enum { most = 3 };
  int sizes[most], kinds[most], arguments[most], processes[most], ranks = 1;
  const int dimensions = 1 + draw(most);
  for (int d = 0; d < dimensions; ++d) {
    sizes[d] = 1 + draw(9);
    processes[d] = 1 + draw(3);
    arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
    switch (draw(5)) {
      case 0:
        kinds[d] = MPI_DISTRIBUTE_NONE;
        processes[d] = 1;
        break;
      case 1: kinds[d] = MPI_DISTRIBUTE_BLOCK; break;
      case 2:
        kinds[d] = MPI_DISTRIBUTE_BLOCK;
        arguments[d] = (sizes[d] + processes[d] - 1) / processes[d] + draw(3);
        break;
      case 3: kinds[d] = MPI_DISTRIBUTE_CYCLIC; break;
      default: kinds[d] = MPI_DISTRIBUTE_CYCLIC; arguments[d] = 1 + draw(4);
    }
    ranks *= processes[d];
  }
  MPI_Datatype made;
  MPI_Type_create_darray(ranks, draw(ranks), dimensions, sizes, kinds, arguments, processes,
                         draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, element, &made);
  return made;
}

/* The argument is how many; on two ranks. */
SCENARIO(darrays) {
  enum { room = 1 << 20 };
  char *memory = malloc(room), *packed = malloc(room), *got = malloc(room), *other = malloc(room);
  const int cases = atoi(argv[1]);
  for (int k = 0; k < cases; ++k) {
    MPI_Datatype gaps, element = MPI_INT, type, inner;
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &gaps);
    if (draw(3) == 0) element = gaps;
    inner = random_array(element);
    MPI_Aint low, extent;
    MPI_Type_get_extent(inner, &low, &extent);
    switch (draw(4)) {
      case 0: MPI_Type_create_resized(inner, 0, extent + 4 * draw(3), &type); break;
      case 1: MPI_Type_vector(2, 1, 2, inner, &type); break;
      case 2: type = random_array(inner); break;
      default: MPI_Type_dup(inner, &type);
    }
    MPI_Type_commit(&type);
    int bytes, position = 0;
    const int count = 1 + draw(2);
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &low, &extent);
    bytes *= count;
    REQUIRE(low >= 0 && extent * count <= room && bytes <= room, "case %d is too large", k);
    for (int i = 0; i < room; ++i) memory[i] = (char)(i * 7 + (i >> 8) + k);
    MPI_Pack(memory, count, type, packed, room, &position, MPI_COMM_SELF);
    const int words = element == MPI_INT ? bytes / 4 : bytes / 2;
    const MPI_Datatype word = element == MPI_INT ? MPI_INT : MPI_SHORT;
    if (rank == 0) {
      MPI_Send(memory, count, type, 1, k, MPI_COMM_WORLD);
      MPI_Send(packed, words, word, 1, k, MPI_COMM_WORLD);
    } else {
      MPI_Recv(got, words, word, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      int differs = position != bytes || memcmp(got, packed, bytes);
      memset(got, 0, room);
      memset(other, 0, room);
      MPI_Recv(got, count, type, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      position = 0;
      MPI_Unpack(packed, bytes, &position, other, count, type, MPI_COMM_SELF);
      differs |= memcmp(got, other, room);
      CHECK(!differs, "case %d", k);
    }
    MPI_Type_free(&type);
    MPI_Type_free(&inner);
    MPI_Type_free(&gaps);
  }
  free(memory), free(packed), free(got), free(other);
}
