/* A stand-in for libxpmem.so.0 that needs no kernel module: memory that is a shared mapping of a file which its owner
   has open (a memfd) is mapped once more. It is as strict as the module about its arguments. XPMEM_FAILS=attach:3 makes
   the third call of xpmem_attach in every process fail. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct xpmem_addr {
  int64_t apid;
  off_t offset;
};

enum { page = 4096, most = 4096 };
static struct {
  char* at;
  size_t bytes;
  int64_t apid;
} pieces[most];
static int64_t grants[most]; /* of segid; 0: free. An apid is 16 + its index */
static int pieces_used, grants_used, segments;

/* For tests: what is held now. */
int xpmem_stand_in_pieces(void) { return pieces_used; }
int xpmem_stand_in_grants(void) { return grants_used; }
int xpmem_stand_in_segments(void) { return segments; }

static int fails(const char* function, int* calls) {
  const char* which = getenv("XPMEM_FAILS");
  const size_t length = strlen(function);
  ++*calls;
  if (!which || strncmp(which, function, length) || which[length] != ':' || atoi(which + length + 1) != *calls)
    return 0;
  errno = ENOMEM;
  return 1;
}

static int wrong(int number) {
  errno = number;
  return -1;
}

int64_t xpmem_make(void* at, size_t bytes, int type, void* value) {
  static int calls;
  if (fails("make", &calls)) return -1;
  if (at || bytes != (size_t)-1 || type != 1 || value != (void*)0600) return wrong(EINVAL);
  ++segments;
  return (int64_t)getpid() << 16 | calls;
}

int xpmem_remove(int64_t segid) {
  static int calls;
  if (fails("remove", &calls)) return -1;
  if (segid >> 16 != getpid()) return wrong(EACCES);
  --segments;
  return 0;
}

int64_t xpmem_get(int64_t segid, int flags, int type, void* value) {
  static int calls;
  (void)value;
  if (fails("get", &calls)) return -1;
  if (flags != 2 || type != 1) return wrong(EINVAL);
  if (segid <= 0 || kill((pid_t)(segid >> 16), 0)) return wrong(ENOENT);
  for (int i = 0; i < most; ++i) {
    if (grants[i]) continue;
    grants[i] = segid;
    ++grants_used;
    return 16 + i;
  }
  return wrong(ENOMEM);
}

static int detach(int i) {
  munmap(pieces[i].at, pieces[i].bytes);
  pieces[i].at = 0;
  return --pieces_used;
}

int xpmem_release(int64_t apid) {
  static int calls;
  if (fails("release", &calls)) return -1;
  if (apid < 16 || apid >= 16 + most || !grants[apid - 16]) return wrong(ENOENT);
  for (int i = 0; i < most; ++i)
    if (pieces[i].at && pieces[i].apid == apid) detach(i);
  grants[apid - 16] = 0;
  --grants_used;
  return 0;
}

/* A descriptor of that file, among those that the process has open. */
static int open_file(pid_t pid, dev_t device, ino_t inode) {
  char path[300];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR* all = opendir(path);
  int found = -1;
  for (struct dirent* each; all && found < 0 && (each = readdir(all));) {
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, each->d_name);
    if (!stat(path, &about) && about.st_dev == device && about.st_ino == inode) found = open(path, O_RDWR | O_CLOEXEC);
  }
  if (all) closedir(all);
  return found;
}

static int map(pid_t pid, char* to, uintptr_t begin, uintptr_t end) {
  char line[4096], path[64], access[8];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
  FILE* maps = fopen(path, "r");
  while (maps && begin < end && fgets(line, sizeof line, maps)) {
    unsigned long first, last, offset, inode;
    unsigned major_number, minor_number;
    if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu", &first, &last, access, &offset, &major_number, &minor_number,
               &inode) < 7)
      continue;
    if (last <= begin) continue;
    if (first > begin || access[3] != 's') break;
    const uintptr_t stop = last < end ? last : end;
    const int fd = open_file(pid, makedev(major_number, minor_number), inode);
    void* got = fd < 0 ? MAP_FAILED
                       : mmap(to, stop - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                              (off_t)(offset + (begin - first)));
    if (fd >= 0) close(fd);
    if (got == MAP_FAILED) break;
    to += stop - begin;
    begin = stop;
  }
  if (maps) fclose(maps);
  return begin >= end;
}

void* xpmem_attach(struct xpmem_addr from, size_t bytes, void* at) {
  static int calls;
  if (fails("attach", &calls)) return (void*)-1;
  if (from.apid < 16 || from.apid >= 16 + most || !grants[from.apid - 16] || from.offset % page || at || !bytes)
    return (void*)(intptr_t)wrong(EINVAL);
  bytes = (bytes + page - 1) / page * page;
  for (int i = 0; i < most; ++i) {
    if (pieces[i].at) continue;
    char* to = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (to == MAP_FAILED) return (void*)-1;
    if (!map((pid_t)(grants[from.apid - 16] >> 16), to, (uintptr_t)from.offset, (uintptr_t)from.offset + bytes)) {
      munmap(to, bytes);
      return (void*)(intptr_t)wrong(EFAULT);
    }
    pieces[i].at = to;
    pieces[i].bytes = bytes;
    pieces[i].apid = from.apid;
    ++pieces_used;
    return to;
  }
  return (void*)(intptr_t)wrong(ENOMEM);
}

int xpmem_detach(void* at) {
  static int calls;
  if (fails("detach", &calls)) return -1;
  for (int i = 0; i < most; ++i)
    if (pieces[i].at && (char*)at >= pieces[i].at && (char*)at < pieces[i].at + pieces[i].bytes) return detach(i), 0;
  return wrong(EINVAL);
}

int xpmem_version(void) { return 0x27000; }
