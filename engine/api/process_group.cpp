#include "engine/api/process_group.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/api/started_call.hpp"
#include "engine/base/log.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/creation/create.hpp"

namespace nearfield::api {
namespace {

constexpr std::size_t most_sets = 3;
static_assert(most_sets + 1 <= waiting::Progress::most);  // their messengers, and the runner

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) number = nanoseconds();
  return number | 1;
}

bool holds(const ProcessSet& set, const team::Team& group) {
  const auto known = set.team->peers();
  return std::ranges::all_of(group.peers(), [&](const team::Peer* peer) {
    return std::ranges::find(known, peer) != known.end();  // nullptr: ourselves
  });
}

// A collective of one rank: what it gives is what it gets.
void copy_alone(const collectives::Call& call) {
  const collectives::Operation& operation = collectives::operation(call.collective);
  if (operation.gets.blocks(0, 1, call.root) && call.send != call.recv && call.bytes)
    std::memcpy(call.recv, call.send, call.bytes);
}

}  // namespace

// ---------------------------------------------------------------- joining

struct ProcessGroup::Card {
  std::uint64_t arrivals;        // offset of the block, 0: there is no memory
  std::uint64_t number;          // random
  std::uint64_t set[most_sets];  // those that we know and that all members belong to, 0: none
  std::uint64_t room;            // 1: for one more
};

std::unique_ptr<ProcessGroup> ProcessGroup::join(int rank, int size, team::Bootstrap& bootstrap) {
  if (size < 1 || rank < 0 || rank >= size)
    throw Failed(NF_INVALID, "rank " + std::to_string(rank) + " of " + std::to_string(size) + " does not exist");
  const std::lock_guard lock(state().joining);
  if (state().forked)
    throw Failed(NF_INVALID, "this process was forked by a process that had joined a group, so it cannot join one");
  team::Process* own = nullptr;
  std::unique_ptr<ProcessGroup> group;
  try {
    own = &api::process();
    group.reset(new ProcessGroup(rank, size));
  } catch (...) {  // the others are told
    creation::decline_team(size, bootstrap);
    throw;
  }
  auto team = creation::create_team(*own, rank, size, bootstrap);
  if (!team) throw Failed(NF_UNAVAILABLE, team.error().text);
  group->team_ = std::move(*team);
  group->chooser_->serve(*group->team_);
  group->meet(bootstrap);
  group->find_members();
  group->team_->user = group.get();
  return group;
}

void ProcessGroup::meet(team::Bootstrap& bootstrap) {
  auto& sets = state().sets;
  Card mine{0, random_number(), {}, sets.size() < most_sets};
  if (const auto block = process().arena().allocate_zeroed(sizeof(ArrivalControlBlock), team::line))
    mine.arrivals = arrival_block_ = *block;
  for (std::size_t i = 0; i < sets.size(); ++i)
    if (holds(*sets[i], *team_)) mine.set[i] = sets[i]->id;
  auto cards = team::room_for<Card>(size_);
  if (!bootstrap.allgather(&mine, cards.data(), sizeof mine))
    throw Failed(NF_UNAVAILABLE, "the exchange of bytes failed");
  std::vector<std::uint64_t> offsets;
  for (const Card& card : cards) offsets.push_back(card.arrivals);
  if (std::ranges::find(offsets, 0u) != offsets.end()) throw Failed(NF_NO_MEMORY, "a member has no shared memory");
  arrivals_.emplace(*team_, offsets);
  context_ = cards[0].number << 2;
  for (const std::uint64_t id : cards[0].set) {
    const auto knows = [id](const Card& card) { return std::ranges::find(card.set, id) != std::end(card.set); };
    if (!id || !std::ranges::all_of(cards, knows)) continue;
    set_ = std::ranges::find(sets, id, [](const auto& set) { return set->id; })->get();
    return;
  }
  if (!std::ranges::all_of(cards, [](const Card& card) { return card.room != 0; }))
    throw Failed(NF_UNAVAILABLE, "a member has already met three sets of processes, none of which contains this group");
  auto team = creation::create_team(process(), rank_, size_, bootstrap);
  if (!team) throw Failed(NF_UNAVAILABLE, team.error().text);
  auto messenger = messages::Messenger::create(**team, bootstrap, true);
  if (!messenger) throw Failed(NF_UNAVAILABLE, messenger.error().text);
  sets.push_back(std::make_unique<ProcessSet>());
  set_ = sets.back().get();
  *set_ = {cards[0].number, std::move(*team), std::move(*messenger)};
  if (process().settings().progress == Progressing::thread && sets.size() == 1) begin_progress_thread();
}

