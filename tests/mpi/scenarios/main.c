/* Runs scenarios in one job:

     scenarios [--threads] [--out FILE] [NAME [ARGUMENT]... [+ NAME [ARGUMENT]...]...]

   Rank 0 prints "scenario NUMBER NAME: good" or "... wrong" behind what each has printed; the exit status is 1 where
   one went wrong. A scenario that ends the job has no such line. --threads asks for MPI_THREAD_MULTIPLE. --out appends what
   all ranks print to a file, since launchers drop what they have not passed on when a job aborts. Without a name MPI is
   begun and ended. */
#include "scenarios.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>

int rank, size;

enum { most_scenarios = 200, most_complaints = 20 };
static struct {
  const char* name;
  void (*run)(int, char**);
} scenario[most_scenarios];
static int scenarios;
static atomic_int complaints;
static unsigned random_state;

void add_scenario(const char* name, void (*run)(int, char**)) {
  if (scenarios == most_scenarios) abort();
  scenario[scenarios].name = name;
  scenario[scenarios++].run = run;
}

void say_what_is_wrong(const char* file, int line, const char* condition, const char* format, ...) {
  if (atomic_fetch_add(&complaints, 1) >= most_complaints) return;
  char text[1000];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const char* const name = strrchr(file, '/');
  fprintf(stderr, "%s:%d: rank %d: %s%s%s\n", name ? name + 1 : file, line, rank, condition, *text ? ": " : "", text);
  fflush(stderr);
}

void give_up(void) {
  usleep(200000); /* MPICH's launcher forgets what a rank has written just before it aborts */
  MPI_Abort(MPI_COMM_WORLD, 3);
  _exit(3);
}

int class_of(int code) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

void set_nearfield(MPI_Comm comm, const char* on_or_off) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "nearfield", on_or_off);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

const char* last_algorithm(void) {
  static const char* (*last)(void);
  if (!last) *(void**)&last = dlsym(RTLD_DEFAULT, "nearfield_last_algorithm");
  return last ? last() : "";
}

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

unsigned random_below(unsigned bound) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % bound;
}

void dawdle(void) {
  const unsigned chance = random_below(64);
  if (chance == 0) usleep(random_below(300));
  if (chance < 4) sched_yield();
}

/* Ends with calls that tests do not count. */
static int run(int number, int argc, char** argv) {
  int found = -1, all = 0;
  for (int i = 0; i < scenarios; ++i)
    if (!strcmp(argv[0], scenario[i].name)) found = i;
  REQUIRE(found >= 0, "there is no scenario %s", argv[0]);
  complaints = 0;
  random_state = 12345u + 7919u * (unsigned)rank;
  scenario[found].run(argc, argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  const int mine = complaints;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("scenario %d %s: %s\n", number, argv[0], all ? "wrong" : "good");
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD); /* the next one may end the job */
  return mine || all;
}

int main(int argc, char** argv) {
  int provided, wrong = 0, number = 0;
  int threads = 0;
  for (; argc > 1 && !strncmp(argv[1], "--", 2); --argc, ++argv) {
    if (!strcmp(argv[1], "--threads")) threads = 1;
    else if (argc > 2 && !strcmp(argv[1], "--out") && freopen(argv[2], "a", stdout)) --argc, ++argv;
    else return 2;
  }
  if (threads) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int first = 1, last; first < argc; first = last + 1) {
    for (last = first; last < argc && strcmp(argv[last], "+");) ++last;
    argv[last] = NULL;
    wrong |= run(number++, last - first, argv + first);
  }
  MPI_Finalize();
  return wrong || complaints; /* of what is called back at the end */
}
