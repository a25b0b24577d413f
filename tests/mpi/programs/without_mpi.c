/* Allocates, forks, looks a function up; knows nothing of MPI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  char* block = malloc(1 << 20);
  block[0] = 7;
  block = realloc(block, 1 << 22);
  const int kept = block[0] == 7;
  const pid_t child = fork();
  if (!child) _exit(0);
  waitpid(child, NULL, 0);
  free(block);
  puts(kept && dlsym(RTLD_DEFAULT, "puts") ? "good" : "bad");
  return 0;
}
