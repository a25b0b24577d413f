/* MPI_X and PMPI_X as jumps through a slot each. All arguments of MPI functions are integers or pointers, so a jump
   serves every ABI. A slot first leads to bind_X, which binds all slots and tries again. x86-64 only. */
#define ENTRY(symbol, name)                                  \
  .text;                                                     \
  .p2align 4;                                                \
  .globl symbol;                                             \
  .type symbol, @function;                                   \
  .globl P##symbol;                                          \
  .type P##symbol, @function;                                \
  symbol : P##symbol : endbr64;                              \
  jmp *nearfield_slot_##name(% rip);                         \
  .size symbol, . - symbol;                                  \
  .size P##symbol, . - P##symbol;                            \
  bind_##name : call bind_and_return;                        \
  jmp *nearfield_slot_##name(% rip);                         \
  .data;                                                     \
  .p2align 3;                                                \
  .globl nearfield_slot_##name;                              \
  .hidden nearfield_slot_##name;                             \
  nearfield_slot_##name : .quad bind_##name;

#define F(name) ENTRY(MPI_##name, name)
#include "functions.def"
#include "blocking.def"
#undef F
#define F(name) ENTRY(MPI##name, name) /* X_Y: MPIX_Y */
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
