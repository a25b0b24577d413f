/* MPI_X and PMPI_X as jumps through a slot each. All arguments of MPI functions are integers or pointers, so a jump
   serves every ABI. A slot first leads to bind_X, which binds all slots and tries again. nearfield_entry_X is PMPI_X
   by a name that nobody can come before. x86-64 only. */
#define ENTRY(symbol, slot)                   \
  .p2align 4;                                 \
  .globl symbol;                              \
  .type symbol, @function;                    \
  symbol : endbr64;                           \
  jmp *slot(% rip);                           \
  .size symbol, . - symbol;

#define SLOT(slot, first) \
  .globl slot;            \
  .hidden slot;           \
  slot : .quad first;

#define FUNCTION(symbol, name)                                 \
  .text;                                                       \
  ENTRY(symbol, nearfield_slot_##name)                         \
  ENTRY(P##symbol, nearfield_pslot_##name)                     \
  .globl nearfield_entry_##name;                               \
  .hidden nearfield_entry_##name;                              \
  .set nearfield_entry_##name, P##symbol;                      \
  bind_##name : call bind_and_return;                          \
  jmp *nearfield_slot_##name(% rip);                           \
  pbind_##name : call bind_and_return;                         \
  jmp *nearfield_pslot_##name(% rip);                          \
  .data;                                                       \
  .p2align 3;                                                  \
  SLOT(nearfield_slot_##name, bind_##name)                     \
  SLOT(nearfield_pslot_##name, pbind_##name)

#define F(name) FUNCTION(MPI_##name, name)
#include "functions.def"
#include "blocking.def"
#undef F
#define F(name) FUNCTION(MPI##name, name) /* X_Y: MPIX_Y */
#include "extensions.def"

  .text
  .p2align 4
/* Calls nearfield_bind(address in the caller of MPI_X) with the six argument registers saved; arguments on the stack
   stay where they are. */
bind_and_return:
  push %rbp
  mov %rsp, %rbp
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  mov 16(%rbp), %rdi
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

/* dlsym and dlopen: what is found by them must not lead past Nearfield, so the host's symbol table has to be redirected
   before the loader looks into it. The loader's own are jumped to, since they look at their return address. */
#define LOADER(symbol, before) \
  .p2align 4;                  \
  .globl symbol;               \
  .type symbol, @function;     \
  symbol : endbr64;            \
  push %rdi;                   \
  push %rsi;                   \
  sub $8, %rsp;                \
  mov 24(% rsp), %rdx;         \
  call before;                 \
  add $8, %rsp;                \
  pop %rsi;                    \
  pop %rdi;                    \
  jmp *%rax;                   \
  .size symbol, . - symbol;

LOADER(dlsym, nearfield_before_dlsym)
LOADER(dlopen, nearfield_before_dlopen)

  .section .note.GNU-stack, "", @progbits
