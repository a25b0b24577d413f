// Collectives that return before they are done, and those that are planned and then started. Who carries one is decided
// as for the calls that return when they are done, equally on all ranks; the engine keeps those of a communicator in
// order (engine/context/pool.hpp).
//
//   issued   by the call, as the next one of the communicator
//   planned  by the call, which meets the other members: it gets a context of its own; issued to that by each start
//
// Operations outlive their communicator as requests do elsewhere: its team is closed when the last has gone.
#include "engine/choosing/overlapping.hpp"
#include "engine/base/out_of_memory.hpp"

#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/collectives/intercomm/across.hpp"
#include "mpi/shim/collectives/single/alone.hpp"
#include "mpi/shim/process/at_host.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {
namespace {

using collectives::Call;

// This rank cannot do its part of what others are in. An error class.
int break_off(team::Team& team, const char* function) try {
  team.break_off("out of memory", std::string("in ") + function);
} catch (const team::Broken& broken) {
  log_line(LogLevel::error, "%s: %s", function, broken.what());
  return MPI_ERR_NO_MEM;
}

// What is under way, or may be started again.
class Issued : public Activity {
 public:
  Issued(team::Team& team, const char* function, std::unique_ptr<choosing::CollectiveTask> pending,
         std::unique_ptr<StagingBuffers> kept)
      : team_(team), function_(function), kept_(std::move(kept)), pending_(std::move(pending)) {
    team.users.fetch_add(1, std::memory_order_relaxed);
  }
  // What is under way cannot be taken back, since others are in it: what it needs then stays for good.
  ~Issued() override {
    if (!under_way()) return;
    static_cast<void>(pending_.release());
    static_cast<void>(kept_.release());
  }
  // A member that cannot is out of step with the others, which would wait for it.
  int begin() override {
    settled_ = false;
    try {
      if (kept_ && kept_->fetch() != MPI_SUCCESS) throw OutOfMemory();
      issue(*pending_);
      issued_ = true;
      return MPI_SUCCESS;
    } catch (const OutOfMemory&) {
      return break_off(team_, function_);
    }
  }
  bool completed() override { return pending_->complete() || (the_runner->poll(), pending_->complete()); }
  bool finished() const override { return pending_->complete(); }
  int outcome() override {
    if (!pending_->complete()) return MPI_ERR_OTHER;  // given up by who waited for it
    if (!std::exchange(settled_, true)) code_ = settle();
    return code_;
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}                           // goes on, and may be waited for again
  bool involves(int) const override { return false; }  // its body looks for dead members itself

 protected:
  virtual void issue(choosing::CollectiveTask& pending) = 0;
  bool under_way() const { return issued_ && !pending_->complete(); }
  team::Team& team_;

 private:
  int settle() {
    if (const auto& error = pending_->error()) return class_of(error);
    return kept_ ? kept_->store() : MPI_SUCCESS;
  }
  int class_of(const std::exception_ptr& error) const try {
    std::rethrow_exception(error);
  } catch (const team::Truncated& truncated) {
    log_line(LogLevel::error, "%s: %s", function_, truncated.what());
    return MPI_ERR_TRUNCATE;
  } catch (const team::Broken& broken) {
    return class_and_text(function_, broken);
  } catch (const OutOfMemory&) {
    log_line(LogLevel::error, "%s: out of memory", function_);
    return MPI_ERR_NO_MEM;
  }
  const char* const function_;
  std::unique_ptr<StagingBuffers> kept_;
  std::unique_ptr<choosing::CollectiveTask> pending_;
  bool issued_ = false, settled_ = false;
  int code_ = MPI_SUCCESS;
};

class Once final : public Issued {
 public:
  using Issued::Issued;
  ~Once() override {
    if (!under_way()) let_go(team_);
  }

 private:
  void issue(choosing::CollectiveTask& pending) override {
    static_cast<choosing::Overlapping&>(pending).prepare(team_);
    team_.contexts().issue(pending);
  }
};

// In the queue of a communicator that is yet to have its team.
class Deferred final : public Activity, AsyncCreation::Deferred {
 public:
  Deferred(Communicator& c, const char* function, std::unique_ptr<choosing::Overlapping> pending,
           std::unique_ptr<StagingBuffers> kept, CallOfHost host_call)
      : creation_(c.async_creation),
        state_(c),
        function_(function),
        pending_(std::move(pending)),
        kept_(std::move(kept)),
        host_call_(std::move(host_call)) {}
  ~Deferred() override {
    if (!gone()) creation_->forget(*this);
    if (at_host_ != host.request_null) host.Request_free(&at_host_);
  }
  int begin() override {
    if (!creation_->defer(*this)) go(state_.team.get());
    return gone() && !once_ ? code_ : MPI_SUCCESS;
  }
  bool completed() override {
    if (!gone() && !(the_runner->poll(), gone())) return false;
    if (once_) return code_ != MPI_SUCCESS || once_->completed();
    if (at_host_ == host.request_null) return true;
    int there = 0;
    code_ = host.Test(&at_host_, &there, MPI_STATUS_IGNORE);
    return code_ != MPI_SUCCESS || there;
  }
  int outcome() override {
    if (!gone()) return MPI_ERR_OTHER;  // given up by who waited for it
    creation_->let_all_go();
    if (!once_) return code_ == MPI_SUCCESS ? code_ : raised_by_host(code_);
    return code_ != MPI_SUCCESS ? code_ : once_->outcome();
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}
  bool involves(int member) const override { return !gone() && creation_->involves(member); }

