#include "mpi/shim/communicators/bootstrap.hpp"

#include <cstring>
#include <vector>

#include "engine/base/yield.hpp"
#include "engine/context/context.hpp"
#include "mpi/shim/communicators/presence.hpp"

namespace nearfield::mpi {

bool HostBootstrap::allgather(const void* mine, void* all, std::size_t bytes) {
  MPI_Request request;
  return host.Iallgather(mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE, comm_, &request) == MPI_SUCCESS &&
         finish(request);
}

std::uint32_t HostBootstrap::all_and(std::uint32_t bits) {
  std::uint32_t all = 0;
  MPI_Request request;
  const bool done =
      host.Iallreduce(&bits, &all, 1, MPI_UINT32_T, MPI_BAND, comm_, &request) == MPI_SUCCESS && finish(request);
  return done ? all : 0;
}

void HostBootstrap::idle() {
  if (team::Process* const process = process_ever()) process->progress().turn();
  yield();
}

// Reports members of `comm` that this rank has waited for `elapsed` nanoseconds.
void HostBootstrap::look_for_late(std::uint64_t elapsed, bool& reported) const {
  int rank = 0, size = 0;
  host.Comm_rank(comm_, &rank);
  host.Comm_size(comm_, &size);
  if (comm_ == host.world && !the_messenger) look_for_absentees(rank, size, elapsed);
  if (const team::Process* const process = process_ever(); process && process->hang_reporter()) {
    hang_report::Awaited others;
    const std::vector<int> near = members_near(comm_);
    for (int r = 0; r < int(near.size()); ++r)
      if (r != rank && near[std::size_t(r)] >= 0) others.add(near[std::size_t(r)]);
    return process->hang_reporter()->waits(elapsed, others);
  }
  const double limit = process_ever() ? process_ever()->settings().stall_seconds * 1e9 : 0;
  if (reported || limit <= 0 || double(elapsed) < limit) return;
  reported = true;
  log_line(LogLevel::error,
           "rank %d of %d has waited %.0f s for other ranks, in the first collective call of a communicator", rank,
           size, limit * 1e-9);
}

bool HostBootstrap::finish(MPI_Request& request) {
  int code = MPI_SUCCESS, done = 0;
  bool reported = false;
  waiting::Waiter waiter = host_waiter();
  // Sets how the wait goes on once it is long: it progresses the host seldom, so that it can sleep between polls.
  const auto inspect = [&](std::uint64_t elapsed) {
    waiter.host = waiting::HostStep::by_flag_seldom;
    look_for_late(elapsed, reported);
  };
  waiter.inspect = inspect;
  waiter.longest_nap = 2'000'000;
  wait_in_host([&] { return (code = host.Test(&request, &done, MPI_STATUS_IGNORE)) != MPI_SUCCESS || done; }, waiter);
  return code == MPI_SUCCESS;
}

bool TeamBootstrap::allgather(const void* mine, void* all, std::size_t bytes) try {
  context::CollectiveContext& context = team_.context();
  const std::uint64_t seq = context.slots.allgather(mine, bytes);
  for (int member = 0; member < team_.size(); ++member)
    std::memcpy(static_cast<std::byte*>(all) + std::size_t(member) * bytes, context.slots.at(member, seq), bytes);
  return true;
} catch (const team::Broken& broken) {
  team_.break_off(broken.what());  // for the others
  return false;
}

std::uint32_t TeamBootstrap::all_and(std::uint32_t bits) {
  std::vector<std::uint32_t> each(std::size_t(team_.size()));
  if (!allgather(&bits, each.data(), sizeof bits)) return 0;
  for (const std::uint32_t theirs : each) bits &= theirs;
  return bits;
}

}  // namespace nearfield::mpi
