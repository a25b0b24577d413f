// Creates and frees windows, and decides whether Nearfield or the host serves them, in these steps:
//
//   the communicator has a team      otherwise the host serves the window (several nodes, another world, a rank without
//                                    Nearfield)
//   the host makes a window          of the program's memory; for MPI_Win_allocate and _shared, of memory of ours. The
//                                    program uses its handle
//   the window gets its own team     so that its epochs do not match those of other windows
//   all ranks reach all its memory   otherwise the host serves it
//
// All ranks agree on each step. The windows that the host serves are counted: while there are any, ranks that wait in
// our calls progress the host in every round (law 3 of docs/dev/architecture.md). The count synchronises nothing.
#include <sys/statvfs.h>

#include <algorithm>

#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/blocking.hpp"
#include "mpi/shim/process/errors_returned.hpp"
#include "mpi/shim/process/hints.hpp"
#include "mpi/shim/rma/window.hpp"

namespace nearfield::mpi {

namespace {

using windows::Window;

// Returns false if the host lacks the large-count form and the unit does not fit its int form.
template <Function number>
bool unit_fits(MPI_Aint unit) {
  return !traits_of(number).large || host.*HostMember<number>::at || unit <= INT_MAX;
}

void leave_to_host(WhoseWindow why) {
  open_windows.fetch_add(1, std::memory_order_relaxed);
  count_window(why);
}
template <class Make>
int left_to_host(WhoseWindow why, Make make) {
  const int code = make();
  if (code == MPI_SUCCESS) leave_to_host(why);
  return code;
}

// Returns the communicator if its windows may be ours, which is the same on all ranks; else nullptr.
Communicator* with_windows(MPI_Comm comm) {
  Communicator* const c =
      admit(CalledFunction<collectives::Collective::barrier, Form::window>::facts, comm).communicator;
  return c && c->team && !broken_off(*c) ? c : nullptr;
}

bool in_several_threads() {
  int level = MPI_THREAD_SINGLE;
  host.Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE || threads_in_sessions.load(std::memory_order_relaxed);
}

// Collective: takes over a window of the host. Returns nullptr on all ranks if it stays the host's.
std::unique_ptr<OneSided> take_over(Communicator& c, MPI_Win win, Window::Lies lies, const windows::Memory& mine,
                                    std::span<const windows::Memory> known) {
  auto state = std::make_unique<OneSided>();
  state->win = win;
  auto team = separate_team(c);
  std::string why = "its ranks cannot share memory";
  if (team) state->window = Window::create(std::move(team), held_locks(), lies, mine, known, why);
  if (!state->window) {
    log_line(LogLevel::info, "the host serves a window of %d ranks: %s", c.size, why.c_str());
    return nullptr;
  }
  count_window(WhoseWindow::ours);
  state->window->several_threads = in_several_threads();
  host.Comm_group(c.comm, &state->group);
  return state;
}

// Creates a window: by body(communicator) if it may be ours, else by `make`, which calls the host. Running out of
// memory in the body is an error, since ranks can no longer agree to leave the window to the host.
template <Function number, class Make, class Body>
int creating(MPI_Comm comm, MPI_Aint unit, Make make, Body body) {
  if (!unit_fits<number>(unit)) return raise_too_large(number, comm);
  Communicator* const c = with_windows(comm);
  if (!c) return left_to_host(WhoseWindow::communicator, make);
  return with_memory(*c, name_of(number), [&]() -> int {
    try {
      c->leaving.settle();
      return body(*c);
    } catch (const team::Broken& broken) {
      return raise(comm, name_of(number), broken);
    }
  });
}

// Collective: takes over a window of the host, or leaves it to the host.
int take_over_hosts(Communicator& c, MPI_Win win, const windows::Memory& mine) {
  const bool own = c.size == 1;  // no other rank has to reach the memory
  auto state = take_over(c, win, own ? Window::Lies::known : Window::Lies::anywhere, mine, {&mine, own ? 1u : 0u});
  if (state) adopt(std::move(state));
  else leave_to_host(WhoseWindow::reach);
  return MPI_SUCCESS;
}

template <Function number, class Unit>
int create(void* base, MPI_Aint size, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const auto make = [&] { return blocking_at_host<number>(base, size, unit, info, comm, win); };
  return creating<number>(comm, unit, make, [&](Communicator& c) -> int {
    if (const int code = make(); code != MPI_SUCCESS) return code;
    return take_over_hosts(c, *win, {static_cast<std::byte*>(base), std::uint64_t(size), std::uint64_t(unit)});
  });
}

// Allocates memory for a window in our segment, placed as hinted, zeroed. Returns its offset; 0: no memory is needed.
Result<std::size_t> allocate_in_segment(MPI_Aint size, std::size_t align, const memory::Wish* wish) {
  if (size <= 0) return std::size_t{0};
  return process()->arena().allocate_untouched(std::size_t(size), align, memory::Component::windows, wish, true);
}

// Whether a rank has the memory for a window. `forced`: it lacks memory that its hint demands, which is an error on all
// ranks.
enum class Ready : std::uint8_t { yes, no, forced };

// Collective: returns the worst value of all members.
Ready agree(context::CollectiveContext& context, Ready ours) {
  const std::uint64_t seq = context.slots.allgather(&ours, sizeof ours);
  Ready worst = ours;
  for (int m = 0; m < context.size(); ++m) worst = std::max(worst, context.slots.get<Ready>(m, seq));
  return worst;
}

// Collective: makes a window of the host over our memory and takes it over. Returns nullptr on all ranks if that fails.
std::unique_ptr<OneSided> make_of_own_memory(Communicator& c, MPI_Info info, MPI_Win* win, MadeOf made,
                                             const windows::Memory& mine, std::span<const windows::Memory> known) {
  // This may fail: a host that cannot access other processes' memory makes windows only of memory that it allocates.
  int code;
  {
    const ErrorsReturned errors(c.comm);
    code = blocking_at_host<Function::Win_create>(mine.base, MPI_Aint(mine.bytes), int(mine.unit), info, c.comm, win);
  }
  const auto unmake = [&] { blocking_at_host<Function::Win_free>(win); };
  if (agree(c.team->context(), code == MPI_SUCCESS ? Ready::yes : Ready::no) != Ready::yes) {
    if (code == MPI_SUCCESS) unmake();
    return nullptr;
  }
  const Window::Lies lies = known.empty() ? Window::Lies::in_segment : Window::Lies::known;
  auto state = take_over(c, *win, lies, mine, known);
  if (state) state->made_of = made;
  else unmake();
  return state;
}

template <Function number, class Unit>
int allocate(MPI_Aint size, Unit given, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  constexpr const char* name = name_of(number);
  const MPI_Aint unit = given;
  const auto make = [&] { return blocking_at_host<number>(size, given, info, comm, base, win); };
  return creating<number>(comm, unit, make, [&](Communicator& c) -> int {
    const auto wish = placement_hint(info);
    const memory::Wish* const own = wish && *wish ? &**wish : nullptr;
    const memory::Wish* const asked = own ? own : process()->placer().wish(memory::Component::windows);
    // Only this rank uses the memory, so a child of fork() must get a copy of it, as of other memory of the program.
    if (c.size == 1 && wish && !asked) {
      if (const int code = make(); code != MPI_SUCCESS) return code;
      return take_over_hosts(c, *win, {*static_cast<std::byte**>(base), std::uint64_t(size), std::uint64_t(unit)});
    }
    const auto allocation = allocate_in_segment(size, alignment_hint(info), own);
    Ready ready = Ready::no;
    if (!wish || (!allocation && asked && asked->forced)) ready = Ready::forced;
    else if (size >= 0 && allocation && unit > 0 && unit <= INT_MAX && base && win) ready = Ready::yes;
    const auto give_back = [&] {
      if (allocation && *allocation) process()->arena().free(*allocation);
    };
    const Ready all = agree(c.team->context(), ready);
    if (all != Ready::yes) give_back();
    if (all == Ready::no) return left_to_host(WhoseWindow::reach, make);
    if (all == Ready::forced) {
      if (!wish) return raise(comm, name, wish.error().text.c_str(), MPI_ERR_INFO_VALUE);
      return raise(
          comm, name,
          allocation ? "a rank did not get the memory that its hint demands (forced)" : allocation.error().text.c_str(),
          MPI_ERR_NO_MEM);
    }
    std::byte* const memory = *allocation ? process()->segment().base() + *allocation : nullptr;
    auto state =
        make_of_own_memory(c, info, win, MadeOf::allocated, {memory, std::uint64_t(size), std::uint64_t(unit)}, {});
    if (!state) {
      give_back();
      return left_to_host(WhoseWindow::reach, make);
    }
    state->allocation = *allocation;
    *static_cast<void**>(base) = memory;
    adopt(std::move(state));
    return MPI_SUCCESS;
  });
}

// Places this rank's part of the host's memory as the hint or NEARFIELD_MEMORY says, including the pages at both ends.
Ready place(const windows::Memory& memory, const memory::Wish* wish) {
  constexpr std::uintptr_t page = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.base) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory.base) + memory.bytes + page - 1) / page * page;
  if (!memory.bytes) return Ready::yes;
  auto* const at = reinterpret_cast<void*>(begin);
  return process()->placer().place(memory::Component::windows, at, end - begin, wish) ? Ready::yes : Ready::forced;
}

