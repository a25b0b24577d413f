#include "engine/api/started_call.hpp"

#include "engine/base/yield.hpp"
#include "engine/reducing/wide.hpp"

namespace nearfield::api {

void scale_result(const ProcessGroup& group, const CollectiveCall& what) {
  if (!what.averages || !collectives::operation(what.call.collective).gets.has(group.rank(), what.call.root)) return;
  reducing::scale(what.call.recv, what.call.count, what.call.type, 1.0 / group.size());
}

void judge(ProcessGroup& group, messages::ErrorKind error, int partner) {
  using messages::ErrorKind;
  if (error == ErrorKind::none) return;
  if (error == ErrorKind::truncated) throw Failed(NF_TRUNCATED, "a message is longer than its receive buffer");
  group.give_up(std::make_exception_ptr(
      error == ErrorKind::no_memory ? Failed(NF_NO_MEMORY, "out of memory")
                                    : Failed(NF_BROKEN, partner < 0 ? "the other side of a message could not continue"
                                                                    : "rank " + std::to_string(partner) +
                                                                          ", the other side of a message, could not "
                                                                          "go on")));
}

void tell(const messages::Request& request, nf_message* message) {
  if (message) *message = {request.envelope.source, request.envelope.tag, request.received};
}

bool StartedCall::test(std::uint64_t nanoseconds) {
  if (complete()) return true;
  if (nanoseconds == 0) {
    group_.process().progress().poll();
    return complete();
  }
  try {
    return wait_for(nanoseconds);
  } catch (...) {
    group_.break_off(std::current_exception());
    abandon();
    throw;
  }
}

// Bodies of collectives progress by the runner, which their own wait would poll too seldom.
bool StartedCall::wait_for(std::uint64_t limit) {
  team::Process& process = group_.process();
  const auto done = [&] { return complete() || (process.runner().poll_patiently(process.policy()), complete()); };
  return group_.wait_until(done, [this](int member) { return awaits(member); }, limit, "in a call with a request");
}

void StartedCall::wait(std::uint64_t limit) {
  if (complete()) return;
  try {
    if (!wait_for(limit)) group_.give_up_late(arrival_, arrival_ ? "in a collective call" : "in a message");
  } catch (...) {
    group_.break_off(std::current_exception());
    abandon();
    throw;
  }
}

void QueuedCollective::finish(nf_message*) {
  if (call_.error()) group_.give_up(call_.error());
  scale_result(group_, what_);
}

// Its body notices that the group is broken.
void QueuedCollective::abandon() {
  while (!complete())
    if (!group_.process().progress().poll()) yield();
}

void StartedExchange::finish(nf_message*) { judge(group_, edges.outcome(), -1); }

void StartedMessage::finish(nf_message* message) {
  judge(group_, request.error, group_.rank_of(request.member));
  tell(request, message);
}

}  // namespace nearfield::api
