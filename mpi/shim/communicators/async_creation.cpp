#include "mpi/shim/communicators/async_creation.hpp"

#include <algorithm>
#include <vector>

#include "engine/base/out_of_memory.hpp"
#include "engine/creation/team_creation.hpp"

namespace nearfield::mpi {
namespace {

enum Tag { advertised, agreed };

messages::Partners partners(const Communicator& state) {
  return {*the_messenger, state.members, state.rank, context_of_creation(state)};
}

template <class T>
void everybody(messages::Edges& edges, int me, int tag, const T& mine, std::vector<T>& all) {
  auto data = [](const T& what) {
    return layout::Data{reinterpret_cast<std::byte*>(const_cast<T*>(&what)), sizeof(T), {}};
  };
  for (int r = 0; r < int(all.size()); ++r) {
    if (r == me) continue;
    edges.sends.push_back({r, tag, data(mine)});
    edges.receives.push_back({r, tag, data(all[std::size_t(r)])});
  }
  edges.prepare(true);
}

// Not inline: the body may be resumed by another thread, and the compiler may have kept the thread-local's old address.
[[gnu::noinline]] bool in_own_thread() { return waiting::own_thread; }

}  // namespace

struct AsyncCreation::Work {
  explicit Work(const Communicator& state)
      : async_creation(*process_ever(), state.rank, state.size, false),
        hellos(std::size_t(state.size)),
        joined(std::size_t(state.size)),
        advertising(partners(state)),
        agreeing(partners(state)) {
    const auto me = std::size_t(state.rank);
    hellos[me] = async_creation.mine();
    everybody(advertising, state.rank, advertised, async_creation.mine(), hellos);
    everybody(agreeing, state.rank, agreed, joined[me], joined);
  }
  std::unique_ptr<choosing::Chooser> chooser = std::make_unique<choosing::Chooser>();
  creation::TeamCreation async_creation;
  std::vector<creation::Hello> hellos;
  std::vector<std::uint32_t> joined;
  messages::Edges advertising, agreeing;
  std::unique_ptr<team::Team> made;
};

AsyncCreation::AsyncCreation(Communicator& state) : state_(state), work_(std::make_unique<Work>(state)) {
  has_afterwards = true;
}
AsyncCreation::~AsyncCreation() = default;

void AsyncCreation::begin(Communicator& state) {
  state.team_tried = true;
  try {
    std::shared_ptr<AsyncCreation> async_creation(new AsyncCreation(state));
    state.async_creation = async_creation;
    bool ended = false;
    {
      const std::lock_guard lock(the_runner->mutex());
      begun_.fetch_add(1, std::memory_order_relaxed);
      try {
        the_runner->start(*async_creation);
      } catch (const OutOfMemory&) {
        begun_.fetch_sub(1, std::memory_order_relaxed);
        throw;
      }
      ended = !async_creation->fiber;
    }
    if (ended) async_creation->afterwards();
    else process_ever()->progress().wake_background();
  } catch (const OutOfMemory&) {
    state.async_creation.reset();
    messages::refuse(partners(state), [&](bool, messages::VisitEdge visit) {
      for (const int tag : {advertised, agreed})
        for (int r = 0; r < state.size; ++r) visit(r, tag);
    });
  }
}

// Sends our message to all members and receives theirs. Returns what went wrong.
messages::ErrorKind AsyncCreation::exchange(messages::Edges& edges) {
  try {
    edges.start();
  } catch (const OutOfMemory&) {
    edges.refuse();
    return messages::ErrorKind::no_memory;
  }
  while (!edges.complete()) fiber->suspend();
  const messages::ErrorKind outcome = edges.outcome();
  if (outcome == messages::ErrorKind::closed) note_revoked();
  return outcome;
}

void AsyncCreation::run() {
  Work& work = *work_;
  using messages::ErrorKind;
  const ErrorKind advertised_all = exchange(work.advertising);
  bool good = advertised_all == ErrorKind::none;
  std::string why = good ? "" : advertised_all == ErrorKind::closed ? "it is revoked" : "a member cannot take part";
  try {
    if (good) why = work.async_creation.judge(work.hellos);
  } catch (const OutOfMemory&) {
    good = false;
  }
  good = good && why.empty() && work.async_creation.join(work.hellos, nullptr);
  work.joined[std::size_t(state_.rank)] = good;
  good = exchange(work.agreeing) == ErrorKind::none && std::ranges::find(work.joined, 0u) == work.joined.end();
  if (good) work.made = work.async_creation.finish();
  else
    log_line(LogLevel::info, "the host serves a communicator of %d ranks: %s", state_.size,
             why.empty() ? work.async_creation.error().c_str() : why.c_str());
  // The deferred calls will go to the host, which a progress thread must not call; so wait for a thread of the program.
  while (!good && in_own_thread()) fiber->suspend();
}

void AsyncCreation::afterwards() {
  const std::shared_ptr<AsyncCreation> keep = state_.async_creation;  // once it is settled the communicator may go
  const std::lock_guard lock(queue_lock_);
  if (work_->made) install_team(state_, std::move(work_->made), std::move(work_->chooser));
  work_.reset();
  while (!deferred_.empty()) {
    Deferred& call = *deferred_.front();
    deferred_.pop_front();
    call.go(state_.team.get());
  }
  begun_.fetch_sub(1, std::memory_order_relaxed);
  settled_.store(true, std::memory_order_release);  // SYNC: creation-settled
}

bool AsyncCreation::defer(Deferred& call) {
  const std::lock_guard lock(queue_lock_);
  if (settled()) return false;
  deferred_.splice(deferred_.end(), call.place);
  return true;
}

void AsyncCreation::forget(Deferred& call) {
  const std::lock_guard lock(queue_lock_);
  deferred_.remove(&call);
}

bool AsyncCreation::wait() {
  try {
    wait_ours([&] { return settled(); }, [&](int member) { return involves(member); }, nullptr,
              "in a communicator's first collective calls");
  } catch (const team::Broken&) {
    return false;
  }
  return true;
}

bool AsyncCreation::involves(int member) const {
  return std::ranges::find(state_.members, member) != state_.members.end();
}

}  // namespace nearfield::mpi
