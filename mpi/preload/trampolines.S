#include "engine/processor/processor.h"

/* MPI_X and PMPI_X as jumps through a slot each. All arguments of MPI functions are integers or pointers, so a jump
   serves every ABI. A slot first leads to bind_X, which binds all slots and tries again. nearfield_entry_X is PMPI_X
   by a name that nobody can come before.

   What they do is here, how is the processor's:

     JUMP     leaves everything as it is but what calls may change on their way
     BIND     where a slot leads first: binds, with all registers that may hold arguments kept, then goes on as JUMP
     BINDER   what all BINDs share
     LOADER   dlsym and dlopen: what is found by them must not lead past Nearfield, so the host's symbol table has to be
              redirected before the loader looks into it. The loader's own are jumped to, since they look at their
              return address */
#define WORD(slot, first) \
  .globl slot;            \
  .hidden slot;           \
  slot : .quad first;

#define ENTRIES(symbol, name)                                  \
  .text;                                                       \
  JUMP(symbol, nearfield_slot_##name)                          \
  JUMP(P##symbol, nearfield_pslot_##name)                      \
  .globl nearfield_entry_##name;                               \
  .hidden nearfield_entry_##name;                              \
  .set nearfield_entry_##name, P##symbol;                      \
  BIND(bind_##name, nearfield_slot_##name)                     \
  BIND(pbind_##name, nearfield_pslot_##name)                   \
  .data;                                                       \
  .p2align 3;                                                  \
  WORD(nearfield_slot_##name, bind_##name)                     \
  WORD(nearfield_pslot_##name, pbind_##name)

#define EACH(symbol, name) ENTRIES(symbol, name)
#include "mpi/functions.def"

  .text
BINDER(nearfield_bind)
LOADER(dlsym, nearfield_before_dlsym)
LOADER(dlopen, nearfield_before_dlopen)

  .section .note.GNU-stack, "", @progbits
