// Callbacks that never return: they throw through MPI, or jump out of it. Each is left three times, and messages and
// collectives go on afterwards. Arguments: throw, memory (throws std::bad_alloc) or longjmp, and the callbacks.
#include <mpi.h>
#include <setjmp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace {

struct Thrown {
  int number;
};

bool jumps, of_memory, armed;
jmp_buf back;
int rank, size, wrong;

// What all callbacks do.
void leave() {
  if (!armed) return;
  if (jumps) longjmp(back, 1);
  if (of_memory) throw std::bad_alloc();
  throw Thrown{42};
}

// Whether `call` has ended by leave().
template <class Call>
bool left(Call call) {
  volatile bool gone = false;
  armed = true;
  if (jumps) {
    if (setjmp(back) == 0) call();
    else gone = true;
  } else {
    try {
      call();
    } catch (const Thrown& thrown) {
      gone = thrown.number == 42;
    } catch (const std::bad_alloc&) {
      gone = of_memory;
    }
    if (std::uncaught_exceptions()) std::printf("rank %d: an exception counts as uncaught\n", rank), wrong = 1;
  }
  armed = false;
  return gone;
}

void on_comm(MPI_Comm*, int*, ...) { leave(); }
void on_win(MPI_Win*, int*, ...) { leave(); }
void on_file(MPI_File*, int*, ...) { leave(); }
int copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  leave();
  *flag = 0;
  return MPI_SUCCESS;
}
int let_go(MPI_Comm, int, void*, void*) {
  leave();
  return MPI_SUCCESS;
}
int copy_of_type(MPI_Datatype, int, void*, void*, void*, int* flag) {
  leave();
  *flag = 0;
  return MPI_SUCCESS;
}
int let_go_of_type(MPI_Datatype, int, void*, void*) {
  leave();
  return MPI_SUCCESS;
}
int let_go_of_win(MPI_Win, int, void*, void*) {
  leave();
  return MPI_SUCCESS;
}
void combine(void* in, void* inout, int* count, MPI_Datatype*) {
  leave();
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}
int query(void*, MPI_Status* status) {
  leave();
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
int freed(void*) { return MPI_SUCCESS; }
int free_leaves(void*) {
  leave();
  return MPI_SUCCESS;
}
int query_returns(void*, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
int cancelled(void*, int) {
  leave();
  return MPI_SUCCESS;
}

void expect(bool good, const char* what) {
  if (good) return;
  std::printf("rank %d: %s: wrong\n", rank, what);
  wrong = 1;
}

// Messages of three lengths, with everything that is needed for them to arrive, and a collective.
void go_on(MPI_Comm comm) {
  static char sent[300000], received[300000];
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (const int bytes : {8, 20000, 300000}) {
    std::memset(sent, rank + 1, sizeof sent);
    MPI_Request request;
    MPI_Irecv(received, bytes, MPI_BYTE, from, 7, comm, &request);
    MPI_Send(sent, bytes, MPI_BYTE, to, 7, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(received[0] == from + 1 && received[bytes - 1] == from + 1, "a message");
  }
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect(sum == size, "a sum");
  MPI_Barrier(comm);
}

template <class Set>
MPI_Errhandler handler(Set set) {
  MPI_Errhandler made;
  set(&made);
  return made;
}

struct Communicator {
  MPI_Comm comm;
  MPI_Errhandler made;
  Communicator() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(on_comm, &made);
    MPI_Comm_set_errhandler(comm, made);
  }
  ~Communicator() {
    MPI_Errhandler_free(&made);
    MPI_Comm_free(&comm);
  }
};

void run(const char* name) {
  const auto is = [&](const char* one) { return !std::strcmp(name, one); };
  int value = 1, other = 1;
  if (is("wrong-rank")) {
    Communicator on;
    expect(left([&] { MPI_Send(&value, 1, MPI_INT, size + 5, 0, on.comm); }), "send");
    expect(left([&] { MPI_Recv(&value, 1, MPI_INT, size + 5, 0, on.comm, MPI_STATUS_IGNORE); }), "receive");
    MPI_Request request = MPI_REQUEST_NULL;
    expect(left([&] { MPI_Isend(&value, 1, MPI_INT, size + 5, 0, on.comm, &request); }), "isend");
    expect(left([&] { MPI_Bcast(&value, 1, MPI_INT, size + 5, on.comm); }), "bcast");
    go_on(on.comm);
  } else if (is("called")) {
    Communicator on;
    expect(left([&] { MPI_Comm_call_errhandler(on.comm, MPI_ERR_OTHER); }), "call");
    go_on(on.comm);
  } else if (is("truncated")) {
    Communicator on;
    int two[2] = {rank, rank};
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Isend(two, 2, MPI_INT, to, 0, on.comm, &request);
    expect(left([&] { MPI_Recv(&value, 1, MPI_INT, from, 0, on.comm, MPI_STATUS_IGNORE); }), "receive");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(&value, 1, MPI_INT, from, 1, on.comm, &request);
    MPI_Send(two, 2, MPI_INT, to, 1, on.comm);
    expect(left([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); }), "wait");
    go_on(on.comm);
  } else if (is("blocking")) {
    Communicator on;
    MPI_Comm child;
    expect(left([&] { MPI_Intercomm_create(on.comm, size + 5, MPI_COMM_WORLD, 0, 0, &child); }), "create");
    go_on(on.comm);
  } else if (is("window")) {
    MPI_Win win;
    int* base;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Errhandler made = handler([](MPI_Errhandler* to) { MPI_Win_create_errhandler(on_win, to); });
    MPI_Win_set_errhandler(win, made);
    MPI_Win_lock_all(0, win);
    expect(left([&] { MPI_Put(&value, 1, MPI_INT, size + 5, 0, 1, MPI_INT, win); }), "put");
    expect(left([&] { MPI_Accumulate(&value, 1, MPI_INT, size + 5, 0, 1, MPI_INT, MPI_SUM, win); }), "accumulate");
    MPI_Win_unlock_all(win);
    expect(left([&] { MPI_Win_call_errhandler(win, MPI_ERR_OTHER); }), "call");
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    expect(*base == 1, "what was put");
    MPI_Errhandler_free(&made);
    MPI_Win_free(&win);
  } else if (is("file")) {
    MPI_Errhandler made = handler([](MPI_Errhandler* to) { MPI_File_create_errhandler(on_file, to); });
    MPI_File_set_errhandler(MPI_FILE_NULL, made);
    MPI_File file;
    expect(left([&] { MPI_File_open(MPI_COMM_SELF, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file); }),
           "open");
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&made);
  } else if (is("copy")) {
    Communicator on;
    int key;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    MPI_Comm_set_attr(on.comm, key, &value);
    MPI_Comm child;
    expect(left([&] { MPI_Comm_dup(on.comm, &child); }), "dup");
    MPI_Comm_delete_attr(on.comm, key);
    MPI_Comm_free_keyval(&key);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (is("delete")) {
    int key;
    MPI_Comm child;
    MPI_Comm_dup(MPI_COMM_WORLD, &child);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, let_go, &key, nullptr);
    MPI_Comm_set_attr(child, key, &value);
    expect(left([&] { MPI_Comm_delete_attr(child, key); }), "delete");
    go_on(child);
  } else if (is("free")) {
    int key;
    MPI_Comm child;
    MPI_Comm_dup(MPI_COMM_WORLD, &child);
    go_on(child);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, let_go, &key, nullptr);
    MPI_Comm_set_attr(child, key, &value);
    expect(left([&] { MPI_Comm_free(&child); }), "free");
  } else if (is("type")) {
    int key;
    MPI_Type_create_keyval(copy_of_type, let_go_of_type, &key, nullptr);
    MPI_Datatype type, twin;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, &value);
    expect(left([&] { MPI_Type_dup(type, &twin); }), "dup");
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, key, &value);
    expect(left([&] { MPI_Type_free(&type); }), "free");
  } else if (is("window-attribute")) {
    int key;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, let_go_of_win, &key, nullptr);
    MPI_Win win;
    int* base;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_attr(win, key, &value);
    expect(left([&] { MPI_Win_delete_attr(win, key); }), "delete");
    MPI_Win_fence(0, win);
  } else if (is("operator")) {
    MPI_Op op;
    MPI_Op_create(combine, 1, &op);
    expect(left([&] { MPI_Reduce_local(&value, &other, 1, MPI_INT, op); }), "locally");
    other = 1;
    MPI_Reduce_local(&value, &other, 1, MPI_INT, op);
    expect(other == 2, "once more");
    MPI_Op_free(&op);
  } else if (is("request")) {
    Communicator on;
    MPI_Request request, pair[2];
    MPI_Grequest_start(query, freed, cancelled, nullptr, &request);
    expect(left([&] { MPI_Cancel(&request); }), "cancel");
    MPI_Grequest_complete(request);
    expect(left([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); }), "wait");
    MPI_Grequest_start(query, freed, cancelled, nullptr, &request);
    MPI_Grequest_complete(request);
    int flag;
    expect(left([&] { MPI_Test(&request, &flag, MPI_STATUS_IGNORE); }), "test");
    MPI_Grequest_start(query, freed, cancelled, nullptr, &pair[0]);
    MPI_Grequest_complete(pair[0]);
    MPI_Irecv(&value, 1, MPI_INT, (rank + size - 1) % size, 3, on.comm, &pair[1]);
    MPI_Send(&other, 1, MPI_INT, (rank + 1) % size, 3, on.comm);
    expect(left([&] { MPI_Waitall(2, pair, MPI_STATUSES_IGNORE); }), "waitall");
    MPI_Grequest_start(query_returns, free_leaves, cancelled, nullptr, &request);
    MPI_Grequest_complete(request);
    expect(left([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); }), "free");
    go_on(MPI_COMM_WORLD);
  } else {
    expect(false, name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  jumps = argc > 1 && !std::strcmp(argv[1], "longjmp");
  of_memory = argc > 1 && !std::strcmp(argv[1], "memory");
  for (int i = 2; i < argc; ++i)
    for (int repeat = 0; repeat < 3; ++repeat) {
      run(argv[i]);
      go_on(MPI_COMM_WORLD);
    }
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) std::puts("good");
  MPI_Finalize();
  return any;
}
