/* Arrays of requests in all that completes them. */
#include "scenarios.h"

enum { most = 200, long_message = 50000 };
static int to, from;
static MPI_Comm of_host; /* its messages are the host's */

/* ---- arrays of every kind of request, completed in every way */

enum kind {
  null,
  inactive,
  nowhere,
  receive,
  long_receive,
  persistent,
  send,
  long_send,
  hosts,
  hosts_inactive,
  generalised,
  kinds
};
static int in[most][long_message / sizeof(int)], out[most][long_message / sizeof(int)];
static MPI_Request requests[most];
static enum kind kind[most];

static int length(enum kind k) { return k == long_receive || k == long_send ? (int)(long_message / sizeof(int)) : 1; }
static int receives(enum kind k) { return k == receive || k == long_receive || k == persistent || k == hosts; }
static int counts(enum kind k) { return k != null && k != inactive && k != hosts_inactive; }

static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 5);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 3;
  status->MPI_TAG = 4;
  return MPI_SUCCESS;
}
static int let_go(void* state) { return state ? MPI_ERR_OTHER : MPI_SUCCESS; }
static int cancel(void* state, int complete) { return state && complete ? MPI_ERR_OTHER : MPI_SUCCESS; }

static void start(int n, int mixed, unsigned seed) {
  for (int i = 0; i < n; ++i) {
    seed = seed * 1103515245 + 12345;
    kind[i] = (enum kind)(seed / 65536 % (mixed ? kinds : hosts));
    memset(in[i], -1, sizeof in[i]);
    for (int k = 0; k < length(kind[i]); ++k) out[i][k] = 1000 * rank + i + k;
    const int words = length(kind[i]);
    MPI_Request* const r = &requests[i];
    switch (kind[i]) {
      case null: *r = MPI_REQUEST_NULL; break;
      case inactive: MPI_Recv_init(in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, r); break;
      case hosts_inactive: MPI_Recv_init(in[i], 1, MPI_INT, from, i, of_host, r); break;
      case nowhere: MPI_Irecv(in[i], 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD, r); break;
      case receive:
      case long_receive: MPI_Irecv(in[i], words, MPI_INT, i % 3 ? from : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, r); break;
      case persistent:
        MPI_Recv_init(in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, r);
        MPI_Start(r);
        break;
      case hosts: MPI_Irecv(in[i], 1, MPI_INT, from, i, of_host, r); break;
      case generalised: MPI_Grequest_start(query, let_go, cancel, NULL, r); break;
      default: MPI_Isend(out[i], words, MPI_INT, to, i, MPI_COMM_WORLD, r);
    }
  }
}

/* The other sides of start(), which are the same on all ranks. */
static void answer_one(int i, MPI_Request* other) {
  *other = MPI_REQUEST_NULL;
  if (receives(kind[i]))
    MPI_Isend(out[i], length(kind[i]), MPI_INT, to, i, kind[i] == hosts ? of_host : MPI_COMM_WORLD, other);
  else if (kind[i] == send || kind[i] == long_send)
    MPI_Irecv(in[i], length(kind[i]), MPI_INT, from, i, MPI_COMM_WORLD, other);
  else if (kind[i] == generalised) MPI_Grequest_complete(requests[i]);
}
static void answer(int n, MPI_Request* others) {
  for (int i = 0; i < n; ++i) answer_one(i, &others[i]);
}

static int right(int i, MPI_Status* status) {
  int good = 1, count = -1, cancelled = 1;
  if (kind[i] == send || kind[i] == long_send) return 1; /* nothing is said of it */
  MPI_Get_count(status, MPI_INT, &count);
  MPI_Test_cancelled(status, &cancelled);
  good &= CHECK(!cancelled);
  if (receives(kind[i])) {
    good &= CHECK(status->MPI_SOURCE == from && status->MPI_TAG == i && count == length(kind[i]));
    for (int k = 0; k < length(kind[i]); ++k) good &= in[i][k] == 1000 * from + i + k;
    good &= CHECK(good);
  } else if (kind[i] == generalised) {
    good &= CHECK(status->MPI_SOURCE == 3 && status->MPI_TAG == 4 && count == 5);
  } else if (kind[i] == nowhere) {
    good &= CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0);
  } else {
    good &= CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0);
  }
  return good;
}

