/* What a newer C library than 2.28 has under newer versions, bound to the versions of then: libraries that are loaded
   into foreign programs must load wherever those run, and the command's programs beside them. The linker's --wrap leads
   all references here, those of the static libstdc++ too (cmake/OldGlibc.cmake has the list), and sections that nobody
   uses are dropped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/processor/processor.h"

#define OLD(result, name, parameters, arguments) OLD_OF(NEARFIELD_FIRST_GLIBC, result, name, parameters, arguments)
#define OLD_OF(version, result, name, parameters, arguments)           \
  __asm__(".symver old_" #name "," #name "@GLIBC_" version);           \
  extern result old_##name parameters;                                 \
  __attribute__((visibility("hidden"))) result __wrap_##name parameters { return old_##name arguments; }

OLD(void*, dlopen, (const char* file, int mode), (file, mode))
OLD(void*, dlsym, (void* handle, const char* name), (handle, name))
OLD(int, dlclose, (void* handle), (handle))
OLD(char*, dlerror, (void), ())
OLD(int, dladdr, (const void* address, Dl_info* info), (address, info))
OLD_OF(NEARFIELD_DLINFO_GLIBC, int, dladdr1, (const void* address, Dl_info* info, void** extra, int flags),
       (address, info, extra, flags))
OLD_OF(NEARFIELD_DLINFO_GLIBC, int, dlinfo, (void* handle, int request, void* result), (handle, request, result))
OLD(int, pthread_create, (pthread_t * t, const pthread_attr_t* a, void* (*f)(void*), void* x), (t, a, f, x))
OLD(int, pthread_join, (pthread_t t, void** result), (t, result))
OLD(int, pthread_detach, (pthread_t t), (t))
OLD(int, pthread_once, (pthread_once_t * once, void (*f)(void)), (once, f))
OLD(int, __pthread_key_create, (pthread_key_t * key, void (*f)(void*)), (key, f))
OLD(int, pthread_key_create, (pthread_key_t * key, void (*f)(void*)), (key, f))
OLD(void*, pthread_getspecific, (pthread_key_t key), (key))
OLD(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
OLD(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
OLD(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old))
OLD(int, pthread_kill, (pthread_t t, int number), (t, number))
OLD(int, __fxstat, (int version, int fd, struct stat* s), (version, fd, s))
OLD(int, __xstat, (int version, const char* path, struct stat* s), (version, path, s))
OLD(int, __lxstat, (int version, const char* path, struct stat* s), (version, path, s))

#ifdef NEARFIELD_OLD_MATH /* otherwise not even libm is needed */
OLD(double, log, (double x), (x))
OLD(double, exp, (double x), (x))
OLD(double, pow, (double x, double y), (x, y))
#endif

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN int __wrap_fstat(int fd, struct stat* s) { return old___fxstat(NEARFIELD_STAT_VERSION, fd, s); }
HIDDEN int __wrap_fstat64(int fd, struct stat* s) { return old___fxstat(NEARFIELD_STAT_VERSION, fd, s); }
HIDDEN int __wrap_stat(const char* path, struct stat* s) { return old___xstat(NEARFIELD_STAT_VERSION, path, s); }
HIDDEN int __wrap_stat64(const char* path, struct stat* s) { return old___xstat(NEARFIELD_STAT_VERSION, path, s); }
HIDDEN int __wrap_lstat(const char* path, struct stat* s) { return old___lxstat(NEARFIELD_STAT_VERSION, path, s); }

/* What pthread_atfork calls; musl has it under another name only, and who uses it must load there all the same. */
extern int __real___register_atfork(void (*)(void), void (*)(void), void (*)(void), void*) __attribute__((weak));
HIDDEN int __wrap___register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void* object) {
  return __real___register_atfork ? __real___register_atfork(prepare, parent, child, object) : ENOSYS;
}

/* Always locked: whether there is one thread only is known since 2.32. */
HIDDEN char __wrap___libc_single_threaded = 0;

HIDDEN uint32_t __wrap_arc4random(void) {
  uint32_t number;
  while (syscall(SYS_getrandom, &number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* headers of 2.35 and later */
/* What the unwinder of a static libgcc asks for the object that holds an address. */
struct search {
  ElfW(Addr) address;
  struct dl_find_object* found;
};

static int look(struct dl_phdr_info* object, size_t size, void* argument) {
  struct search* const search = argument;
  (void)size;
  void* frames = NULL;
  ElfW(Addr) begin = 0, end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
    const ElfW(Addr) at = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = (void*)at;
    if (part->p_type == PT_LOAD && search->address - at < part->p_memsz) begin = at, end = at + part->p_memsz;
  }
  if (!end || !frames) return 0;
  *search->found = (struct dl_find_object){.dlfo_map_start = (void*)begin, .dlfo_map_end = (void*)end,
                                           .dlfo_eh_frame = frames};
  return 1;
}

HIDDEN int __wrap__dl_find_object(void* address, struct dl_find_object* found) {
  struct search search = {(ElfW(Addr))address, found};
  return dl_iterate_phdr(look, &search) ? 0 : -1;
}
#endif

#ifdef NEARFIELD_OLD_START /* programs */
/* Since 2.34 it runs constructors by itself; the one of then is handed a function that does. */
__asm__(".symver old___libc_start_main,__libc_start_main@GLIBC_" NEARFIELD_FIRST_GLIBC);
typedef int Main(int, char**, char**);
typedef void Construct(int, char**, char**);
extern int old___libc_start_main(Main*, int, char**, Construct*, void (*)(void), void (*)(void), void*);
extern void _init(void);
extern HIDDEN Construct *__init_array_start[], *__init_array_end[];

static void construct(int count, char** words, char** environment) {
  _init();
  for (Construct** one = __init_array_start; one < __init_array_end; ++one) (*one)(count, words, environment);
}

HIDDEN int __wrap___libc_start_main(Main* main, int count, char** words, Construct* given, void (*end)(void),
                                    void (*loaders_end)(void), void* stack) {
  return old___libc_start_main(main, count, words, given ? given : construct, end, loaders_end, stack);
}
#endif
