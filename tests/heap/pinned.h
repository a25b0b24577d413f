/* Memory that the kernel has pinned, as devices have it: a registered buffer of an io_uring. */
#pragma once
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct pinned {
  int ring, file;
  unsigned char *submissions, *completions;
  struct io_uring_sqe* entry;
  struct io_uring_params about;
  void* at;
};

/* Pins the range. Returns 0, or -1 where the kernel has no io_uring for us. */
static inline int pin(struct pinned* p, void* at, size_t bytes) {
  memset(p, 0, sizeof *p);
  p->at = at;
  p->ring = (int)syscall(SYS_io_uring_setup, 2, &p->about);
  p->file = memfd_create("pinned", 0);
  if (p->ring < 0 || p->file < 0) return -1;
  const int access = PROT_READ | PROT_WRITE;
  p->submissions =
      (unsigned char*)mmap(NULL, p->about.sq_off.array + 64, access, MAP_SHARED, p->ring, IORING_OFF_SQ_RING);
  p->completions = (unsigned char*)mmap(NULL, p->about.cq_off.cqes + 8 * sizeof(struct io_uring_cqe), access,
                                        MAP_SHARED, p->ring, IORING_OFF_CQ_RING);
  p->entry = (struct io_uring_sqe*)mmap(NULL, 2 * sizeof *p->entry, access, MAP_SHARED, p->ring, IORING_OFF_SQES);
  if ((void*)p->submissions == MAP_FAILED || (void*)p->completions == MAP_FAILED || (void*)p->entry == MAP_FAILED)
    return -1;
  struct iovec buffer;
  buffer.iov_base = at;
  buffer.iov_len = bytes;
  return (int)syscall(SYS_io_uring_register, p->ring, IORING_REGISTER_BUFFERS, &buffer, 1) ? -1 : 0;
}

/* Returns the range's first byte as the kernel finds it; -1: it did not read it. */
static inline int seen_by_kernel(struct pinned* p) {
  unsigned* const tail = (unsigned*)(void*)(p->submissions + p->about.sq_off.tail);
  const unsigned at = *tail & *(unsigned*)(void*)(p->submissions + p->about.sq_off.ring_mask);
  struct io_uring_sqe* const entry = p->entry + at;
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_WRITE_FIXED;
  entry->fd = p->file;
  entry->addr = (unsigned long long)(size_t)p->at;
  entry->len = 1;
  ((unsigned*)(void*)(p->submissions + p->about.sq_off.array))[at] = at;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, p->ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) return -1;
  unsigned* const head = (unsigned*)(void*)(p->completions + p->about.cq_off.head);
  *head = __atomic_load_n((unsigned*)(void*)(p->completions + p->about.cq_off.tail), __ATOMIC_ACQUIRE);
  unsigned char byte = 0;
  return pread(p->file, &byte, 1, 0) == 1 ? byte : -1;
}

static inline void unpin(struct pinned* p) {
  munmap(p->submissions, p->about.sq_off.array + 64);
  munmap(p->completions, p->about.cq_off.cqes + 8 * sizeof(struct io_uring_cqe));
  munmap(p->entry, 2 * sizeof *p->entry);
  close(p->ring);
  close(p->file);
}