// For NEARFIELD_PROGRESS=thread: of the first set, whose thread runs the bodies of all.
void ProcessGroup::begin_progress_thread() {
  std::vector<pid_t> ranks{getpid()};
  for (const team::Peer* const peer : set_->team->peers())
    if (peer && peer->pid) ranks.push_back(peer->pid);
  auto thread = std::make_unique<messages::ProgressThread>(process(), set_->messenger.get(), messages::Serves::always,
                                                           std::move(ranks));
  if (thread->start()) state().progress_thread = thread.release();
  else log_line(LogLevel::info, "NEARFIELD_PROGRESS=thread: the thread could not be started");
}

void ProcessGroup::find_members() {
  const auto known = set_->team->peers();
  for (const team::Peer* const peer : team_->peers())
    members_.push_back(int(std::ranges::find(known, peer) - known.begin()));
}

int ProcessGroup::rank_of(int member) const {
  const auto found = std::ranges::find(members_, member);
  return found == members_.end() ? -1 : int(found - members_.begin());
}

// What is under way ends, since its bodies notice a team that is broken off.
ProcessGroup::~ProcessGroup() {
  if (!team_) return;
  team_->orphan();
  team::Process& own = process();
  team::Team::close(std::move(team_));
  if (arrival_block_) own.arena().free(arrival_block_);
}

// ---------------------------------------------------------------- waiting, and ends of a group

// Asked by long waits of the team, of whichever call.
bool ProcessGroup::abandoned() const {
  const std::uint64_t call = blocked_in_.load(std::memory_order_relaxed);
  if (!call) return false;
  look_around();
  const std::uint64_t now = nanoseconds(), limit = timeout();
  if (blocked_since_.load(std::memory_order_relaxed) == 0) blocked_since_.store(now, std::memory_order_relaxed);
  return limit && now - blocked_since_.load(std::memory_order_relaxed) > limit;
}

bool ProcessGroup::wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, std::uint64_t limit,
                              const char* doing) {
  Watch watch(limit ? limit : timeout());
  bool late = false;
  messenger().wait_until([&] { return done() || (late = watch.late()); }, awaited, nullptr, doing);
  return !late;
}

void ProcessGroup::look_before_call() const {
  if (state().forked.load(std::memory_order_relaxed)) [[unlikely]]
    throw Failed(NF_INVALID, "this process was forked by a member of the group and is not a member itself");
  if (broken()) [[unlikely]]
    throw Failed(NF_BROKEN, "the group is broken because a call in it has failed: " + why_broken_);
}

void ProcessGroup::break_off(const std::exception_ptr& why) {
  std::string text = "out of memory";
  team::Break kind = team::Break::by_failure;
  try {
    std::rethrow_exception(why);
  } catch (const std::runtime_error& error) {
    text = error.what();
    kind = team::kind_of(error);
  } catch (const OutOfMemory&) {
  }
  team_->break_off(text.c_str(), kind);
  const std::lock_guard lock(breaking_);
  if (broken()) return;
  why_broken_ = text;
  broken_.store(true, std::memory_order_release);  // SYNC: group-broken
}

void ProcessGroup::give_up(const std::exception_ptr& why) {
  break_off(why);
  std::rethrow_exception(why);
}

void ProcessGroup::give_up_late(std::uint64_t call, const std::string& doing) {
  const auto missing = call ? arrivals_->missing(call) : std::vector<int>();
  std::string text = "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " has waited too long " + doing;
  if (call && missing.empty()) text += "; all ranks have begun as many calls: do they make the same ones?";
  if (!missing.empty())
    text += std::string(missing.size() == 1 ? ": missing is rank " : ": missing are ranks ") + listed(missing);
  give_up(std::make_exception_ptr(Failed(NF_TIMEOUT, text)));
}

// ---------------------------------------------------------------- collectives

