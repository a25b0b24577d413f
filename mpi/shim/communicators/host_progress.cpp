// Progress of the host in waits of ours: by a probe that finds nothing.
#include "engine/base/made.hpp"
#include "engine/processor/processor.h"
#include "engine/team/process.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/host_scope.hpp"

namespace nearfield::mpi {
namespace {

// The probe is on MPI_COMM_WORLD, since MPICH does not progress in probes of MPI_COMM_SELF, and for a tag that programs
// hardly use, since a probe that finds a message ends without progress.
void progress_host() {
  const PollsHost polls;
  int flag = 0;
  host.Iprobe(MPI_ANY_SOURCE, largest_tag, host.world, &flag, MPI_STATUS_IGNORE);
}

// Probes for any-source requests that this call does not wait for, but only now and then: a probe takes 300 ns, in
// which messages of this node are not seen.
const PerThread<std::uint64_t> next_look;  // ticks
bool look_now_and_then() {
  const std::uint64_t now = processor::ticks();
  if (now < *next_look) return true;
  const bool asked = look_for_any_source();
  *next_look = processor::ticks() + processor::ticks_in(2500);
  return asked;
}

// Progresses the host, and notices what only the host knows.
struct ProgressOfHost final : waiting::Foreign {
  void step() override {
    if (!any_source_requests.load(std::memory_order_relaxed) || !look_now_and_then()) progress_host();
    look_for_revoked();
  }
  bool needs_us() override;
};

bool ProgressOfHost::needs_us() {
  for (const auto* const count : {&open_windows, &any_source_requests, &transfers_under_way})
    if (count->load(std::memory_order_relaxed) > 0) return true;
  constexpr std::uint64_t lately = 1'000'000'000;
  static constinit std::atomic<std::uint32_t> known{0};
  static constinit std::atomic<std::uint64_t> until{0};  // nanoseconds
  const std::uint32_t seen = host_requests_seen.load(std::memory_order_relaxed);
  if (seen != known.load(std::memory_order_relaxed)) {
    known.store(seen, std::memory_order_relaxed);
    until.store(waiting::nanoseconds() + lately, std::memory_order_relaxed);
  }
  const std::uint64_t end = until.load(std::memory_order_relaxed);
  if (end && waiting::nanoseconds() > end) until.store(0, std::memory_order_relaxed);
  return end != 0;
}

}  // namespace

waiting::Foreign& progress_of_host() {
  static ProgressOfHost all;
  return all;
}

waiting::Waiter host_waiter() {
  static constexpr auto inform_hang_reporter = [](std::uint64_t elapsed) {
    if (process_ever() && process_ever()->hang_reporter()) process_ever()->hang_reporter()->waits(elapsed, {});
  };
  static constexpr auto look = [] {
    if (any_source_requests.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_any_source();
  };
  return {.others = process_ever() ? process_ever()->progress() : made<waiting::Progress>(),
          .inspect = inform_hang_reporter,
          .also = look,
          .host = waiting::HostStep::by_flag};
}

const waiting::Policy& wait_policy() {
  static const waiting::Policy before_any{};
  return process_ever() ? process_ever()->policy() : before_any;
}

void wait_ours(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also, const char* doing) {
  if (the_messenger) return the_messenger->wait_until(done, awaited, also, doing);
  waiting::Waiter waiter = host_waiter();
  waiter.also = also;
  waiter.host = waiting::HostStep::in_turns;
  waiter.longest_nap = also ? waiting::short_nap : ~std::uint64_t{0};
  waiting::wait_slowly(wait_policy(), done, waiter);
}

}  // namespace nearfield::mpi