// Collective: makes a window of the host's memory, places each rank's part as wished, and takes it over if possible.
template <class HostCall>
int share_hosts_memory(const char* name, Communicator& c, MPI_Info info, MPI_Win* win, HostCall make) {
  if (const int code = make(); code != MPI_SUCCESS) return code;
  std::vector<windows::Memory> known(std::size_t(c.size));
  Ready ready = Ready::yes;
  for (int m = 0; m < c.size; ++m) {
    MPI_Aint bytes = 0;
    int unit = 1;
    void* at = nullptr;
    if (host.Win_shared_query(*win, m, &bytes, &unit, &at) != MPI_SUCCESS) ready = Ready::no;
    known[std::size_t(m)] = {static_cast<std::byte*>(at), std::uint64_t(bytes), std::uint64_t(unit)};
  }
  const windows::Memory& mine = known[std::size_t(c.rank)];
  const auto wish = placement_hint(info);
  if (!wish) ready = Ready::forced;
  else if (ready == Ready::yes) ready = place(mine, *wish ? &**wish : nullptr);
  const Ready all = agree(c.team->context(), ready);
  if (all == Ready::forced) {
    blocking_at_host<Function::Win_free>(win);
    if (!wish) return raise(c.comm, name, wish.error().text.c_str(), MPI_ERR_INFO_VALUE);
    return raise(c.comm, name, "a rank's memory cannot be placed where its hint demands (forced)", MPI_ERR_NO_MEM);
  }
  std::unique_ptr<OneSided> state;
  if (all == Ready::yes) state = take_over(c, *win, Window::Lies::known, mine, known);
  if (state) adopt(std::move(state));
  else leave_to_host(WhoseWindow::reach);
  return MPI_SUCCESS;
}

