#include "engine/processor/processor.h"

/* MPI_X and PMPI_X as jumps through a slot each. All arguments of MPI functions are integers or pointers, so a jump
   serves every ABI. A slot first leads to bind_X, which binds all slots and tries again. nearfield_entry_X is PMPI_X
   under a hidden name, which no other object can interpose.

   engine/processor/processor.h has these macros for each processor:

     JUMP     jumps through a slot; changes only registers that a call may change on its way
     BIND     is the first target of a slot: saves all registers that may hold arguments, binds, then does as JUMP
     BINDER   is the code that all BINDs share
     LOADER   defines dlsym and dlopen. An address that they find must not bypass Nearfield, so the host's symbol table is
              redirected before the loader looks into it. They jump to the loader's own functions, since these look at
              their return address */
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
