/* Collectives and messages between processes of one machine, by shared memory, without any MPI.
 *
 * To join a group, a process gives a callback that exchanges some bytes with the other members by any means: a key-value
 * store, sockets, an MPI. From then on the group needs nothing but this library. docs/reference/c-api.md has examples.
 *
 * Forms.    Every collective and message takes a request as its last argument. If it is NULL, the call returns when it
 *           is done. Otherwise the call returns at once, and nf_wait() or nf_test() completes it; until then the program
 *           must not touch its buffers. Outstanding calls progress while any thread is in a call of this library.
 * Order.    All members make the collective calls of a group in the same order, with equal lengths, types, operators and
 *           roots, and in the same form: a call that has a request meets calls that have one.
 * Errors.   Functions return NF_OK or another nf_status; nf_error_text() says what went wrong. After NF_INVALID and
 *           NF_UNSUPPORTED nothing has been done; after NF_TRUNCATED the group can still be used. After all others the
 *           group is broken: every call of every member ends by an error, and only nf_close() is left to call.
 * Threads.  Several threads may use one group or several at the same time; collective calls of one group wait for each
 *           other, in an order that has to be the same in all members. Join and close groups in one thread at a time, and
 *           complete a request in one thread.
 * Forks.    A child that was forked must not use the groups of its parent; its calls return NF_INVALID.
 */
#ifndef NEARFIELD_H
#define NEARFIELD_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nf_group nf_group;
typedef struct nf_request nf_request;

typedef enum nf_status {
  NF_OK = 0,
  NF_INVALID = 1,     /* an argument is wrong */
  NF_UNSUPPORTED = 2, /* that operator is not defined for that type */
  NF_UNAVAILABLE = 3, /* these processes cannot share memory: several machines, users or versions; switched off */
  NF_NO_MEMORY = 4,
  NF_TIMEOUT = 5,     /* the text names the members that have not come */
  NF_DIED = 6,        /* a member has ended; the text names it */
  NF_BROKEN = 7,      /* another member cannot go on, or makes another call or one of another length; the text says who */
  NF_TRUNCATED = 8,   /* a message is longer than the room for it */
  NF_INTERRUPTED = 9  /* by nf_set_look() */
} nf_status;

typedef int nf_type;
enum {
  NF_BYTE = 0, /* bitwise operators only */
  NF_INT8 = 1,
  NF_INT16 = 2,
  NF_INT32 = 3,
  NF_INT64 = 4,
  NF_UINT8 = 5,
  NF_UINT16 = 6,
  NF_UINT32 = 7,
  NF_UINT64 = 8,
  NF_FLOAT16 = 9,   /* sums and products in float32, rounded once */
  NF_BFLOAT16 = 10, /* likewise */
  NF_FLOAT32 = 11,
  NF_FLOAT64 = 12,
  NF_COMPLEX64 = 13,  /* two float32: sum, average and product */
  NF_COMPLEX128 = 14, /* two float64 */
  NF_BOOL = 15        /* a byte, 0 or 1: sum and maximum are or, product and minimum are and */
};

typedef int nf_op;
enum {
  NF_SUM = 0, /* of integers it wraps */
  NF_AVG = 1, /* the sum times 1/size: floating point and complex */
  NF_PROD = 2,
  NF_MIN = 3,
  NF_MAX = 4,
  NF_BAND = 5, /* bitwise: integers, NF_BYTE, NF_BOOL */
  NF_BOR = 6,
  NF_BXOR = 7
};

#define NF_ANY (-1) /* source or tag of a receive */

/* A message that has been received. */
typedef struct nf_message {
  int source; /* rank in the group */
  int tag;
  size_t bytes;
} nf_message;

/* Gives `bytes` bytes at `mine` to all members and stores what all have given to `all`, in the order of ranks. Returns 0,
 * or anything else for a failure. nf_join() calls it several times, each time in all members with the same length of at
 * most 1 KiB. It is not called after nf_join() has returned. */
typedef int (*nf_exchange)(void* context, const void* mine, void* all, size_t bytes);

/* Joins a group. Collective over the processes that are to be members; on failure all of them get an error. A process can
 * meet at most three different sets of processes; a group inside one of these sets is no further set. */
