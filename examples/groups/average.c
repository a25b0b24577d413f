/* The average of a vector over processes that share nothing but a directory, by Nearfield's C API: neither MPI nor
 * PyTorch.
 *
 *     cc average.c -lnearfield-engine -o average
 *     mkdir meeting; ./average 0 2 meeting & ./average 1 2 meeting
 *
 * average.py is the same in Python, and may be one of the processes.
 */
#include <nearfield.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct meeting {
  const char* directory;
  int rank, size, round;
};

/* Whatever the processes have will do: here each writes a file, and reads those of the others once they are there. */
static int exchange(void* context, const void* mine, void* all, size_t bytes) {
  struct meeting* const with = context;
  char written[512], name[512];
  snprintf(written, sizeof written, "%s/writing.%d", with->directory, with->rank);
  snprintf(name, sizeof name, "%s/%d.%d", with->directory, with->round, with->rank);
  FILE* file = fopen(written, "w");
  if (!file || fwrite(mine, 1, bytes, file) != bytes || fclose(file) || rename(written, name)) return 1;
  for (int r = 0; r < with->size; ++r) {
    snprintf(name, sizeof name, "%s/%d.%d", with->directory, with->round, r);
    for (int tries = 0; !(file = fopen(name, "r")); ++tries) {
      if (tries == 30000) return 1; /* half a minute */
      usleep(1000);
    }
    const size_t got = fread((char*)all + (size_t)r * bytes, 1, bytes, file);
    fclose(file);
    if (got != bytes) return 1;
  }
  ++with->round;
  return 0;
}

static void check(int status) {
  if (status == NF_OK) return;
  fprintf(stderr, "%s: %s\n", nf_status_name(status), nf_error_text());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: average RANK SIZE DIRECTORY\n");
    return 2;
  }
  struct meeting with = {argv[3], atoi(argv[1]), atoi(argv[2]), 0};
  nf_group* group;
  check(nf_join(with.rank, with.size, exchange, &with, &group));
  check(nf_set_timeout(group, 30));

  enum { elements = 100000 };
  float* const vector = malloc(elements * sizeof *vector);
  for (int i = 0; i < elements; ++i) vector[i] = (float)(with.rank + i % 10);
  nf_request* request;
  check(nf_allreduce(group, vector, vector, elements, NF_FLOAT32, NF_AVG, &request));
  /* ... something else ... */
  check(nf_wait(&request, 0, NULL));
  printf("rank %d of %d: the average begins with %g, %g\n", nf_rank(group), nf_size(group), vector[0], vector[1]);

  /* A message around the ring. */
  int token = with.rank, came;
  check(nf_send(group, &token, sizeof token, (with.rank + 1) % with.size, 0, &request));
  nf_message message;
  check(nf_receive(group, &came, sizeof came, NF_ANY, 0, &message, NULL));
  check(nf_wait(&request, 0, NULL));
  printf("rank %d has a message of %zu bytes from rank %d\n", with.rank, message.bytes, message.source);
  check(nf_close(group));
  free(vector);
  return 0;
}