// A rank's part of a shared window. `offset`: where the whole window begins in the first rank's segment.
struct SharedPart {
  std::uint64_t bytes, unit, offset;
  std::uint64_t hosts_room;  // free memory of the host, as this rank sees it
  std::uint8_t takes_ours;   // its arguments are valid, and no placement is wished for its part
};

// Returns the free space of the file system that hosts allocate shared memory from. They do not check it: the program
// is killed when it touches memory that is missing (SIGBUS).
std::uint64_t room_of_host() {
  struct statvfs about {};
  return statvfs("/dev/shm", &about) ? ~std::uint64_t{0} : std::uint64_t(about.f_bavail) * about.f_frsize;
}

// Collective: returns all members' parts.
std::vector<SharedPart> exchange_parts(context::CollectiveContext& context, const SharedPart& ours) {
  std::vector<SharedPart> all(std::size_t(context.size()), ours);
  const std::uint64_t seq = context.slots.allgather(&ours, sizeof ours);
  for (int m = 0; m < context.size(); ++m) all[std::size_t(m)] = context.slots.get<SharedPart>(m, seq);
  return all;
}

// The host allocates the memory. If it lacks room, we do, in the first rank's segment: the parts are contiguous, as MPI
// requires unless a hint allows otherwise.
template <Function number, class Unit>
int allocate_shared(MPI_Aint size, Unit given, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  constexpr const char* name = name_of(number);
  const MPI_Aint unit = given;
  const auto make = [&] { return blocking_at_host<number>(size, given, info, comm, base, win); };
  return creating<number>(comm, unit, make, [&](Communicator& c) -> int {
    context::CollectiveContext& context = c.team->context();
    const auto wish = placement_hint(info);
    const bool placed = !wish || *wish || process()->placer().wish(memory::Component::windows);
    const bool good = size >= 0 && unit > 0 && unit <= INT_MAX && base && win;
    SharedPart mine{std::uint64_t(size), std::uint64_t(unit), 0, room_of_host(), good && !placed};
    const std::vector<SharedPart> parts = exchange_parts(context, mine);
    if (!std::ranges::all_of(parts, [](const SharedPart& part) { return part.takes_ours != 0; }))
      return share_hosts_memory(name, c, info, win, make);
    std::uint64_t total = 0;
    bool fits = true;
    for (const SharedPart& part : parts)
      fits &= !__builtin_add_overflow(total, part.bytes, &total) && total <= PTRDIFF_MAX;
    constexpr std::uint64_t spare = 1 << 20;  // for the host's own data
    if (!fits || total + total / 16 + spare <= parts[0].hosts_room) return share_hosts_memory(name, c, info, win, make);
    if (c.rank == 0) {
      constexpr std::size_t page = 4096;
      const auto offset = allocate_in_segment(MPI_Aint(total), std::max(alignment_hint(info), page), nullptr);
      if (offset) mine.offset = *offset;
    }
    const auto give_back = [&] {
      if (mine.offset) process()->arena().free(mine.offset);
    };
    const std::uint64_t offset = exchange_parts(context, mine)[0].offset;
    std::vector<windows::Memory> known;
    std::byte* at = offset ? c.team->segment_of(0) + offset : nullptr;
    for (const SharedPart& part : parts) {
      known.push_back({at, part.bytes, part.unit});
      if (at) at += part.bytes;
    }
    const windows::Memory& ours = known[std::size_t(c.rank)];
    std::unique_ptr<OneSided> state;
    if (offset || total == 0) state = make_of_own_memory(c, info, win, MadeOf::shared, ours, known);
    if (!state) {
      give_back();
      return share_hosts_memory(name, c, info, win, make);
    }
    state->allocation = mine.offset;
    *static_cast<void**>(base) = ours.base;
    adopt(std::move(state));
    return MPI_SUCCESS;
  });
}

}  // namespace

int Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create<Function::Win_create>(base, size, unit, info, comm, win);
}
int Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create<Function::Win_create_c>(base, size, unit, info, comm, win);
}
int Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate<Function::Win_allocate>(size, unit, info, comm, base, win);
}
int Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate<Function::Win_allocate_c>(size, unit, info, comm, base, win);
}
int Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate_shared<Function::Win_allocate_shared>(size, unit, info, comm, base, win);
}
int Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate_shared<Function::Win_allocate_shared_c>(size, unit, info, comm, base, win);
}
int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return left_to_host(WhoseWindow::dynamic,
                      [&] { return blocking_at_host<Function::Win_create_dynamic>(info, comm, win); });
}

int Win_free(MPI_Win* win) {
  constexpr const char* name = "MPI_Win_free";
  OneSided* const ours = win ? one_sided(*win) : nullptr;
  if (!ours) {
    const int code = blocking_at_host<Function::Win_free>(win);
    if (code == MPI_SUCCESS) open_windows.fetch_sub(1, std::memory_order_relaxed);
    return code;
  }
  if (!ours->window->idle()) {
    if (abi::refuses_to_free_in_epochs) return raise_on(*win, name, "an epoch of the window is open", MPI_ERR_RMA_SYNC);
    const int code = on_window(*win, name, [&] { return ours->window->end_epochs(), MPI_SUCCESS; });
    if (code != MPI_SUCCESS) return code;
  }
  // When all ranks have called MPI_Win_free, no rank accesses our memory any more.
  const int met = on_window(*win, name, [&] {
    ours->window->meet();
    return MPI_SUCCESS;
  });
  if (met != MPI_SUCCESS) return met;
  const Freeing freeing(ours);
  std::unique_ptr<OneSided> state = disown(*win);
  const int code = blocking_at_host<Function::Win_free>(win);
  if (code != MPI_SUCCESS) {
    adopt(std::move(state));
    return code;
  }
  if (state->allocation) process()->arena().free(state->allocation);
  host.Group_free(&state->group);
  Window::close(std::move(state->window));
  return MPI_SUCCESS;
}

}  // namespace nearfield::mpi
