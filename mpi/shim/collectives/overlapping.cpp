// Collectives that return before they are done: MPI_Ibarrier and MPI_Iallreduce. Who carries one is decided as for the
// calls that return when they are done, equally on all ranks; the engine keeps those of a communicator in order.
#include "engine/choosing/overlapping.hpp"
#include "mpi/shim/collectives/alone.hpp"
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/functions.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi {
namespace {

using collectives::Call;
using collectives::Collective;

class Started final : public Activity {
 public:
  Started(Communicator& state, const Call& call, const char* function)
      : team_(*state.team),
        function_(function),
        pending_(std::make_unique<choosing::Overlapping>(call, state.further)) {
    pending_->prepare(team_);
  }
  std::unique_ptr<devices::Stage> operands, result;  // of buffers on a device; in place the first is both
  bool in_place = false;

  // It cannot be taken back, since others are in it: what it needs then stays for good.
  ~Started() override {
    if (!issued_ || pending_->complete()) return;
    static_cast<void>(pending_.release());
    static_cast<void>(operands.release());
    static_cast<void>(result.release());
  }
  int begin() override {
    team_.tracks().issue(*pending_);
    issued_ = true;
    return MPI_SUCCESS;
  }
  bool completed() override { return pending_->complete() || (the_runner->poll(), pending_->complete()); }
  int outcome() override {
    if (!pending_->complete()) return MPI_ERR_OTHER;  // given up by who waited for it
    if (!std::exchange(settled_, true)) code_ = settle();
    return code_;
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}                           // goes on, and may be waited for again
  bool involves(int) const override { return false; }  // its body looks for dead members itself

 private:
  int settle() {
    if (const auto& error = pending_->error()) return class_of(error);
    devices::Stage* const to = in_place ? operands.get() : result.get();
    return to && !to->store(pending_->call().bytes) ? MPI_ERR_BUFFER : MPI_SUCCESS;
  }
  int class_of(const std::exception_ptr& error) const try {
    std::rethrow_exception(error);
  } catch (const team::Truncated& truncated) {
    log_line(LogLevel::error, "%s: %s", function_, truncated.what());
    return MPI_ERR_TRUNCATE;
  } catch (const team::Broken& broken) {
    return class_and_text(function_, broken);
  } catch (const std::bad_alloc&) {
    log_line(LogLevel::error, "%s: out of memory", function_);
    return MPI_ERR_NO_MEM;
  }
  team::Team& team_;
  const char* const function_;
  std::unique_ptr<choosing::Overlapping> pending_;
  bool issued_ = false, settled_ = false;
  int code_ = MPI_SUCCESS;
};

// Issues what `make` makes. A rank that cannot is out of step with the others, which would wait for it.
template <class Make>
int start(Communicator& c, MPI_Comm comm, const char* function, Collective collective, std::size_t bytes,
          MPI_Request* request, Make make) {
  if (broken_off(c)) [[unlikely]]
    c.team->break_off("the communicator was given up when a rank could not go on", std::string("in ") + function);
  if (stats_on) [[unlikely]] {
    Tally& t = tally(collective);
    t.calls.fetch_add(1, std::memory_order_relaxed);
    t.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  last_algorithm = "overlapping";
  return with_memory(c, comm, function, [&] { return report(comm, make_request(comm, make(), false, request)); });
}

}  // namespace

int Ibarrier(MPI_Comm comm, MPI_Request* request) {
  const auto host_call = [&] { return host.Ibarrier(comm, request); };
  if (request && find_alone(comm))
    return alone::completed(alone::finish(Collective::barrier, 0, alone::begin()), request);
  const Admission admitted = admit(comm);
  if (!admitted.communicator || !admitted.communicator->team || !request)
    return overlapping_host(Collective::barrier, admitted.reason, host_call);
  return guarded(comm, "MPI_Ibarrier", [&]() -> int {
    return start(*admitted.communicator, comm, "MPI_Ibarrier", Collective::barrier, 0, request, [&] {
      return std::make_unique<Started>(*admitted.communicator, Call{Collective::barrier}, "MPI_Ibarrier");
    });
  });
}

namespace {

template <class N, class HostCall>
int iallreduce(const void* send, void* recv, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request,
               HostCall host_call) {
  constexpr Collective collective = Collective::allreduce;
  if (request && find_alone(comm)) {
    const auto code = alone::reduce<collective>("MPI_Iallreduce", send, recv, count, type, op, comm);
    return code ? alone::completed(*code, request) : overlapping_host(collective, Reason::argument, host_call);
  }
  const Admission admitted = admit(comm);
  if (!admitted.communicator || !admitted.communicator->team || !request)
    return overlapping_host(collective, admitted.reason, host_call);
  Call call{collective};
  if (const auto reason = describe_reduction(call, MPI_Count(count), type, op))
    return overlapping_host(collective, *reason, host_call);
  const bool in_place = send == MPI_IN_PLACE;
  if (call.bytes && (!recv || (!in_place && (!send || (host_rejects_aliases && send == recv)))))
    return overlapping_host(collective, Reason::argument, host_call);
  if (call.bytes == 0 && !broken_off(*admitted.communicator)) {
    *request = common_send();  // complete
    return MPI_SUCCESS;
  }
  call.send = in_place ? recv : send;
  call.recv = recv;
  return guarded(comm, "MPI_Iallreduce", [&]() -> int {
    return start(*admitted.communicator, comm, "MPI_Iallreduce", collective, call.bytes, request, [&] {
      std::unique_ptr<devices::Stage> operands, result;
      if (devices::possible()) [[unlikely]] {
        layout::Data from{static_cast<std::byte*>(const_cast<void*>(call.send)), call.bytes, {}};
        layout::Data to{static_cast<std::byte*>(call.recv), call.bytes, {}};
        operands = devices::stage(from, true);
        if (call.send != call.recv) result = devices::stage(to, false);
        call.recv = call.send == call.recv ? from.address : to.address;
        call.send = from.address;
      }
      auto started = std::make_unique<Started>(*admitted.communicator, call, "MPI_Iallreduce");
      started->in_place = call.send == call.recv;
      started->operands = std::move(operands);
      started->result = std::move(result);
      return started;
    });
  });
}

}  // namespace

int Iallreduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q) {
  return iallreduce(s, r, n, t, op, c, q, [&] { return host.Iallreduce(s, r, n, t, op, c, q); });
}
int Iallreduce_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q) {
  return iallreduce(s, r, n, t, op, c, q, [&] {
    return large(host.Iallreduce_c, host.Iallreduce, "MPI_Iallreduce_c", c, s, r, n, t, op, c, q);
  });
}

}  // namespace nearfield::mpi