static int complete(int n, int how, int ignore) {
  static MPI_Status statuses[most];
  static int indices[most], seen[most];
  int good = 1, left = 0, flag = 0, some = 0, index = -5;
  memset(statuses, 0xa5, sizeof statuses);
  memset(seen, 0, sizeof seen);
  for (int i = 0; i < n; ++i) left += counts(kind[i]);
  if (how < 2) {
    MPI_Status* const given = ignore ? MPI_STATUSES_IGNORE : statuses;
    if (how == 0) MPI_Waitall(n, requests, given);
    while (how == 1 && !flag) MPI_Testall(n, requests, &flag, given);
    for (int i = 0; i < n && !ignore; ++i) good &= CHECK(right(i, &statuses[i]));
    return good;
  }
  while (left > 0) {
    flag = 1;
    if (how == 2) MPI_Waitany(n, requests, &index, ignore ? MPI_STATUS_IGNORE : statuses);
    if (how == 3) MPI_Testany(n, requests, &index, &flag, ignore ? MPI_STATUS_IGNORE : statuses);
    if (how == 4) MPI_Waitsome(n, requests, &some, indices, ignore ? MPI_STATUSES_IGNORE : statuses);
    if (how == 5) MPI_Testsome(n, requests, &some, indices, ignore ? MPI_STATUSES_IGNORE : statuses);
    if (how < 4) some = flag, indices[0] = index;
    good &= CHECK(some >= 0 && some <= left && (how != 4 || some > 0));
    for (int k = 0; k < some && good; ++k) {
      good &= CHECK(indices[k] >= 0 && indices[k] < n && counts(kind[indices[k]]) && !seen[indices[k]]++);
      if (!ignore && good) good &= CHECK(right(indices[k], &statuses[k]));
    }
    if (!good) return 0;
    left -= some;
  }
  /* Nothing counts any more. */
  MPI_Waitany(n, requests, &index, statuses);
  good &= CHECK(index == MPI_UNDEFINED);
  MPI_Testany(n, requests, &index, &flag, statuses);
  good &= CHECK(flag && index == MPI_UNDEFINED);
  MPI_Waitsome(n, requests, &some, indices, statuses);
  good &= CHECK(some == MPI_UNDEFINED);
  MPI_Testsome(n, requests, &some, indices, statuses);
  good &= CHECK(some == MPI_UNDEFINED);
  return good;
}

static int arrays(void) {
  static MPI_Request others[most];
  static const int lengths[] = {1, 2, 7, 64, 65, most};
  int good = 1;
  for (int mixed = 0; mixed < 2; ++mixed)
    for (int l = 0; l < 6; ++l)
      for (int how = 0; how < 6; ++how)
        for (int variant = 0; variant < 4; ++variant) {
          const int n = lengths[l];
          start(n, mixed, 1 + 97u * (unsigned)(how + 6 * variant) + (unsigned)l);
          if (variant < 2) answer(n, others);
          int flag = 0, index = 0;
          if (variant >= 2) { /* nothing has been sent yet */
            int waits = 0;
            for (int i = 0; i < n; ++i) waits |= receives(kind[i]);
            MPI_Barrier(MPI_COMM_WORLD);
            if (waits) MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
            good &= CHECK(!flag);
            MPI_Barrier(MPI_COMM_WORLD);
            answer(n, others);
          }
          good &= CHECK(complete(n, how, variant % 2));
          MPI_Waitall(n, others, MPI_STATUSES_IGNORE);
          for (int i = 0; i < n; ++i) {
            const int stays = kind[i] == inactive || kind[i] == persistent || kind[i] == hosts_inactive;
            good &= CHECK((requests[i] != MPI_REQUEST_NULL) == stays);
            if (stays) MPI_Request_free(&requests[i]);
          }
          MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
          MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
          good &= CHECK(index == MPI_UNDEFINED);
          if (!good) fprintf(stderr, "rank %d: %d requests, way %d, variant %d\n", rank, n, how, variant);
          if (!good) MPI_Abort(MPI_COMM_WORLD, 1);
        }
  return good;
}

