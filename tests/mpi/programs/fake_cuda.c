/* A stand-in for libcuda.so.1: "device memory" that the CPU cannot access, with a second mapping behind it that the
   functions of the driver use. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most = 64 << 20 };
static char *device, *behind, *managed;

static void make(void) {
  if (device) return;
  int fd = memfd_create("fake-device", 0);
  if (ftruncate(fd, most)) _exit(9);
  behind = mmap(0, most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  device = mmap(0, most, PROT_NONE, MAP_SHARED, fd, 0);
  managed = mmap(0, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  close(fd);
}
static int on_device(uintptr_t at) { return device && at >= (uintptr_t)device && at < (uintptr_t)device + most; }
static int is_managed(uintptr_t at) { return managed && at >= (uintptr_t)managed && at < (uintptr_t)managed + most; }
static void* reach(uintptr_t at) { return on_device(at) ? behind + (at - (uintptr_t)device) : (void*)at; }

static int pushed;
int cuInit(unsigned flags) { return flags != 0; }
int cuDevicePrimaryCtxRetain(void** context, int which) {
  *context = &device;
  return which != 0;
}
int cuMemAlloc_v2(uintptr_t* at, size_t bytes) {
  static size_t used;
  if (!pushed) return 201; /* no context */
  make();
  *at = (uintptr_t)device + used;
  used += (bytes + 255) / 256 * 256;
  return used > most;
}
int cuMemAllocManaged(uintptr_t* at, size_t bytes, unsigned flags) {
  (void)flags;
  make();
  *at = (uintptr_t)managed;
  return bytes > most;
}
int cuPointerGetAttribute(void* value, int attribute, uintptr_t at) {
  if (!on_device(at) && !is_managed(at)) return 1;
  if (attribute == 1) *(void**)value = &device;
  else if (attribute == 2) *(unsigned*)value = 2;
  else if (attribute == 8) *(unsigned*)value = is_managed(at);
  else return 1;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) { return context != &device || pushed++ > 8; }
int cuCtxPopCurrent_v2(void** context) {
  *context = &device;
  return pushed-- < 0;
}
int cuStreamSynchronize(void* stream) { return stream != 0; }
int fails; /* set by the program: no copy succeeds */
int cuMemcpy(uintptr_t to, uintptr_t from, size_t bytes) {
  if (!pushed || fails) return 201;
  memcpy(reach(to), reach(from), bytes);
  return 0;
}
