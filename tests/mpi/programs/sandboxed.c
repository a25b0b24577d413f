/* Runs a program in a sandbox of its own (Landlock), whose abstract sockets and files of /proc others cannot reach, nor it
   theirs. Exit status 77: the kernel has none. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char** argv) {
  enum { create_ruleset = 444, restrict_self = 446, abstract_sockets = 1 };
  const struct {
    uint64_t files, networks, scopes;
  } rules = {0, 0, abstract_sockets};
  const long made = syscall(create_ruleset, &rules, sizeof rules, 0);
  if (argc < 2 || made < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(restrict_self, made, 0)) return 77;
  execvp(argv[1], argv + 1);
  return 127;
}
