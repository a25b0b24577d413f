/* processor.h for aarch64. The code has no pointer authentication and no landing pads: objects without the ELF note run
   without them. */
#define NEARFIELD_FIRST_GLIBC "2.17"
#define NEARFIELD_DLINFO_GLIBC "2.17"
#define NEARFIELD_STAT_VERSION 0
#define NEARFIELD_RETURN_SLOT (static_cast<void* const*>(__builtin_frame_address(0)) + 1)
#define NEARFIELD_FLOAT16 __fp16
#define NEARFIELD_FLOAT128 long double

#ifdef __ASSEMBLER__

/* x16 and x17 may be changed between a call and its target. */
#define JUMP(symbol, slot)       \
  .p2align 4;                    \
  .globl symbol;                 \
  .type symbol, %function;       \
  symbol : adrp x16, slot;       \
  ldr x16, [x16, :lo12:slot];   \
  br x16;                        \
  .size symbol, . - symbol;

#define BIND(symbol, slot)           \
  symbol : adrp x17, slot;           \
  add x17, x17, :lo12:slot;         \
  b bind_and_go;

/* The arguments are in x0 to x7, x8 and q0 to q7, the return address in x30, the slot in x17. */
#define BINDER(bind)               \
  .p2align 4;                      \
  bind_and_go :                    \
  stp x29, x30, [sp, -224]!;      \
  mov x29, sp;                     \
  stp x0, x1, [sp, 16];           \
  stp x2, x3, [sp, 32];           \
  stp x4, x5, [sp, 48];           \
  stp x6, x7, [sp, 64];           \
  stp x8, x17, [sp, 80];          \
  stp q0, q1, [sp, 96];           \
  stp q2, q3, [sp, 128];          \
  stp q4, q5, [sp, 160];          \
  stp q6, q7, [sp, 192];          \
  mov x0, x30;                     \
  bl bind;                         \
  ldp x0, x1, [sp, 16];           \
  ldp x2, x3, [sp, 32];           \
  ldp x4, x5, [sp, 48];           \
  ldp x6, x7, [sp, 64];           \
  ldp x8, x17, [sp, 80];          \
  ldp q0, q1, [sp, 96];           \
  ldp q2, q3, [sp, 128];          \
  ldp q4, q5, [sp, 160];          \
  ldp q6, q7, [sp, 192];          \
  ldp x29, x30, [sp], 224;        \
  ldr x16, [x17];                  \
  br x16;

#define LOADER(symbol, before)     \
  .p2align 4;                      \
  .globl symbol;                   \
  .type symbol, %function;         \
  symbol : stp x29, x30, [sp, -32]!; \
  mov x29, sp;                     \
  stp x0, x1, [sp, 16];           \
  mov x2, x30;                     \
  bl before;                       \
  mov x16, x0;                     \
  ldp x0, x1, [sp, 16];           \
  ldp x29, x30, [sp], 32;         \
  br x16;                          \
  .size symbol, . - symbol;

#else

#define NEARFIELD_RELOCATED_WORD R_AARCH64_ABS64
#define NEARFIELD_RELOCATED_DATA R_AARCH64_GLOB_DAT
#define NEARFIELD_RELOCATED_CALL R_AARCH64_JUMP_SLOT

#ifdef __cplusplus
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nearfield::processor {

inline void await_loads() { asm volatile("dmb ishld" ::: "memory"); }
inline void await_all() { asm volatile("dsb ish\n\tisb" ::: "memory"); }
/* Streaming stores are ordinary stores here (Highway's Stream), and ordered like them. */
inline void finish_streams() {}
#ifndef NEARFIELD_MODEL
/* `yield` does nothing on most cores; `isb` takes about as long as x86's pause, as Rust's spin_loop and MySQL use it.
   Not measured by us. */
inline void pause() { asm volatile("isb" ::: "memory"); }
/* The generic timer: one rate and one time on all cores, 25 MHz on old ones, 1 GHz from version 8.6 of the
   architecture on. */
inline std::uint64_t ticks() {
  std::uint64_t now;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
}
inline bool can_demote() { return false; }
#endif
inline void demote(void*) {}
inline std::uint64_t ticks_in(std::uint64_t nanoseconds) {
  std::uint64_t hertz;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
  return std::uint64_t(double(nanoseconds) * double(hertz) / 1e9);
}

/* The C library knows whether to clear lines by dc zva or to copy by vector stores. */
inline bool can_claim() { return false; }
inline void claim(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

/* Implementer, part and revision from a register (MIDR_EL1), whose reads the kernel emulates since 4.11. */
inline void describe(char* text, std::size_t bytes) {
  unsigned long long id = 0;
  if (getauxval(AT_HWCAP) & HWCAP_CPUID) {
    asm("mrs %0, midr_el1" : "=r"(id));
  } else if (const int fd = open("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", O_RDONLY | O_CLOEXEC);
             fd >= 0) {
    char number[24] = {};
    if (read(fd, number, sizeof number - 1) > 0) id = std::strtoull(number, nullptr, 16);
    close(fd);
  }
  std::snprintf(text, bytes, "aarch64 (%llx)", id);
}

inline bool has(Set set) { return set == Set::neon && getauxval(AT_HWCAP) & HWCAP_AES; /* as Highway's target is */ }

} // namespace nearfield::processor
#endif
#endif