int nf_join(int rank, int size, nf_exchange exchange, void* context, nf_group** group);
/* Frees the group. Local. pre: no call of the group is outstanding, or the group is broken. */
int nf_close(nf_group* group);
/* Returns this process's rank in the group. */
int nf_rank(const nf_group* group);
/* Returns the number of members. */
int nf_size(const nf_group* group);
/* Sets after how long a wait for other members ends by NF_TIMEOUT, to within some 50 ms. 0, the default: never. */
int nf_set_timeout(nf_group* group, double seconds);

/* Returns the version of the library. */
const char* nf_version(void);
/* Returns the text of this thread's last error; valid until its next one. */
const char* nf_error_text(void);
/* Returns the name of a status: "died", ... */
const char* nf_status_name(int status);
/* Returns the algorithm of this thread's last collective call without a request, as `nearfield model` names it; "" if no
 * data moved, as in a call of one rank. */
const char* nf_last_algorithm(void);
/* From now on waits of all groups call `look` about every 50 ms, in the thread that waits. If it stores 0 to `*end`, the
 * wait goes on; otherwise it ends by NF_INTERRUPTED. `look` must not call this library. NULL removes it. */
int nf_set_look(void (*look)(void* context, int* end), void* context);

/* Allocates memory, aligned to 64 bytes, from which data reach other members by one copy. (With Nearfield's heap, so do
 * allocations by malloc of 32 KiB and more.) Forked children share it; they must not allocate or free such memory. */
int nf_alloc(size_t bytes, void** memory);
/* Frees memory of nf_alloc(). */
int nf_free(void* memory);

/* ---- collectives. `count`: elements. If both buffers have the same length, send == recv means in place; for other calls
 *      see there. Otherwise buffers do not overlap. */
/* Waits for all members. */
int nf_barrier(nf_group* group, nf_request** request);
/* Copies count elements from the root to all. */
int nf_broadcast(nf_group* group, void* buffer, size_t count, nf_type type, int root, nf_request** request);
/* Combines count elements of all members; all get the result. */
int nf_allreduce(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_op op,
                 nf_request** request);
/* Combines count elements of all members; the root gets the result, and others may give NULL for recv. */
int nf_reduce(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_op op, int root,
              nf_request** request);
/* Combines size * count elements of all members; each gets the count elements of its own block. In place, the call stores
 * the block at the beginning of send. */
int nf_reduce_scatter(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_op op,
                      nf_request** request);
/* Gathers count elements of each member into size * count elements at all. In place send lies where the rank's block
 * belongs. */
int nf_allgather(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_request** request);
/* Gathers count elements of each member into size * count elements at the root; others may give NULL for recv. */
int nf_gather(nf_group* group, const void* send, void* recv, size_t count, nf_type type, int root,
              nf_request** request);
/* Gives each member its count elements of the root's size * count; others may give NULL for send. In place the root's recv
 * is its block. */
int nf_scatter(nf_group* group, const void* send, void* recv, size_t count, nf_type type, int root,
               nf_request** request);
/* Exchanges blocks: send and recv have size * count elements, a block for each member and one from each. */
int nf_alltoall(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_request** request);
/* Exchanges blocks of any lengths at any places, both in bytes: arrays of `size` each, which the call reads before it
 * returns. Not in place. Each pair agrees on its lengths. */
int nf_alltoallv(nf_group* group, const void* send, const size_t* send_bytes, const size_t* send_at, void* recv,
                 const size_t* recv_bytes, const size_t* recv_at, nf_request** request);

/* ---- messages of `bytes` bytes; tags are 0 or more. Those of one sender with one tag arrive in the order of sending. */
/* Sends a message. The call is done when the data may be overwritten. */
int nf_send(nf_group* group, const void* data, size_t bytes, int target, int tag, nf_request** request);
/* Receives at most `bytes` bytes; source or tag may be NF_ANY. `message` may be NULL; with a request nf_wait() fills it. */
int nf_receive(nf_group* group, void* room, size_t bytes, int source, int tag, nf_message* message,
               nf_request** request);

/* ---- requests. When a call finds a request done, with or without an error, it frees it and sets `*request` to NULL. A
 *      request that is NULL is done. `message` describes what a receive has got; may be NULL. */
/* Waits until a request is done; returns NF_TIMEOUT after `seconds`. 0: the group's timeout. */
int nf_wait(nf_request** request, double seconds, nf_message* message);
/* Tests a request for up to `seconds`; 0: once. `*done` becomes 1 or 0. */
int nf_test(nf_request** request, double seconds, int* done, nf_message* message);

#ifdef __cplusplus
}
#endif
#endif
