/* Stands in for libmpi.so of Open MPI 6: MPI's functions, which lead to another library, LIBRARY, that has all else.
   FUNCTIONS is a file with a line F(name) for each. */
#include <dlfcn.h>

#define F(name)                                          \
  __attribute__((visibility("hidden"))) void* to_##name; \
  __asm__(".globl " #name "\n.type " #name ", @function\n" #name ": jmp *to_" #name "(%rip)\n");
#include FUNCTIONS
#undef F

__attribute__((constructor)) static void find(void) {
  /* The C library's own dlsym, since a real library has relocations instead: Nearfield shall hear of no look-up. */
  void* (*look_up)(void*, const char*) = dlsym(dlopen("libc.so.6", RTLD_LAZY), "dlsym");
  void* const library = dlopen(LIBRARY, RTLD_LAZY);
#define F(name) to_##name = look_up(library, #name);
#include FUNCTIONS
}
