/* Runs a command with some system calls denied, as containers do. deny NAME,NAME... COMMAND */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char* name;
  unsigned number;
} calls[] = {
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"memfd_create", SYS_memfd_create},
    {"membarrier", SYS_membarrier},
    {"mbind", SYS_mbind},
    {"get_mempolicy", SYS_get_mempolicy},
    {"set_mempolicy", SYS_set_mempolicy},
    {"move_pages", SYS_move_pages},
    {"kcmp", SYS_kcmp},
    {"ptrace", SYS_ptrace},
    {"userfaultfd", SYS_userfaultfd},
};

int main(int argc, char** argv) {
  struct sock_filter filter[64] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  unsigned short length = 1;
  for (char* name = argc > 2 ? strtok(argv[1], ",") : NULL; name; name = strtok(NULL, ",")) {
    size_t at = 0;
    while (at < sizeof calls / sizeof *calls && strcmp(calls[at].name, name) != 0) ++at;
    if (at == sizeof calls / sizeof *calls) return 97;
    filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[at].number, 0, 1);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {length, filter};
  if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return 99;
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 98;
}
