/* processor.h for x86-64. */
#define NEARFIELD_FIRST_GLIBC "2.2.5"
#define NEARFIELD_DLINFO_GLIBC "2.3.3"
#define NEARFIELD_STAT_VERSION 1
#define NEARFIELD_RETURN_SLOT (static_cast<void* const*>(__builtin_dwarf_cfa()) - 1)
#define NEARFIELD_FLOAT16 _Float16
#define NEARFIELD_FLOAT128 __float128

#ifdef __ASSEMBLER__

/* symbol: a jump to the address in `slot`. No register changes. */
#define JUMP(symbol, slot)      \
  .p2align 4;                   \
  .globl symbol;                \
  .type symbol, @function;      \
  symbol : endbr64;             \
  jmp *slot(% rip);             \
  .size symbol, . - symbol;

/* symbol, the slot's first target: calls BINDER, then jumps to the slot's new target. */
#define BIND(symbol, slot)          \
  symbol : call bind_and_return;    \
  jmp *slot(% rip);

/* bind(address in the caller of MPI_X), with the six argument registers saved; arguments on the stack stay. */
#define BINDER(bind)   \
  .p2align 4;          \
  bind_and_return :    \
  push %rbp;           \
  mov %rsp, %rbp;      \
  push %rdi;           \
  push %rsi;           \
  push %rdx;           \
  push %rcx;           \
  push %r8;            \
  push %r9;            \
  mov 16(% rbp), %rdi; \
  and $-16, %rsp;      \
  call bind;           \
  lea -48(% rbp), %rsp; \
  pop %r9;             \
  pop %r8;             \
  pop %rcx;            \
  pop %rdx;            \
  pop %rsi;            \
  pop %rdi;            \
  pop %rbp;            \
  ret;

/* symbol(a, b): a jump to what before(a, b, address in the caller) returns, with a, b and the return address as they
   were. */
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

#else

#define NEARFIELD_RELOCATED_WORD R_X86_64_64
#define NEARFIELD_RELOCATED_DATA R_X86_64_GLOB_DAT
#define NEARFIELD_RELOCATED_CALL R_X86_64_JUMP_SLOT

#ifdef __cplusplus
#include <cpuid.h>

#include <cstdio>
#include <cstring>

namespace nearfield::processor {

inline void await_loads() { __builtin_ia32_lfence(); }
inline void await_all() {
  __builtin_ia32_mfence();
  __builtin_ia32_lfence();
}
inline void finish_streams() { __builtin_ia32_sfence(); }
/* Leaf 7 of cpuid, which takes microseconds under a hypervisor, so it is read once. */
struct Leaf7 {
  unsigned b = 0, c = 0;
};
inline const Leaf7& leaf7() {
  static const Leaf7 known = [] {
    Leaf7 leaf;
    unsigned a = 0, d = 0;
    __get_cpuid_count(7, 0, &a, &leaf.b, &leaf.c, &d);
    return leaf;
  }();
  return known;
}
#ifndef NEARFIELD_MODEL
inline void pause() { __builtin_ia32_pause(); }
/* The time stamp counter: constant and synchronous on every CPU that Linux takes its own clock from. */
inline std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
/* cldemote: CPUs of Intel have it from Sapphire Rapids on; on others the instruction does nothing. */
inline bool can_demote() { return leaf7().c & 1u << 25; }
#endif
inline void demote(void* at) { asm volatile("cldemote %0" : "+m"(*static_cast<char*>(at))); }
/* Counters run at 2 to 4 GHz. */
inline std::uint64_t ticks_in(std::uint64_t nanoseconds) { return nanoseconds * 3; }

/* rep movsb, where it is "enhanced": it writes whole lines without a read for ownership. Sanitizers do not see what it
   touches. */
inline bool can_claim() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return false;
#else
  return leaf7().b & 1u << 9;
#endif
}
inline void claim(void* to, const void* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}

/* The brand, then family, model and stepping. */
inline void describe(char* text, std::size_t bytes) {
  unsigned words[13] = {}, a = 0, b = 0, c = 0, d = 0;
  __cpuid(0x80000000, a, b, c, d);
  for (unsigned i = 0; i < 3 && a >= 0x80000004; ++i) {
    unsigned* const at = words + 4 * i;
    __cpuid(0x80000002 + i, at[0], at[1], at[2], at[3]);
  }
  __cpuid(1, a, b, c, d);
  char brand[sizeof words];
  std::memcpy(brand, words, sizeof brand);
  std::snprintf(text, bytes, "%s (%x)", brand, a);
}

/* The features that Highway compiles its targets with. The builtin also asks whether the system saves the registers. */
inline bool has(Set set) {
  __builtin_cpu_init();
  auto all = [](auto... each) { return (each && ...); };
  switch (set) {
    case Set::sse4:
      return all(__builtin_cpu_supports("sse4.1"), __builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("pclmul"));
    case Set::avx2:
      return all(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"), __builtin_cpu_supports("bmi"),
                 __builtin_cpu_supports("bmi2"), __builtin_cpu_supports("f16c"));
    case Set::avx512:
      return all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
                 __builtin_cpu_supports("avx512dq"), __builtin_cpu_supports("avx512cd"),
                 __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("bmi2"), __builtin_cpu_supports("fma"),
                 __builtin_cpu_supports("f16c"));
    default: return false;
  }
}

} // namespace nearfield::processor
#endif
#endif
