/* MPI's tools interface as tools use it.

     list early|late   all variables and categories, as "PHASE KIND INDEX NAME ...", for the first time before or after
                       MPI_Init; of categories also what they hold, by name
     counts            performance variables while calls are made
     errors            what wrong calls give
     texts             how strings are cut
     threads           several threads have handles while they call */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { longest = 4096, most = 20000 };

static const char* name_of(int code) {
#define NAMED(name) \
  if (code == MPI_##name) return #name;
  NAMED(SUCCESS)
  NAMED(T_ERR_INVALID_INDEX)
  NAMED(T_ERR_INVALID_ITEM)
  NAMED(T_ERR_INVALID_HANDLE)
  NAMED(T_ERR_INVALID_SESSION)
  NAMED(T_ERR_INVALID_NAME)
  NAMED(T_ERR_INVALID)
  NAMED(T_ERR_NOT_INITIALIZED)
  NAMED(T_ERR_PVAR_NO_STARTSTOP)
  NAMED(T_ERR_PVAR_NO_WRITE)
  NAMED(T_ERR_PVAR_NO_ATOMIC)
  return "another error";
}

static void must(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  printf("%s: %s\n", what, name_of(code));
  fflush(stdout);
  exit(1);
}
#define MUST(call) must(call, #call)
#define SAY(what, call) printf("%s: %s\n", what, name_of(call))

static void begin(void) {
  int provided;
  MUST(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
}

/* Open MPI 4.1 crashes in MPI_T_finalize after MPI_Finalize. */
static void end(void) {
  if (!getenv("TOOLS_WITHOUT_END")) MUST(MPI_T_finalize());
}

/* ---------------------------------------------------------------- list */

static void cvar_name(int index, char* name) {
  int length = longest, verbosity, bind, scope;
  MPI_Datatype type;
  MPI_T_enum kinds;
  *name = 0;
  const int code = MPI_T_cvar_get_info(index, name, &length, &verbosity, &type, &kinds, NULL, NULL, &bind, &scope);
  if (code != MPI_SUCCESS) sprintf(name, "(%s)", name_of(code)); /* Open MPI: of a component that is gone */
}

static int pvar_name(int index, char* name) {
  int length = longest, verbosity, of_class = 0, bind, readonly, continuous, atomic;
  MPI_Datatype type;
  MPI_T_enum kinds;
  *name = 0;
  const int code = MPI_T_pvar_get_info(index, name, &length, &verbosity, &of_class, &type, &kinds, NULL, NULL, &bind,
                                       &readonly, &continuous, &atomic);
  if (code != MPI_SUCCESS) sprintf(name, "(%s)", name_of(code));
  return of_class;
}

static void category_name(int index, char* name, int* held) {
  int length = longest;
  *name = 0;
  held[0] = held[1] = held[2] = 0;
  const int code = MPI_T_category_get_info(index, name, &length, NULL, NULL, &held[0], &held[1], &held[2]);
  if (code != MPI_SUCCESS) sprintf(name, "(%s)", name_of(code));
}

static void list(const char* phase) {
  static char name[longest], of_held[longest];
  static int indices[most];
  int number, again, held[3], ignored[3];
  MUST(MPI_T_cvar_get_num(&number));
  for (int i = 0; i < number; ++i) {
    cvar_name(i, name);
    printf("%s cvar %d %s", phase, i, name);
    if (*name != '(' && MPI_T_cvar_get_index(name, &again) == MPI_SUCCESS) printf(" %d", again);
    printf("\n");
  }
  MUST(MPI_T_pvar_get_num(&number));
  for (int i = 0; i < number; ++i) {
    const int of_class = pvar_name(i, name);
    printf("%s pvar %d %s", phase, i, name);
    if (*name != '(' && MPI_T_pvar_get_index(name, of_class, &again) == MPI_SUCCESS) printf(" %d", again);
    printf("\n");
  }
  MUST(MPI_T_category_get_num(&number));
  for (int i = 0; i < number; ++i) {
    category_name(i, name, held);
    printf("%s category %d %s", phase, i, name);
    if (*name != '(' && MPI_T_category_get_index(name, &again) == MPI_SUCCESS) printf(" %d", again);
    printf("\n");
    for (int k = 0; k < held[0] + 2; ++k) indices[k] = -7;
    if (MPI_T_category_get_cvars(i, held[0] + 1, indices) == MPI_SUCCESS)
      for (int k = 0; k < held[0]; ++k) {
        cvar_name(indices[k], of_held);
        printf("%s holds %s cvar %s\n", phase, name, of_held);
      }
    if (indices[held[0]] != -7) printf("%s wrote too much\n", name);
    if (MPI_T_category_get_pvars(i, held[1], indices) == MPI_SUCCESS)
      for (int k = 0; k < held[1]; ++k) {
        pvar_name(indices[k], of_held);
        printf("%s holds %s pvar %s\n", phase, name, of_held);
      }
    if (MPI_T_category_get_categories(i, held[2], indices) == MPI_SUCCESS)
      for (int k = 0; k < held[2]; ++k) {
        category_name(indices[k], of_held, ignored);
        printf("%s holds %s category %s\n", phase, name, of_held);
      }
  }
}

/* ---------------------------------------------------------------- counts */

static MPI_T_pvar_handle watch(MPI_T_pvar_session session, const char* name, int of_class) {
  MPI_T_pvar_handle handle;
  int index, count = 0;
  MUST(MPI_T_pvar_get_index(name, of_class, &index));
  MUST(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
  if (count != 1) printf("%s: %d values\n", name, count);
  return handle;
}

static unsigned long long read_number(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long now = 0;
  MUST(MPI_T_pvar_read(session, handle, &now));
  return now;
}

static const char* const counted[] = {"nearfield_allreduce_calls",
                                      "nearfield_barrier_calls",
                                      "nearfield_bcast_calls",
                                      "nearfield_bcast_to_the_host",
                                      "nearfield_bcast_to_the_host_switched_off",
                                      "nearfield_neighbor_alltoall_calls",
                                      "nearfield_scan_calls",
                                      "nearfield_windows",
                                      "nearfield_puts_and_gets",
                                      "nearfield_host_calls"};
enum { all_counted = sizeof counted / sizeof *counted };

static void counts(void) {
  begin();
  MPI_T_pvar_session session;
  MUST(MPI_T_pvar_session_create(&session));
  const int counter = MPI_T_PVAR_CLASS_COUNTER, aggregate = MPI_T_PVAR_CLASS_AGGREGATE;
  MPI_T_pvar_handle handle[all_counted];
  for (int i = 0; i < all_counted; ++i) handle[i] = watch(session, counted[i], counter);
  const MPI_T_pvar_handle bytes = watch(session, "nearfield_allreduce_bytes", aggregate),
                          seconds = watch(session, "nearfield_allreduce_seconds", MPI_T_PVAR_CLASS_TIMER),
                          boxes = watch(session, "nearfield_messages_by_fastboxes", counter),
                          queue = watch(session, "nearfield_messages_by_the_queue", counter),
                          large = watch(session, "nearfield_messages_large_bytes", aggregate),
                          ranks = watch(session, "nearfield_ranks_of_the_node", MPI_T_PVAR_CLASS_SIZE),
                          memory = watch(session, "nearfield_memory_alloc_mem_in_use", MPI_T_PVAR_CLASS_LEVEL),
                          highest = watch(session, "nearfield_memory_alloc_mem_in_use_at_most",
                                          MPI_T_PVAR_CLASS_HIGHWATERMARK);
  const unsigned long long calls_before = read_number(session, handle[0]), ranks_before = read_number(session, ranks);
  int me, provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (me == 0) printf("before: %llu calls, %llu ranks\n", calls_before, ranks_before);
  double in[16] = {1}, out[16], passed = 0, later = 0;
  MPI_Comm line, off;
  const int two = 2, periodic = 1;
  MPI_Info hints;
  MPI_Comm_dup(MPI_COMM_WORLD, &off);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &periodic, 0, &line);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "nearfield", "off");
  MPI_Comm_set_info(off, hints);
  MPI_Info_free(&hints);
  MPI_Win window;
  double* mine;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
  MPI_Barrier(MPI_COMM_WORLD);

  unsigned long long first[all_counted], first_bytes = read_number(session, bytes);
  for (int i = 0; i < all_counted; ++i) first[i] = read_number(session, handle[i]);
  const unsigned long long sent = read_number(session, boxes) + read_number(session, queue);
  MUST(MPI_T_pvar_read(session, seconds, &passed));
  for (int i = 0; i < 17; ++i) MPI_Allreduce(in, out, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 5; ++i) MPI_Bcast(in, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) MPI_Bcast(in, 4, MPI_DOUBLE, 0, off);
  for (int i = 0; i < 7; ++i) MPI_Neighbor_alltoall(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, line);
  MPI_Request request;
  MPI_Iscan(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < 4; ++i) MPI_Put(in, 1, MPI_DOUBLE, 1 - me, i, 1, MPI_DOUBLE, window);
  MPI_Win_unlock_all(window);
  for (int i = 0; i < all_counted; ++i)
    if (me == 0) printf("%s +%llu\n", counted[i], read_number(session, handle[i]) - first[i]);
  MUST(MPI_T_pvar_read(session, seconds, &later));
  if (me == 0) printf("bytes +%llu\n", read_number(session, bytes) - first_bytes);
  if (me == 0) printf("time %s\n", later > passed && later < 100 ? "passes" : "is wrong");
  if (me == 0) printf("ranks %llu\n", read_number(session, ranks));

  const unsigned long long exchanged = read_number(session, boxes) + read_number(session, queue);
  if (me == 0) printf("messages of neighbours %s\n", exchanged > sent ? "count" : "do not count");
  for (int i = 0; i < 11; ++i) {
    if (me == 0) MPI_Send(in, 4, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(out, 4, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (me == 0) printf("messages +%llu\n", read_number(session, boxes) + read_number(session, queue) - exchanged);
  const int length = 1 << 20;
  char* const much = calloc(length, 1);
  const unsigned long long before = read_number(session, large);
  if (me == 1) MPI_Send(much, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  else MPI_Recv(much, length, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 0) printf("large +%llu\n", read_number(session, large) - before);
  const unsigned long long empty = read_number(session, memory);
  void* lot;
  MPI_Info wish; /* else it is the host's, in the heap */
  MPI_Info_create(&wish);
  MPI_Info_set(wish, "nearfield_memory", "local");
  MPI_Alloc_mem(1 << 20, wish, &lot);
  MPI_Info_free(&wish);
  if (me == 0) printf("memory +%llu\n", read_number(session, memory) - empty);
  MPI_Free_mem(lot);
  if (me == 0) printf("memory +%llu\n", read_number(session, memory) - empty);
  if (me == 0) printf("highest %s\n", read_number(session, highest) >= empty + length ? "kept" : "lost");

  /* Continuous variables go on whatever is started and stopped. By the standard ABI MPICH 5.0 crashes after MPI_Init.
   */
  if (!getenv("TOOLS_WITHOUT_ALL")) {
    MUST(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    MUST(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    MUST(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
  }
  const unsigned long long calls = read_number(session, handle[0]);
  MPI_Allreduce(in, out, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (me == 0) printf("all handles +%llu\n", read_number(session, handle[0]) - calls);
  MPI_Win_free(&window);
  MPI_Comm_free(&line);
  MPI_Comm_free(&off);
  const unsigned long long fastboxes = read_number(session, boxes) + read_number(session, queue);
  MPI_Finalize();
  if (me == 0)
    printf("after: +%llu calls, messages %s\n", read_number(session, handle[0]) - calls,
           read_number(session, boxes) + read_number(session, queue) >= fastboxes ? "kept" : "lost");
  MUST(MPI_T_pvar_handle_free(session, &handle[0]));
  MUST(MPI_T_pvar_session_free(&session));
  end();
  if (me) exit(0);
}

/* ---------------------------------------------------------------- errors */

/* What the host answers, also without Nearfield: in a process each, since hosts may crash. */
static int wrong_call(int which, const char** what) {
  int number = 0, index = 0, count = 0, unused;
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  MPI_T_cvar_handle control;
  MPI_T_pvar_handle handle;
  const MPI_T_pvar_handle all = MPI_T_PVAR_ALL_HANDLES;
#define CALL(name, call) \
  case __COUNTER__: *what = name; return call;
  if (which > 3) {
    begin();
    MUST(MPI_T_pvar_session_create(&session));
  }
  switch (which) {
    CALL("cvars before", MPI_T_cvar_get_num(&number))
    CALL("pvars before", MPI_T_pvar_get_num(&number))
    CALL("categories before", MPI_T_category_get_num(&number))
    CALL("end before", MPI_T_finalize())
    CALL("cvar beyond", (MPI_T_cvar_get_num(&number), MPI_T_cvar_handle_alloc(number, NULL, &control, &count)))
    CALL("cvar -1", MPI_T_cvar_handle_alloc(-1, NULL, &control, &count))
    CALL("cvar's name beyond",
         (MPI_T_cvar_get_num(&number),
          MPI_T_cvar_get_info(number, NULL, &unused, &unused, NULL, NULL, NULL, &unused, &unused, &unused)))
    CALL("pvar beyond", (MPI_T_pvar_get_num(&number), MPI_T_pvar_handle_alloc(session, number, NULL, &handle, &count)))
    CALL("pvar -1", MPI_T_pvar_handle_alloc(session, -1, NULL, &handle, &count))
    CALL("category beyond", (MPI_T_category_get_num(&number), MPI_T_category_get_cvars(number, 1, &index)))
    CALL("category's name beyond",
         (MPI_T_category_get_num(&number), MPI_T_category_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL)))
    CALL("no such cvar", MPI_T_cvar_get_index("NEARFIELD_NOTHING", &index))
    CALL("no such pvar", MPI_T_pvar_get_index("nearfield_nothing", MPI_T_PVAR_CLASS_COUNTER, &index))
    CALL("no such category", MPI_T_category_get_index("nearfields", &index))
    CALL("pvar of another class", MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_LEVEL, &index))
    CALL("start all of none", MPI_T_pvar_start(session, all))
    CALL("reset all of none", MPI_T_pvar_reset(session, all))
    CALL("free null cvar", (control = MPI_T_CVAR_HANDLE_NULL, MPI_T_cvar_handle_free(&control)))
    CALL("free null pvar", (handle = MPI_T_PVAR_HANDLE_NULL, MPI_T_pvar_handle_free(session, &handle)))
    CALL("read null pvar", MPI_T_pvar_read(session, MPI_T_PVAR_HANDLE_NULL, &index))
    CALL("session", MPI_T_pvar_session_free(&session))
    CALL("cvars after", (MPI_T_finalize(), MPI_T_cvar_get_num(&number)))
    CALL("anew", (MPI_T_finalize(), begin(), MPI_T_cvar_get_num(&number)))
    default: return -1;
  }
}

static void wrong(void) {
  for (int which = 0;; ++which) {
    const char* what = NULL;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      freopen("/dev/null", "w", stderr);
      const int code = wrong_call(which, &what);
      if (what) printf("%s: %s\n", what, name_of(code));
      fflush(stdout);
      _exit(code == -1 ? 42 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 42) return;
    if (status) printf("%d crashes\n", which);
  }
}

static void errors(void) {
  int index, count;
  unsigned long long there = 0;
  MPI_T_pvar_session session, other;
  MPI_T_pvar_handle handle, freed, in_other;

  SAY("name before", MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_COUNTER, &index));
  begin();
  begin(); /* counted */
  MUST(MPI_T_finalize());
  MUST(MPI_T_pvar_session_create(&session));
  MUST(MPI_T_pvar_session_create(&other));

  MUST(MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_COUNTER, &index));
  MUST(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
  MUST(MPI_T_pvar_handle_alloc(other, index, NULL, &in_other, &count));
  SAY("session null", MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, index, NULL, &freed, &count));
  SAY("start", MPI_T_pvar_start(session, handle));
  SAY("stop", MPI_T_pvar_stop(session, handle));
  SAY("write", MPI_T_pvar_write(session, handle, &there));
  SAY("reset", MPI_T_pvar_reset(session, handle));
  SAY("readreset", MPI_T_pvar_readreset(session, handle, &there));
  SAY("read", MPI_T_pvar_read(session, handle, &there));
  SAY("read in null", MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, handle, &there));
  SAY("read in another", MPI_T_pvar_read(other, handle, &there));
  SAY("start in another", MPI_T_pvar_start(other, handle));
  SAY("free in another", MPI_T_pvar_handle_free(other, &handle));
  SAY("read of another", MPI_T_pvar_read(session, in_other, &there));
  freed = handle;
  SAY("free", MPI_T_pvar_handle_free(session, &handle));
  printf("null afterwards: %d\n", handle == MPI_T_PVAR_HANDLE_NULL);
  SAY("freed: read", MPI_T_pvar_read(session, freed, &there));
  SAY("freed: start", MPI_T_pvar_start(session, freed));
  SAY("freed: free", MPI_T_pvar_handle_free(session, &freed));

  MUST(MPI_T_pvar_session_free(&other));
  printf("null afterwards: %d\n", other == MPI_T_PVAR_SESSION_NULL);
  SAY("with its session: read", MPI_T_pvar_read(session, in_other, &there));
  MUST(MPI_T_pvar_session_create(&other)); /* often where the one before was */
  SAY("with its session: read in a new one", MPI_T_pvar_read(other, in_other, &there));
  MUST(MPI_T_pvar_session_free(&other));
  MUST(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
  MUST(MPI_T_finalize());
  SAY("pvar after", MPI_T_pvar_read(session, handle, &there));
  SAY("name after", MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_COUNTER, &index));
}

/* Some hosts cannot. */
static void anew(void) {
  int index, again;
  begin();
  MUST(MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_COUNTER, &index));
  MUST(MPI_T_finalize());
  begin();
  SAY("anew", MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_COUNTER, &again));
  MUST(MPI_T_finalize());
}

/* ---------------------------------------------------------------- texts */

static void cut(int index, int room, int there) {
  char name[64], about[8192];
  int length = room, about_length = room, verbosity, of_class, bind, readonly, continuous, atomic;
  MPI_Datatype type;
  MPI_T_enum kinds;
  memset(name, '#', sizeof name);
  memset(about, '#', sizeof about);
  MUST(MPI_T_pvar_get_info(index, there ? name : NULL, &length, &verbosity, &of_class, &type, &kinds, about,
                           &about_length, &bind, &readonly, &continuous, &atomic));
  printf("%d of %d: ", room, length);
  for (int i = 0; i < 24; ++i) putchar(name[i] ? name[i] : '.');
  printf(" %s\n", room == 0 && about[0] != '#'            ? "written"
                  : room && strlen(about) >= (size_t)room ? "too long"
                                                          : "good");
  if (readonly != 1 || continuous != 1 || atomic != 0 || bind != MPI_T_BIND_NO_OBJECT || kinds != MPI_T_ENUM_NULL ||
      of_class != MPI_T_PVAR_CLASS_COUNTER || type != MPI_UNSIGNED_LONG_LONG || verbosity != MPI_T_VERBOSITY_USER_BASIC)
    printf("described wrongly\n");
}

static void texts(void) {
  int index;
  char name[64] = "########";
  begin();
  MUST(MPI_T_pvar_get_index("nearfield_scan_calls", MPI_T_PVAR_CLASS_COUNTER, &index));
  cut(index, 64, 1);
  cut(index, 21, 1);
  cut(index, 20, 1);
  cut(index, 5, 1);
  cut(index, 1, 1);
  cut(index, 0, 1);
  cut(index, 64, 0);
  MUST(MPI_T_pvar_get_info(index, name, NULL, NULL, NULL, NULL, NULL, name, NULL, NULL, NULL, NULL, NULL));
  printf("without a length: %s\n", name);
  MUST(MPI_T_finalize());
}

/* ---------------------------------------------------------------- threads */

static void* use(void* errors_found) {
  MPI_T_pvar_session session;
  MUST(MPI_T_pvar_session_create(&session));
  for (int i = 0; i < 300; ++i) {
    const MPI_T_pvar_handle handle = watch(session, "nearfield_bcast_calls", MPI_T_PVAR_CLASS_COUNTER);
    const unsigned long long before = read_number(session, handle);
    double one = 1;
    MPI_Bcast(&one, 1, MPI_DOUBLE, 0, MPI_COMM_SELF);
    if (read_number(session, handle) <= before) ++*(int*)errors_found;
    MPI_T_pvar_handle away = handle;
    if (i % 2) MUST(MPI_T_pvar_handle_free(session, &away));
  }
  MUST(MPI_T_pvar_session_free(&session));
  return NULL;
}

static void threads(void) {
  int provided, wrong[4] = {0};
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  begin();
  pthread_t thread[4];
  for (int i = 0; i < 4; ++i) pthread_create(&thread[i], NULL, use, &wrong[i]);
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
  printf("wrong: %d\n", wrong[0] + wrong[1] + wrong[2] + wrong[3]);
  MUST(MPI_T_finalize());
  MPI_Finalize();
}

int main(int arguments, char** argument) {
  const char* const what = arguments > 1 ? argument[1] : "";
  setvbuf(stdout, NULL, strcmp(what, "list") ? _IOLBF : _IOFBF, 1 << 16);
  if (!strcmp(what, "list")) {
    const int early = !strcmp(argument[2], "early");
    begin();
    if (early) list("before");
    MPI_Init(NULL, NULL);
    list("between");
    MPI_Finalize();
    list("after");
    end();
  }
  if (!strcmp(what, "counts")) counts();
  if (!strcmp(what, "wrong")) wrong();
  if (!strcmp(what, "errors")) errors();
  if (!strcmp(what, "anew")) anew();
  if (!strcmp(what, "texts")) texts();
  if (!strcmp(what, "threads")) threads();
  printf("good\n");
  return 0;
}
