// Synchronisation calls of windows (engine/windows/epochs.cpp). For windows of the host they block in the host, while
// the progress thread progresses our messages.
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/blocking.hpp"
#include "mpi/shim/rma/window.hpp"

namespace nearfield::mpi {

// Programs poll a window in loops until another rank has stored something. That rank may need progress of our messages
// or of the host, or our CPU.
const PerThread<unsigned> window_looks;
void note_look() {
  constexpr unsigned seldom = 256;
  if (++*window_looks % seldom != 0) [[likely]]
    return;
  poll_ours();
  progress_others();
}

namespace {

int out_of_order(MPI_Win win, const char* function, const char* text) {
  return raise_on(win, function, text, MPI_ERR_RMA_SYNC);
}

constexpr const char *in_epoch = "the window is in another epoch", *not_locked = "the target is not locked";

// Runs `body(window)`, which returns whether the open epochs permit the call. `otherwise`: the error text if not.
template <class Body>
int change(OneSided& state, const char* function, const char* otherwise, Body body) {
  return on_window(state.win, function,
                   [&] { return body(*state.window) ? MPI_SUCCESS : out_of_order(state.win, function, otherwise); });
}

bool names_member(const OneSided& state, int rank) { return rank >= 0 && rank < state.window->size(); }
// Some hosts do not check ranks.
int no_member(MPI_Win win, const char* function) {
  return raise_on(win, function, "the window has no such rank", MPI_ERR_RANK);
}

// Translates a group to ranks in the window. False: the group is invalid, or has members that are not in the window.
bool members_of(const OneSided& state, MPI_Group group, std::vector<int>& members) {
  int size = 0;
  if (host.Group_size(group, &size) != MPI_SUCCESS) return false;
  std::vector<int> ranks(std::size_t(size) + 1);
  for (int i = 0; i < size; ++i) ranks[std::size_t(i)] = i;
  members.resize(std::size_t(size) + 1);
  if (host.Group_translate_ranks(group, size, ranks.data(), state.group, members.data()) != MPI_SUCCESS) return false;
  members.resize(std::size_t(size));
  for (const int member : members)
    if (member == MPI_UNDEFINED) return false;
  return true;
}

}  // namespace

int Win_fence(int assertion, MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (!state) return blocking_at_host<Function::Win_fence>(assertion, win);
  constexpr int known = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
  if (assertion & ~known)
    if (const int code = blocking_at_host<Function::Win_fence>(assertion, win); code != MPI_SUCCESS) return code;
  const bool nothing_before = assertion & MPI_MODE_NOPRECEDE, nothing_after = assertion & MPI_MODE_NOSUCCEED;
  return change(*state, "MPI_Win_fence", in_epoch,
                [&](auto& window) { return window.fence(!nothing_after, !(nothing_before && nothing_after)); });
}

int Win_post(MPI_Group group, int assertion, MPI_Win win) {
  OneSided* const state = one_sided(win);
  std::vector<int> members;
  if (!state || !members_of(*state, group, members)) return host.Win_post(group, assertion, win);
  return change(*state, "MPI_Win_post", in_epoch,
                [&](auto& window) { return window.post(members, !(assertion & MPI_MODE_NOCHECK)); });
}

int Win_start(MPI_Group group, int assertion, MPI_Win win) {
  OneSided* const state = one_sided(win);
  std::vector<int> members;
  if (!state || !members_of(*state, group, members))
    return blocking_at_host<Function::Win_start>(group, assertion, win);
  return change(*state, "MPI_Win_start", in_epoch,
                [&](auto& window) { return window.start(members, !(assertion & MPI_MODE_NOCHECK)); });
}

int Win_complete(MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (!state) return blocking_at_host<Function::Win_complete>(win);
  return change(*state, "MPI_Win_complete", "nothing has been started", [](auto& window) { return window.complete(); });
}

int Win_wait(MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (!state) return blocking_at_host<Function::Win_wait>(win);
  return change(*state, "MPI_Win_wait", "nothing has been posted", [](auto& window) { return window.wait(); });
}

int Win_test(MPI_Win win, int* flag) {
  OneSided* const state = one_sided(win);
  if (!state || !flag) {
    poll_ours();
    return host.Win_test(win, flag);
  }
  return change(*state, "MPI_Win_test", "nothing has been posted", [&](auto& window) {
    bool done = false;
    const bool posted = window.test(done);
    *flag = done;
    if (!done) progress_others();
    return posted;
  });
}

int Win_lock(int type, int rank, int assertion, MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (state && rank == MPI_PROC_NULL) return MPI_SUCCESS;
  const bool good = type == MPI_LOCK_EXCLUSIVE || type == MPI_LOCK_SHARED;
  if (!state || !good) return blocking_at_host<Function::Win_lock>(type, rank, assertion, win);
  if (!names_member(*state, rank)) return no_member(win, "MPI_Win_lock");
  return change(*state, "MPI_Win_lock", in_epoch, [&](auto& window) {
    return window.lock(rank, type == MPI_LOCK_EXCLUSIVE, !(assertion & MPI_MODE_NOCHECK));
  });
}

int Win_unlock(int rank, MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (state && rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!state) return blocking_at_host<Function::Win_unlock>(rank, win);
  if (!names_member(*state, rank)) return no_member(win, "MPI_Win_unlock");
  note_look();
  return change(*state, "MPI_Win_unlock", not_locked, [&](auto& window) { return window.unlock(rank); });
}

int Win_lock_all(int assertion, MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (!state) return blocking_at_host<Function::Win_lock_all>(assertion, win);
  return change(*state, "MPI_Win_lock_all", in_epoch,
                [&](auto& window) { return window.lock_all(!(assertion & MPI_MODE_NOCHECK)); });
}

int Win_unlock_all(MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (!state) return blocking_at_host<Function::Win_unlock_all>(win);
  note_look();
  return change(*state, "MPI_Win_unlock_all", "the window is not locked",
                [](auto& window) { return window.unlock_all(); });
}

namespace {

// All four flushes. Operations are complete at the origin on return; this memory fence makes them visible to all ranks.
template <Function number>
int flush(int rank, MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (state && rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!state) return blocking_at_host<number>(rank, win);
  if (!names_member(*state, rank)) return no_member(win, name_of(number));
  if (!state->window->passive(rank)) return out_of_order(win, name_of(number), not_locked);
  windows::Window::flush();
  note_look();
  return MPI_SUCCESS;
}
template <Function number>
int flush_all(MPI_Win win) {
  OneSided* const state = one_sided(win);
  if (!state) return blocking_at_host<number>(win);
  if (!state->window->passive()) return out_of_order(win, name_of(number), not_locked);
  windows::Window::flush();
  note_look();
  return MPI_SUCCESS;
}

}  // namespace

int Win_flush(int rank, MPI_Win win) { return flush<Function::Win_flush>(rank, win); }
int Win_flush_local(int rank, MPI_Win win) { return flush<Function::Win_flush_local>(rank, win); }
int Win_flush_all(MPI_Win win) { return flush_all<Function::Win_flush_all>(win); }
int Win_flush_local_all(MPI_Win win) { return flush_all<Function::Win_flush_local_all>(win); }

int Win_sync(MPI_Win win) {
  if (!one_sided(win)) return host.Win_sync(win);
  windows::Window::flush();
  note_look();
  return MPI_SUCCESS;
}

// Returns the flavour of the window if the program made it otherwise than we had the host make it; else nullptr.
static int* own_flavor(MPI_Win win, int key) {
  if (key != MPI_WIN_CREATE_FLAVOR) return nullptr;
  const OneSided* state = one_sided(win);
  if (!state && inside->being_freed && inside->being_freed->win == win) state = inside->being_freed;
  if (!state || state->made_of == MadeOf::memory) return nullptr;
  // Attributes are pointers, so these variables must exist for ever.
  static constinit int allocated = MPI_WIN_FLAVOR_ALLOCATE, shared = MPI_WIN_FLAVOR_SHARED;
  return state->made_of == MadeOf::shared ? &shared : &allocated;
}

int Win_get_attr(MPI_Win win, int key, void* value, int* flag) {
  int* const flavor = own_flavor(win, key);
  if (!flavor || !value || !flag) return host.Win_get_attr(win, key, value, flag);
  *static_cast<int**>(value) = flavor;
  *flag = 1;
  return MPI_SUCCESS;
}

int I_Win_get_attr(MPI_Win win, int key, void* value, int* flag, int kind) {
  const int code = host.I_Win_get_attr(win, key, value, flag, kind);
  constexpr int of_fortran = MPI_WIN_CREATE_FLAVOR + 1, integer = 3;  // the other kinds are as wide as a pointer
  int* const flavor = own_flavor(win, key == of_fortran ? MPI_WIN_CREATE_FLAVOR : key);
  if (code != MPI_SUCCESS || !*flag || !flavor) return code;
  if (key != of_fortran) *static_cast<int**>(value) = flavor;
  else if (kind == integer) *static_cast<int*>(value) = *flavor;
  else *static_cast<MPI_Aint*>(value) = *flavor;
  return code;
}

void mend_fortran_attribute(int win, int key, std::intptr_t* value) {
  if (!abi::fortran_reads_attributes || key != MPI_WIN_CREATE_FLAVOR) return;
  if (const int* const flavor = own_flavor(host.window_from_int(win), key)) *value = *flavor;
}

// Serves windows of our memory, of which all ranks' parts are mapped here (MPI 4.1). MPI_PROC_NULL: the first rank that
// has any.
int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* unit, void* base) {
  OneSided* const state = one_sided(win);
  if (!state || state->made_of == MadeOf::memory || !size || !unit || !base ||
      (rank != MPI_PROC_NULL && !names_member(*state, rank)))
    return host.Win_shared_query(win, rank, size, unit, base);
  const windows::Window& window = *state->window;
  for (int m = 0; rank == MPI_PROC_NULL && m < window.size(); ++m)
    if (window.memory(m).bytes) rank = m;
  const windows::Memory memory = rank == MPI_PROC_NULL ? windows::Memory{} : window.memory(rank);
  *size = MPI_Aint(memory.bytes);
  *unit = int(memory.unit);
  *static_cast<void**>(base) = memory.base;
  return MPI_SUCCESS;
}
int Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* unit, void* base) {
  int narrow_unit = 1;
  if (host.Win_shared_query_c && !one_sided(win)) return host.Win_shared_query_c(win, rank, size, unit, base);
  const int code = Win_shared_query(win, rank, size, &narrow_unit, base);
  if (code == MPI_SUCCESS && unit) *unit = narrow_unit;
  return code;
}

}  // namespace nearfield::mpi
