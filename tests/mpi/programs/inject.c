/* Preloaded before Nearfield: lets one call of its libraries for memory, descriptors, mappings, files or threads fail.
 *
 *   NEARFIELD_TEST_FAIL_RANK   the rank that it happens to
 *   NEARFIELD_TEST_FAIL_AT     the number of the call, from 1 on; or a place, in hexadecimal with 0x, which fails once;
 *                              0: none, calls are counted and their places told
 *   NEARFIELD_TEST_FAIL_ON     1: all calls from that one on
 *
 * A place is a call together with the calls of Nearfield's functions that have led to it: the same in every run.
 * Calls of the program and of other libraries are not counted: only those that return into a libnearfield*.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { most_ranges = 32 };
static struct {
  uintptr_t begin, end;
} range[most_ranges];
static atomic_int ranges, objects;
static atomic_long calls;
static long fail_at = -1; /* -1: nothing is counted */
static uint64_t fail_place;
static int fail_on, reported;

static int add_range(struct dl_phdr_info* info, size_t size, void* context) {
  (void)size;
  (void)context;
  const char* name = strrchr(info->dlpi_name, '/');
  if (!name || strncmp(name, "/libnearfield", 13) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
    int known = 0;
    for (int k = 0; k < ranges; ++k) known |= range[k].begin == begin;
    if (known || ranges == most_ranges) continue;
    range[ranges].begin = begin;
    range[ranges].end = begin + part->p_memsz;
    ++ranges;
  }
  return 0;
}

/* 1 + the range that an address lies in, 0: not ours. */
static int ours(const void* address) {
  for (int attempt = 0;; ++attempt) {
    for (int i = 0; i < ranges; ++i)
      if ((uintptr_t)address >= range[i].begin && (uintptr_t)address < range[i].end) return 1 + i;
    if (attempt || _r_debug.r_state != RT_CONSISTENT) return 0;
    int loaded = 0;
    for (const struct link_map* each = _r_debug.r_map; each; each = each->l_next) ++loaded;
    if (loaded == objects) return 0;
    objects = loaded;
    dl_iterate_phdr(add_range, NULL);
  }
}

static void tell(const char* what, long number) {
  char line[160];
  const int length = snprintf(line, sizeof line, "inject: call %ld, %s, fails\n", number, what);
  if (write(2, line, (size_t)length) < 0) return;
  if (!getenv("NEARFIELD_TEST_FAIL_STACK")) return;
  void* stack[24];
  backtrace_symbols_fd(stack, backtrace(stack, 24), 2);
}

static uint64_t find_place(void) {
  void* stack[32];
  uint64_t place = 0xcbf29ce484222325u;
  const int depth = backtrace(stack, 32);
  for (int i = 0; i < depth; ++i) {
    const int in = ours(stack[i]);
    if (in) place = (place ^ ((uint64_t)in << 48 | ((uintptr_t)stack[i] - range[in - 1].begin))) * 0x100000001b3u;
  }
  return place;
}

/* Whether a place is new in this run. */
static int first_time(uint64_t place) {
  enum { most = 1 << 14 };
  static _Atomic uint64_t seen[most];
  for (uint64_t i = place;; ++i) {
    uint64_t there = 0;
    if (atomic_compare_exchange_strong(&seen[i % most], &there, place)) return 1;
    if (there == place) return 0;
  }
}

static int fails(const char* what, const void* caller) {
  static __thread int inside;
  if (fail_at < 0 || inside || !ours(caller)) return 0;
  const long number = ++calls;
  if (fail_place || !fail_at) {
    inside = 1;
    const uint64_t place = find_place();
    inside = 0;
    if (fail_place ? place != fail_place || reported : !first_time(place)) return 0;
    if (!fail_at) {
      char line[80];
      const int length = snprintf(line, sizeof line, "inject: place 0x%016lx %s\n", (unsigned long)place, what);
      return write(2, line, (size_t)length) < 0;
    }
    ++reported;
    tell(what, number);
    return 1;
  }
  if (!fail_at || !(fail_on ? number >= fail_at : number == fail_at)) return 0;
  if (!reported++) tell(what, number);
  return 1;
}

__attribute__((constructor)) static void begin(void) {
  const char* names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
  const char *wanted = getenv("NEARFIELD_TEST_FAIL_RANK"), *at = getenv("NEARFIELD_TEST_FAIL_AT");
  if (!wanted || !at) return;
  for (int i = 0; i < 3; ++i) {
    const char* rank = getenv(names[i]);
    if (!rank) continue;
    if (strcmp(rank, wanted) != 0) return;
    void* stack[2];
    backtrace(stack, 2); /* loads what it needs now */
    fail_on = getenv("NEARFIELD_TEST_FAIL_ON") != NULL;
    if (strncmp(at, "0x", 2) == 0) fail_place = strtoul(at, NULL, 16);
    fail_at = fail_place ? 1 : atol(at);
    return;
  }
}