/* ---- what is asked of arrays, which completes nothing, is what completing says */

/* Of MPI 4.1; Nearfield has them. */
static int (*get_status_all)(int, const MPI_Request*, int*, MPI_Status*);
static int (*get_status_any)(int, const MPI_Request*, int*, int*, MPI_Status*);
static int (*get_status_some)(int, const MPI_Request*, int*, int*, MPI_Status*);

/* `there`: has been answered, and was complete when it was looked at alone. */
static void ask(int n, const int* there) {
  MPI_Status statuses[most];
  int indices[most], left = 0, known = 0, pending = 0, flag = -1, some = -1, index = -1;
  for (int i = 0; i < n; ++i) {
    left += counts(kind[i]);
    known += counts(kind[i]) && there[i];
    pending += receives(kind[i]) && !there[i];
  }
  memset(statuses, 0xa5, sizeof statuses);
  get_status_all(n, requests, &flag, statuses);
  REQUIRE(pending ? !flag : flag || known < left);
  for (int i = 0; i < n && flag; ++i) REQUIRE(right(i, &statuses[i]));
  memset(statuses, 0xa5, sizeof statuses);
  get_status_any(n, requests, &index, &flag, statuses);
  REQUIRE(left && !known ? pending < left || !flag : flag);
  if (left && flag) REQUIRE(index >= 0 && index < n && counts(kind[index]), "index %d", index);
  if (left && flag) REQUIRE((there[index] || !receives(kind[index])) && right(index, statuses));
  if (!left) REQUIRE(index == MPI_UNDEFINED);
  memset(statuses, 0xa5, sizeof statuses);
  get_status_some(n, requests, &some, indices, statuses);
  REQUIRE(left ? some >= known && some <= left - pending : some == MPI_UNDEFINED, "%d", some);
  for (int k = 0; k < some; ++k) {
    REQUIRE(indices[k] >= 0 && indices[k] < n && counts(kind[indices[k]]) && (!k || indices[k - 1] < indices[k]));
    REQUIRE((there[indices[k]] || !receives(kind[indices[k]])) && right(indices[k], &statuses[k]));
  }
}

/* To itself, so that each rank knows what is still to come. Requests are answered one by one, in several orders. */
static int asked(void) {
  static const int lengths[] = {1, 2, 5, 9, 70};
  *(void**)&get_status_all = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
  *(void**)&get_status_any = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_any");
  *(void**)&get_status_some = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_some");
  to = from = rank;
  for (int variant = 0; variant < 60; ++variant) {
    const int n = lengths[variant % 5], way = variant / 5 % 3;
    MPI_Request others[most];
    int there[most] = {0};
    start(n, variant & 1, 5 + 131u * (unsigned)variant);
    for (int i = 0; i < n; ++i) there[i] = kind[i] == nowhere;
    for (int step = 0; step < n; ++step) {
      const int i = way == 0 ? step : way == 1 ? n - 1 - step : (step * 37 + variant) % n;
      MPI_Status status;
      ask(n, there);
      answer_one(i, &others[i]);
      MPI_Wait(&others[i], MPI_STATUS_IGNORE);
      while (!there[i])
        MPI_Request_get_status(requests[i], &there[i], &status), there[i] = there[i] && right(i, &status);
    }
    ask(n, there);
    REQUIRE(complete(n, variant % 6, 0), "%d requests, variant %d", n, variant);
    for (int i = 0; i < n; ++i)
      if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
  }
  return 1;
}

/* ---- errors of some of several requests */

