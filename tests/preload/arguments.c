/* Under libnearfield.so: the first call of an MPI function binds and passes all arguments on as they were, and so does
   every later one; dlsym and dlopen give what the loader's own do. */
#include <dlfcn.h>
#include <stdio.h>

typedef long Sendrecv(long, long, long, long, long, long, long, long, long, long, long, long);
extern Sendrecv MPI_Sendrecv, PMPI_Sendrecv;

static long expected(long first) {
  long sum = 0;
  for (long at = 0; at < 12; ++at) sum = sum * 13 + first + at;
  return sum;
}
static long call(Sendrecv* function, long a) {
  return function(a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8, a + 9, a + 10, a + 11);
}

int main(void) {
  if (!dlsym(RTLD_DEFAULT, "nearfield_version")) return printf("not preloaded\n"), 1;
  for (long round = 1; round < 4; ++round) {
    if (call(MPI_Sendrecv, round) != expected(round)) return printf("MPI_Sendrecv, call %ld\n", round), 1;
    if (call(PMPI_Sendrecv, -round) != expected(-round)) return printf("PMPI_Sendrecv, call %ld\n", round), 1;
  }
  void* const self = dlopen(NULL, RTLD_NOW);
  Sendrecv* const found = (Sendrecv*)dlsym(self, "MPI_Sendrecv");
  if (!found || call(found, 7) != expected(7)) return printf("dlsym\n"), 1;
  if (dlsym(RTLD_NEXT, "main") == (void*)main || dlsym(RTLD_DEFAULT, "no_such_symbol")) return printf("RTLD_NEXT\n"), 1;
  return 0;
}
