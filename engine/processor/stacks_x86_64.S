// stacks.hpp for x86-64: the registers that the System V ABI lets a call keep.
#ifdef __x86_64__
  .text
  .globl nearfield_switch_stack
  .hidden nearfield_switch_stack
  .type nearfield_switch_stack, @function
  .p2align 4
nearfield_switch_stack:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .size nearfield_switch_stack, . - nearfield_switch_stack

// The frame that a first switch finds: r12 the body, r13 its argument, and begin to return to.
  .globl nearfield_prepare_stack
  .hidden nearfield_prepare_stack
  .type nearfield_prepare_stack, @function
  .p2align 4
nearfield_prepare_stack:
  lea -72(%rdi), %rax
  movq $0, (%rax)
  movq $0, 8(%rax)
  mov %rdx, 16(%rax)
  mov %rsi, 24(%rax)
  movq $0, 32(%rax)
  movq $0, 40(%rax)
  lea begin(%rip), %rcx
  mov %rcx, 48(%rax)
  movq $0, 56(%rax)
  ret
  .size nearfield_prepare_stack, . - nearfield_prepare_stack

  .type begin, @function
begin:
  .cfi_startproc
  .cfi_undefined rip
  mov %r13, %rdi
  call *%r12
  ud2
  .cfi_endproc
  .size begin, . - begin

  .section .note.GNU-stack, "", @progbits
#endif