 private:
  bool gone() const { return gone_.load(std::memory_order_acquire); }  // pairs with go
  void go(team::Team* team) override {
    if (team) try {
        once_ = std::make_unique<Once>(*team, function_, std::move(pending_), std::move(kept_));
        code_ = once_->begin();
      } catch (const OutOfMemory&) {
        code_ = break_off(*team, function_);
      }
    else code_ = host_call_(&at_host_);
    gone_.store(true, std::memory_order_release);  // pairs with gone
  }
  const std::shared_ptr<AsyncCreation> creation_;
  Communicator& state_;  // not once it has gone
  const char* const function_;
  std::unique_ptr<choosing::Overlapping> pending_;
  std::unique_ptr<StagingBuffers> kept_;
  const CallOfHost host_call_;
  std::unique_ptr<Once> once_;
  MPI_Request at_host_ = host.request_null;
  int code_ = MPI_SUCCESS;
  std::atomic<bool> gone_{false};
};

class AgainAndAgain final : public Issued {
 public:
  AgainAndAgain(team::Team& team, const char* function, std::unique_ptr<choosing::CollectiveTask> pending,
                std::unique_ptr<StagingBuffers> kept, unsigned context)
      : Issued(team, function, std::move(pending), std::move(kept)), context_(context) {}
  ~AgainAndAgain() override {
    if (under_way()) return;
    team_.contexts().let_go(context_);
    let_go(team_);
  }

 private:
  void issue(choosing::CollectiveTask& pending) override { team_.contexts().issue_to(context_, pending); }
  const unsigned context_;
};

void refuse_broken(Communicator& c, const char* function) {
  if (broken_off(c)) [[unlikely]]
    c.team->break_off("the communicator was given up when a rank could not go on", std::string("in ") + function);
}

void count(const Call& call) {
  *last_algorithm = "overlapping";
  if (counting()) [[unlikely]]
    count_call(call.collective, call.bytes, waiting::nanoseconds());
}

}  // namespace

int overlap(Communicator& c, MPI_Comm comm, const Call& call, const char* function,
            std::unique_ptr<StagingBuffers> kept, MPI_Request* request, const Call& counted) {
  return guarded(comm, function, [&]() -> int {
    refuse_broken(c, function);
    count(counted);
    return with_memory(c, comm, function, [&]() -> int {
      auto pending = std::make_unique<choosing::Overlapping>(call, c.further);
      pending->keep_parts(c.size);
      auto made = std::make_unique<Once>(*c.team, function, std::move(pending), std::move(kept));
      return report(comm, make_request(comm, std::move(made), false, request));
    });
  });
}

int defer(Communicator& c, MPI_Comm comm, const Call& call, const char* function, std::unique_ptr<StagingBuffers> kept,
          MPI_Request* request, const Call& counted, CallOfHost host_call) {
  return guarded(comm, function, [&]() -> int {
    return with_memory(c, comm, function, [&]() -> int {
      count(counted);
      auto pending = std::make_unique<choosing::Overlapping>(call, c.further);
      pending->keep_parts(c.size);
      auto made = std::make_unique<Deferred>(c, function, std::move(pending), std::move(kept), std::move(host_call));
      return report(comm, make_request(comm, std::move(made), false, request));
    });
  });
}

std::optional<int> plan(Communicator& c, MPI_Comm comm, const Call& call, const char* function,
                        std::unique_ptr<StagingBuffers> kept, MPI_Request* request, const Call& counted) {
  bool possible = true;
  const int code = guarded(comm, function, [&]() -> int {
    refuse_broken(c, function);
    return with_memory(c, comm, function, [&]() -> int {
      c.leaving.settle(c.team->context());
      const bool moves = call.bytes || collectives::operation(call.collective).moves_nothing();
      const auto rows = moves ? c.chooser->rows_for(call) : choosing::Chooser::Rows{};
      const auto context = rows.row || !moves ? c.team->contexts().reserve() : std::nullopt;
      possible = context.has_value();
      if (!possible) return MPI_SUCCESS;
      count(counted);
      auto pending = std::make_unique<choosing::PersistentTask>(call, rows);
      pending->keep_parts(c.size);
      auto made = std::make_unique<AgainAndAgain>(*c.team, function, std::move(pending), std::move(kept), *context);
      return report(comm, make_request(comm, std::move(made), true, request));
    });
  });
  if (!possible) return std::nullopt;
  return code;
}

// ---------------------------------------------------------------- barriers

namespace {
template <class When>
int barrier(const char* function, const When& when, MPI_Comm comm) {
  constexpr Collective collective = Collective::barrier;
  if (find_alone(comm)) return alone::serve(collective, function, when, alone::kept(&collective, 0, host.byte), comm);
  if (find_across(comm)) return across::barrier(function, when, comm);
  const Admission admitted = when.admit(comm);
  if (!admitted.communicator) return when.at_host(collective, admitted.reason);
  return begin(*admitted.communicator, comm, Call{collective}, function, nullptr, when);
}
}  // namespace

int Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return barrier("MPI_Ibarrier", Nonblocking{[=](MPI_Request* made) { return host.Ibarrier(comm, made); }, request},
                 comm);
}
int Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  auto host_call = [&] { return at_host<Function::Barrier_init>(comm, info, request); };
  return barrier("MPI_Barrier_init", Persistent{host_call, request}, comm);
}

}  // namespace nearfield::mpi
