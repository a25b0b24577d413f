#include "mpi/shim/collectives/engine/team_work.hpp"

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/engine/form.hpp"

namespace nearfield::mpi {

namespace {

bool fetch(StagingBuffers& buffers) try { return buffers.fetch() == MPI_SUCCESS; } catch (const OutOfMemory&) {
  return false;
}

}  // namespace

TeamWork::TeamWork(Communicator& c, const char* function, const collectives::Call& call,
                   std::unique_ptr<StagingBuffers> buffers, HostCall host_call)
    : c_(c),
      function_(function),
      call_(call, c.further),
      buffers_(std::move(buffers)),
      creation_(host_call ? c.async_creation : nullptr),
      empty_(!call.does_anything()),
      host_call_(std::move(host_call)) {
  call_.keep_parts(c.size);
  if (creation_) place.push_back(this);
  else join(*c.team);
}

TeamWork::TeamWork(Communicator& c, const char* function, const collectives::Call& call,
                   std::unique_ptr<StagingBuffers> buffers, const Plan& plan)
    : c_(c), function_(function), call_(call, plan.rows), buffers_(std::move(buffers)), own_queue_(&plan.queue) {
  call_.keep_parts(c.size);
  join(*c.team);
}

TeamWork::~TeamWork() {
  if (state() == State::queued) creation_->forget(*this);
  if (at_host_ != host.request_null) host.Request_free(&at_host_);
  if (!team_) return;
  if (own_queue_) team_->contexts().let_go(*own_queue_);
  c_.let_go();
}

void TeamWork::join(team::Team& team) {
  team_ = &team;
  c_.keep();
}

// Gives the call to the team; returns an error class. If it cannot, it breaks off the team, whose members would wait.
int TeamWork::issue() try {
  if (!fetched_) throw OutOfMemory();
  if (own_queue_) {
    own_queue_->issue(call_);
  } else {
    choosing::make_choosers(c_.further, *team_);
    team_->contexts().issue(call_);
  }
  return MPI_SUCCESS;
} catch (const OutOfMemory&) {
  try {
    team_->break_off("out of memory", std::string("in ") + function_);
  } catch (const team::Broken& broken) {
    log_line(LogLevel::error, "%s: %s", function_, broken.what());
    return MPI_ERR_NO_MEM;
  }
}

// The program's thread fetches its data, since a progress thread, which may issue the call, must not call the host.
int TeamWork::post() {
  fetched_ = !buffers_ || fetch(*buffers_);
  if (!creation_) {
    const int code = issue();
    if (code == MPI_SUCCESS) state_.store(State::issued, std::memory_order_relaxed);
    return code;
  }
  state_.store(State::queued, std::memory_order_relaxed);
  if (creation_->defer(*this)) return MPI_SUCCESS;
  go(c_.team.get());
  return code_;
}

// Called by the thread in which the creation of the team ends.
void TeamWork::go(team::Team* team) {
  State next = State::at_host;
  if (team && empty_ && !team->plan().check) {  // as on ranks that had the team when they made the call
    next = State::ended;
  } else if (team) {
    join(*team);
    code_ = issue();
    next = code_ == MPI_SUCCESS ? State::issued : State::ended;
  } else if (revoked(c_.comm)) {
    code_ = revoked_class();
    next = State::ended;
  } else {
    code_ = host_call_(&at_host_);
  }
  state_.store(next, std::memory_order_release);  // SYNC: task-state
}

bool TeamWork::complete() const {
  switch (state()) {
    case State::issued: return call_.complete();
    case State::at_host: return at_host_ == host.request_null || code_ != MPI_SUCCESS;
    case State::ended: return true;
    default: return false;
  }
}

void TeamWork::progress() {
  the_runner->poll();
  if (state() != State::at_host || complete()) return;
  int there = 0;
  code_ = host.Test(&at_host_, &there, MPI_STATUS_IGNORE);
}

int TeamWork::finalize() {
  if (creation_) creation_->let_all_go();
  if (state() == State::at_host) return code_ == MPI_SUCCESS ? code_ : raised_by_host(code_);
  if (state() == State::ended) return code_;
  if (!call_.error()) return buffers_ ? buffers_->store() : MPI_SUCCESS;
  try {
    std::rethrow_exception(call_.error());
  } catch (const team::Broken& broken) {
    return class_and_text(function_, broken);
  } catch (const OutOfMemory&) {
    log_line(LogLevel::error, "%s: out of memory", function_);
    return MPI_ERR_NO_MEM;
  }
}

// ---------------------------------------------------------------- posting

namespace {

template <class Body>
int posting(Communicator& c, const char* function, Body body) {
  return guarded(c.comm, function, [&]() -> int {
    if (broken_off(c)) [[unlikely]]
      c.team->report_break(std::string("in ") + function);
    return with_memory(c, function, body);
  });
}

template <class... Arguments>
int make_task(Communicator& c, const collectives::Call& counted, bool persistent, MPI_Request* request,
              Arguments&&... arguments) {
  *last_algorithm = "overlapping";
  if (counting()) [[unlikely]]
    count_call(counted.collective, counted.bytes, waiting::nanoseconds());
  auto task = std::make_unique<CollectiveTask<TeamWork>>(c, std::forward<Arguments>(arguments)...);
  return report(c.comm, make_request(c.comm, std::move(task), persistent, request));
}

}  // namespace

int post_task(Communicator& c, const collectives::Call& call, const char* function,
              std::unique_ptr<StagingBuffers> buffers, const Nonblocking& form, const collectives::Call& counted) {
  // An empty call is issued on no rank, whatever types the ranks pass: bytes are 0 on all of them (law 1).
  const bool young = is_being_created(c);
  if (!young && !c.team) return form.at_host(call.collective, Reason::communicator);  // it has just turned out
  if (!young && !call.does_anything() && !checks(c) && !broken_off(c)) return form.done(MPI_SUCCESS);
  return posting(c, function, [&] {
    return make_task(c, counted, false, form.request, function, call, std::move(buffers),
                     young ? form.host_call.kept() : nullptr);
  });
}

// If the members cannot create the plan, which is the same on all of them, the host serves the call.
int post_task(Communicator& c, const collectives::Call& call, const char* function,
              std::unique_ptr<StagingBuffers> buffers, const Persistent& form, const collectives::Call& counted) {
  return posting(c, function, [&]() -> int {
    c.leaving.settle();
    const bool moves = call.does_anything();
    const auto rows = moves ? c.chooser->rows_for(call) : choosing::Chooser::Rows{};
    if (moves && !rows.row) return form.at_host(call.collective, Reason::algorithm);
    context::TaskQueue* const queue = c.team->contexts().reserve();
    if (!queue) return form.at_host(call.collective, Reason::memory);
    return make_task(c, counted, true, form.request, function, call, std::move(buffers), TeamWork::Plan{rows, *queue});
  });
}

}  // namespace nearfield::mpi
