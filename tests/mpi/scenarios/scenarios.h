/* What scenarios have in common. One is a function of a few lines up to a concept's whole file; main.c runs those that
   its arguments name, one after the other, in one job:

     SCENARIO(requests_looks) {
       MPI_Allreduce(...);
       CHECK(sum == size);
       REQUIRE(sum > 0, "the sum is %d", sum);
     }

   What has to be a program of its own is in ../programs: what is preloaded (inject, no_threads, profiler), libraries
   that stand in for others (fake_cuda, serial_mpi), plugins and what opens them (two_mpis, pingpong), programs without
   MPI (deny, without_mpi), what replaces malloc (allocations) or is compiled with sanitizers (overflow), what is about
   MPI_Init or MPI_Finalize (late, sessions_first, spawns, tools, progress_thread, recorded, partners), and what has to die, hang
   or be killed (killed, lacking, revokes, hang_report, several). */
#pragma once
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of MPI 4; Open MPI 5.0, which says that it is MPI 3.1, has them, and 4.1 has not. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT_COLLECTIVES 1
#define HAS_PARTITIONED 1
#else
#define HAS_PERSISTENT_COLLECTIVES 0
#define HAS_PARTITIONED 0
#endif

/* In MPI_COMM_WORLD. */
extern int rank, size;

/* Defines and registers a scenario, which may have arguments; argv[0] is its name. */
#define SCENARIO(name)                                                                          \
  static void name(int argc, char** argv);                                                      \
  __attribute__((constructor)) static void register_##name(void) { add_scenario(#name, name); } \
  static void name(int argc __attribute__((unused)), char** argv __attribute__((unused)))
void add_scenario(const char* name, void (*run)(int argc, char** argv));

/* Says what is wrong, and where, and goes on: the scenario has failed. The value is whether the condition held. A text
   of printf's may follow. Threads may check. */
#define CHECK(condition, ...)                                                       \
  ({                                                                                \
    const int right_ = !!(condition);                                               \
    if (!right_) say_what_is_wrong(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
    right_;                                                                         \
  })
/* The same, and ends the job. */
#define REQUIRE(condition, ...)                    \
  do {                                             \
    if (!CHECK(condition, __VA_ARGS__)) give_up(); \
  } while (0)
#pragma GCC diagnostic ignored "-Wformat-zero-length"
__attribute__((format(printf, 4, 5))) void say_what_is_wrong(const char* file, int line, const char* condition,
                                                             const char* format, ...);
void give_up(void);

int class_of(int code); /* the error class, MPI_SUCCESS of a success */
void set_nearfield(MPI_Comm comm, const char* on_or_off);
const char* last_algorithm(void); /* what has served this thread's last collective; "" where Nearfield is not there */
double now(void);                 /* in seconds */
unsigned random_below(unsigned bound); /* of numbers that differ between ranks, and are the same in every run */
void dawdle(void);                     /* gives the CPU away, now and then, for some microseconds */