static int troubles(void) {
  int good = 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(of_host, MPI_ERRORS_RETURN);
  for (int mixed = 0; mixed < 2; ++mixed)
    for (int how = 0; how < 5; ++how) {
      enum { n = 6 };
      MPI_Request r[n];
      MPI_Status statuses[n];
      int value[n][4], token[4] = {1, 2, 3, 4}, indices[n], some = 0, index = -1, flag = 0, code = MPI_SUCCESS;
      memset(statuses, 0xa5, sizeof statuses);
      r[0] = MPI_REQUEST_NULL;
      for (int i = 1; i < n; ++i)
        MPI_Irecv(value[i], i == 2 ? 1 : 4, MPI_INT, from, i, mixed && i == 4 ? of_host : MPI_COMM_WORLD, &r[i]);
      for (int i = 1; i < n; ++i) MPI_Send(token, 4, MPI_INT, to, i, mixed && i == 4 ? of_host : MPI_COMM_WORLD);
      if (how < 2) {
        if (how == 0) code = MPI_Waitall(n, r, statuses);
        while (how == 1 && !flag && code == MPI_SUCCESS) code = MPI_Testall(n, r, &flag, statuses);
        good &= CHECK(class_of(code) == MPI_ERR_IN_STATUS);
        for (int i = 0; i < n; ++i)
          good &= CHECK(class_of(statuses[i].MPI_ERROR) == (i == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS) &&
                        r[i] == MPI_REQUEST_NULL);
        continue;
      }
      int failed = 0;
      for (int left = n - 1; left > 0; left -= some) {
        flag = 1;
        if (how == 2) code = MPI_Waitany(n, r, &index, statuses);
        if (how == 3) code = MPI_Testany(n, r, &index, &flag, statuses);
        if (how == 4) code = MPI_Waitsome(n, r, &some, indices, statuses);
        if (how < 4) {
          some = flag;
          if (!flag) continue;
          good &= CHECK(class_of(code) == (index == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
          failed += index == 2;
        } else {
          int bad = 0;
          for (int k = 0; k < some; ++k) bad |= indices[k] == 2;
          good &= CHECK(class_of(code) == (bad ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
          for (int k = 0; k < some && bad; ++k)
            good &= CHECK(class_of(statuses[k].MPI_ERROR) == (indices[k] == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
          failed += bad;
        }
        if (!good) MPI_Abort(MPI_COMM_WORLD, 1);
      }
      good &= CHECK(failed == 1);
    }
  return good;
}

/* ---- receives that are taken back: plain and persistent ones, with and without gaps, completed in every way */

static int cancels(void) {
  enum { words = 40000, ways = 7 };
  static int got[3 * words / 2], given[words];
  int flag, some, index, is_cancelled, count;
  MPI_Datatype gaps;
  MPI_Type_vector(words / 2, 2, 3, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  to = from = rank; /* nothing comes by itself */
  for (int i = 0; i < words; ++i) given[i] = i + 1;
  for (int k = 0; k < 8 * ways; ++k) {
    const int plans = k % 2, way = k / 8;
    const int dense = k / 4 % 2, elements = dense ? words : 1;
    const MPI_Datatype type = dense ? MPI_INT : gaps;
    const int source = k / 2 % 2 ? MPI_ANY_SOURCE : from;
    MPI_Request r;
    if (plans) MPI_Recv_init(got, elements, type, source, 5, MPI_COMM_WORLD, &r);
    else MPI_Irecv(got, elements, type, source, 5, MPI_COMM_WORLD, &r);
    /* Taken back, by its next start as well, and, at the third, met before. */
    for (int start = 0; start < (plans ? 3 : 1); ++start) {
      const int met = start == 2;
      MPI_Request sent = MPI_REQUEST_NULL;
      MPI_Status status;
      memset(&status, 0xa5, sizeof status);
      memset(got, -1, sizeof got);
      if (plans) MPI_Start(&r);
      if (met) MPI_Send(given, words, MPI_INT, to, 5, MPI_COMM_WORLD);
      flag = 0;
      if (met)
        while (!flag) MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
      MPI_Cancel(&r);
      const double begin = now();
      for (flag = 0; !flag && now() < begin + 10;) MPI_Request_get_status(r, &flag, &status);
      REQUIRE(flag, "receive %d, start %d: it stays", k, start);
      if (way == 0) MPI_Wait(&r, &status);
      if (way == 1) MPI_Test(&r, &flag, &status);
      if (way == 2) MPI_Waitall(1, &r, &status);
      if (way == 3) MPI_Testall(1, &r, &flag, &status);
      if (way == 4) MPI_Waitany(1, &r, &index, &status);
      if (way == 5) MPI_Testany(1, &r, &index, &flag, &status);
      if (way == 6) MPI_Testsome(1, &r, &some, &index, &status);
      MPI_Test_cancelled(&status, &is_cancelled);
      MPI_Get_count(&status, MPI_INT, &count);
      REQUIRE(is_cancelled == !met && (!met || count == words), "receive %d, start %d", k, start);
      REQUIRE(got[0] == (met ? 1 : -1), "receive %d, start %d: element %d", k, start, got[0]);
      if (met) continue;
      /* The message is another receive's. */
      MPI_Isend(given, words, MPI_INT, to, 5, MPI_COMM_WORLD, &sent);
      MPI_Recv(got, elements, type, from, 5, MPI_COMM_WORLD, &status);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
      REQUIRE(got[0] == 1);
    }
    REQUIRE((r != MPI_REQUEST_NULL) == plans);
    if (plans) MPI_Request_free(&r);
  }
  MPI_Type_free(&gaps);
  return 1;
}

/* ---- rank 0 looks at requests of ours alone, while all others need the host's part of it */

static int looks(void) {
  int good = 1, flag = 0, index, some = 0, token = 7, value[2] = {0}, indices[2];
  static char big[2][1 << 20];
  for (int how = 0; how < 5; ++how) {
    MPI_Request barrier, r[3];
    MPI_Status status;
    memset(big[0], rank + how, sizeof big[0]);
    MPI_Irecv(big[1], sizeof big[1], MPI_CHAR, from, how, of_host, &r[0]);
    MPI_Isend(big[0], sizeof big[0], MPI_CHAR, to, how, of_host, &r[1]);
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (rank == 0) {
      MPI_Request ours[2];
      MPI_Irecv(&value[0], 1, MPI_INT, size - 1, 50 + how, MPI_COMM_WORLD, &ours[0]);
      MPI_Irecv(&value[1], 1, MPI_INT, size - 1, 50 + how, MPI_COMM_WORLD, &ours[1]);
      for (flag = 0; !flag;) {
        if (how == 0) MPI_Test(&ours[0], &flag, &status);
        if (how == 1) MPI_Testall(2, ours, &flag, MPI_STATUSES_IGNORE);
        if (how == 2) MPI_Testany(2, ours, &index, &flag, &status);
        if (how == 3) MPI_Testsome(2, ours, &some, indices, MPI_STATUSES_IGNORE), flag = some > 0;
        if (how == 4) MPI_Iprobe(size - 1, 70, MPI_COMM_WORLD, &flag, &status);
      }
      MPI_Waitall(2, ours, MPI_STATUSES_IGNORE);
      if (how == 4) MPI_Recv(&value[0], 1, MPI_INT, size - 1, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Wait(&barrier, MPI_STATUS_IGNORE);
      MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
      for (int k = 0; k < 2 && rank == size - 1; ++k) MPI_Send(&token, 1, MPI_INT, 0, 50 + how, MPI_COMM_WORLD);
      if (how == 4 && rank == size - 1) MPI_Send(&token, 1, MPI_INT, 0, 70, MPI_COMM_WORLD);
    }
    if (rank == 0) {
      MPI_Wait(&barrier, MPI_STATUS_IGNORE);
      MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    for (size_t i = 0; i < sizeof big[1] && good; ++i) good &= big[1][i] == (char)(from + how);
    good &= CHECK(good);
  }
  return good;
}

static void with_a_twin(int (*run)(void)) {
  to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Comm_dup(MPI_COMM_WORLD, &of_host);
  set_nearfield(of_host, "off");
  CHECK(run());
  MPI_Comm_free(&of_host);
}
SCENARIO(requests_arrays) { with_a_twin(arrays); }
SCENARIO(requests_asked) { with_a_twin(asked); }
SCENARIO(requests_troubles) { with_a_twin(troubles); }
SCENARIO(requests_cancels) { with_a_twin(cancels); }
SCENARIO(requests_looks) { with_a_twin(looks); }
