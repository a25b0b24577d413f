/* MPI_X and PMPI_X (MPIX_X and PMPIX_X) as jumps through a slot each. All arguments of MPI functions are integers or
   pointers, so a jump serves every ABI. A slot first leads to bind_X, which binds all slots and tries again. x86-64 only. */
#define TRAMPOLINE(prefix, name)                             \
  .text;                                                     \
  .p2align 4;                                                \
  .globl prefix##name;                                       \
  .type prefix##name, @function;                             \
  .globl P##prefix##name;                                    \
  .type P##prefix##name, @function;                          \
  prefix##name : P##prefix##name : endbr64;                  \
  jmp *nearfield_slot_##name(% rip);                         \
  .size prefix##name, . - prefix##name;                      \
  .size P##prefix##name, . - P##prefix##name;                \
  bind_##name : call bind_and_return;                        \
  jmp *nearfield_slot_##name(% rip);                         \
  .data;                                                     \
  .p2align 3;                                                \
  .globl nearfield_slot_##name;                              \
  .hidden nearfield_slot_##name;                             \
  nearfield_slot_##name : .quad bind_##name;

#define F(name) TRAMPOLINE(MPI_, name)
#include "functions.def"
#include "blocking.def"
#undef F
#define F(name) TRAMPOLINE(MPIX_, name)
#include "extensions.def"

  .text
  .p2align 4
/* Calls nearfield_bind with the six argument registers saved; arguments on the stack stay where they are. */
bind_and_return:
  push %rbp
  mov %rsp, %rbp
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  and $-16, %rsp
  call nearfield_bind
  lea -48(%rbp), %rsp
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  pop %rbp
  ret

  .section .note.GNU-stack, "", @progbits