__attribute__((destructor)) static void end(void) {
  if (fail_at == 0) fprintf(stderr, "inject: %ld calls\n", (long)calls);
}

/* The next definition. dlsym may allocate while malloc is looked up: from a small store of its own. */
static char early[65536];
static atomic_size_t early_used;
static __thread int looking_up;
static void* look_up(const char* name) {
  ++looking_up;
  void* found = dlsym(RTLD_NEXT, name);
  --looking_up;
  return found;
}
static int is_early(const void* p) { return (const char*)p >= early && (const char*)p < early + sizeof early; }
static void* allocate_early(size_t bytes) {
  const size_t at = atomic_fetch_add(&early_used, (bytes + 31) / 16 * 16);
  return at + bytes > sizeof early ? NULL : early + at;
}

#define NEXT(name)                             \
  static __typeof__(name)* next;               \
  if (!next) next = (__typeof__(name)*)look_up(#name)
#define FAILS(name, code, result)                        \
  if (fails(#name, __builtin_return_address(0))) {       \
    errno = code;                                        \
    return result;                                       \
  }

void* malloc(size_t bytes) {
  if (looking_up) return allocate_early(bytes);
  NEXT(malloc);
  FAILS(malloc, ENOMEM, NULL)
  return next(bytes);
}
void* calloc(size_t count, size_t bytes) {
  if (looking_up) return allocate_early(count * bytes);
  NEXT(calloc);
  FAILS(calloc, ENOMEM, NULL)
  return next(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  NEXT(realloc);
  FAILS(realloc, ENOMEM, NULL)
  if (!is_early(old)) return next(old, bytes);
  void* fresh = malloc(bytes);
  if (fresh) memcpy(fresh, old, bytes); /* reads past the old end, inside `early` */
  return fresh;
}
void free(void* p) {
  if (!p || is_early(p)) return;
  NEXT(free);
  next(p);
}
void* aligned_alloc(size_t align, size_t bytes) {
  NEXT(aligned_alloc);
  FAILS(aligned_alloc, ENOMEM, NULL)
  return next(align, bytes);
}
int posix_memalign(void** p, size_t align, size_t bytes) {
  NEXT(posix_memalign);
  if (fails("posix_memalign", __builtin_return_address(0))) return ENOMEM;
  return next(p, align, bytes);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  NEXT(mmap);
  FAILS(mmap, ENOMEM, MAP_FAILED)
  return next(address, bytes, protection, flags, fd, offset);
}
int mprotect(void* address, size_t bytes, int protection) {
  NEXT(mprotect);
  FAILS(mprotect, ENOMEM, -1)
  return next(address, bytes, protection);
}
int madvise(void* address, size_t bytes, int advice) {
  NEXT(madvise);
  FAILS(madvise, ENOMEM, -1)
  return next(address, bytes, advice);
}
int memfd_create(const char* name, unsigned flags) {
  NEXT(memfd_create);
  FAILS(memfd_create, EMFILE, -1)
  return next(name, flags);
}
int ftruncate(int fd, off_t length) {
  NEXT(ftruncate);
  FAILS(ftruncate, ENOMEM, -1)
  return next(fd, length);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  NEXT(fallocate);
  FAILS(fallocate, ENOSPC, -1)
  return next(fd, mode, offset, length);
}
int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  NEXT(fcntl);
  FAILS(fcntl, EMFILE, -1)
  return next(fd, command, argument);
}
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  NEXT(open);
  FAILS(open, EMFILE, -1)
  return next(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  FAILS(fopen, EMFILE, NULL)
  return next(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  NEXT(fopen64);
  FAILS(fopen64, EMFILE, NULL)
  return next(path, mode);
}
int pipe(int fd[2]) {
  NEXT(pipe);
  FAILS(pipe, EMFILE, -1)
  return next(fd);
}
int pipe2(int fd[2], int flags) {
  NEXT(pipe2);
  FAILS(pipe2, EMFILE, -1)
  return next(fd, flags);
}
int socket(int domain, int type, int protocol) {
  NEXT(socket);
  FAILS(socket, EMFILE, -1)
  return next(domain, type, protocol);
}
int bind(int fd, const struct sockaddr* address, socklen_t length) {
  NEXT(bind);
  FAILS(bind, ENOMEM, -1)
  return next(fd, address, length);
}
ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  NEXT(sendmsg);
  FAILS(sendmsg, ENOBUFS, -1)
  return next(fd, message, flags);
}
ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  NEXT(recvmsg);
  FAILS(recvmsg, ENOMEM, -1)
  return next(fd, message, flags);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  NEXT(pthread_create);
  if (fails("pthread_create", __builtin_return_address(0))) return EAGAIN;
  return next(thread, attributes, body, argument);
}