// A call of no bytes is a meeting, which finds members that have some.
const char* ProcessGroup::collective(const CollectiveCall& given, StartedCall** started) {
  CollectiveCall what = given;
  if (!what.call.bytes) what = {.call = {collectives::Collective::barrier}};
  const std::lock_guard lock(calls_);
  look_before_call();
  const std::uint64_t arrival = arrivals_->begin();
  if (size_ == 1) {
    copy_alone(what.call);
    if (started) *started = new DoneAtOnce(*this, arrival);
    return "";
  }
  if (!started) {
    blocked_since_.store(0, std::memory_order_relaxed);
    blocked_in_.store(arrival, std::memory_order_relaxed);
    const char* const algorithm = run_here(what);
    blocked_in_.store(0, std::memory_order_relaxed);
    return algorithm;
  }
  try {
    choosing::make_choosers(further_, *team_);
    auto made = std::make_unique<QueuedCollective>(*this, arrival, what, further_);
    team_->contexts().issue(made->task());
    *started = made.release();
    return "";
  } catch (...) {
    give_up(std::current_exception());
  }
}

const char* ProcessGroup::run_here(const CollectiveCall& what) {
  const char* algorithm;
  try {
    algorithm = run_in_context(what.call);
  } catch (const team::Revoked&) {  // abandoned() has said so
    const std::uint64_t call = blocked_in_.exchange(0, std::memory_order_relaxed);
    give_up_late(call, team_->context().calls.describe());
  } catch (...) {
    blocked_in_.store(0, std::memory_order_relaxed);
    give_up(std::current_exception());
  }
  scale_result(*this, what);
  return algorithm;
}

const char* ProcessGroup::run_in_context(const collectives::Call& call) {
  context::CollectiveContext& context = team_->context();
  if (team_->broken_off()) team_->report_break("about to make a call");
  if (team_->plan().check) collectives::compare_calls(context, call);
  context.calls.enter_collective(collectives::pack(call));
  const auto* const ran = choosing::run_anyhow(context, call, [&] { return chooser_->perform(context, call); });
  context.calls.leave();
  return ran->name;
}

void ProcessGroup::exchange(FillIn fill_in, StartedCall** started) {
  const std::lock_guard lock(calls_);
  look_before_call();
  const std::uint64_t arrival = arrivals_->begin();
  const messages::Partners with = partners(started != nullptr);
  auto made = std::make_unique<StartedExchange>(*this, arrival, with);
  fill_in(made->edges);
  made->edges.prepare(true);
  try {
    made->edges.start();
    if (!started) {
      made->wait(0);
      made->finish(nullptr);
      return;
    }
  } catch (const Failed&) {  // has been dealt with
    throw;
  } catch (...) {
    give_up(std::current_exception());
  }
  *started = made.release();
}

// ---------------------------------------------------------------- messages

void ProcessGroup::fill_in(messages::Request& request, bool sends, void* data, std::size_t bytes, int partner,
                           int tag) const {
  const int source = sends ? rank_ : partner == NF_ANY ? messages::any : partner;
  request.is_send = sends;
  request.member = partner == NF_ANY ? -1 : members_[std::size_t(partner)];
  request.envelope = {context_, source, tag == NF_ANY ? messages::any : tag};
  request.data = {static_cast<std::byte*>(data), bytes, {}};
}

namespace {

void run_message(StartedMessage& message, messages::Messenger& messenger, nf_message* came) {
  messenger.start(message.request);
  message.wait(0);
  message.finish(came);
}

}  // namespace

void ProcessGroup::send(const void* data, std::size_t bytes, int target, int tag, StartedCall** started) {
  look_before_call();
  if (!started && messenger().send_at_once(members_[std::size_t(target)], {context_, rank_, tag},
                                           {static_cast<std::byte*>(const_cast<void*>(data)), bytes, {}}))
    return;
  auto made = std::make_unique<StartedMessage>(*this);
  fill_in(made->request, true, const_cast<void*>(data), bytes, target, tag);
  if (!started) return run_message(*made, messenger(), nullptr);
  messenger().start(made->request);
  *started = made.release();
}

void ProcessGroup::receive(void* room, std::size_t bytes, int source, int tag, nf_message* message,
                           StartedCall** started) {
  look_before_call();
  auto made = std::make_unique<StartedMessage>(*this);
  fill_in(made->request, false, room, bytes, source, tag);
  if (!started) return run_message(*made, messenger(), message);
  messenger().start(made->request);
  *started = made.release();
}

}  // namespace nearfield::api
