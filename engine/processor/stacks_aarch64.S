// stacks.hpp for aarch64: the registers that the procedure call standard lets a call keep.
#ifdef __aarch64__
  .text
  .globl nearfield_switch_stack
  .hidden nearfield_switch_stack
  .type nearfield_switch_stack, %function
  .p2align 4
nearfield_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size nearfield_switch_stack, . - nearfield_switch_stack

// The frame that a first switch finds: x19 the body, x20 its argument, and begin to return to.
  .globl nearfield_prepare_stack
  .hidden nearfield_prepare_stack
  .type nearfield_prepare_stack, %function
  .p2align 4
nearfield_prepare_stack:
  sub x0, x0, #160
  stp x1, x2, [x0]
  adr x3, begin
  stp xzr, x3, [x0, #80]
  ret
  .size nearfield_prepare_stack, . - nearfield_prepare_stack

  .type begin, %function
begin:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x20
  blr x19
  brk #0
  .cfi_endproc
  .size begin, . - begin

  .section .note.GNU-stack, "", %progbits
#endif
