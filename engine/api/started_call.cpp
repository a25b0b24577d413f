#include "engine/api/started_call.hpp"

#include "engine/base/yield.hpp"
#include "engine/reducing/wide.hpp"

namespace nearfield::api {

void scale_result(const ProcessGroup& group, const CollectiveCall& what) {
  if (!what.averages || !collectives::operation(what.call.collective).gets.has(group.rank(), what.call.root)) return;
  reducing::scale(what.call.recv, what.call.count, what.call.type, 1.0 / group.size());
}

void judge(messages::ErrorKind error) {
  switch (error) {
    case messages::ErrorKind::none: return;
    case messages::ErrorKind::truncated: throw Failed(NF_TRUNCATED, "a message is longer than the room for it");
    case messages::ErrorKind::no_memory: throw Failed(NF_NO_MEMORY, "out of memory");
    default: throw Failed(NF_BROKEN, "the other side of a message could not go on");
  }
}

void tell(const messages::Request& request, nf_message* message) {
  if (message) *message = {request.envelope.source, request.envelope.tag, request.received};
}

bool StartedCall::test() {
  if (complete()) return true;
  group_.process().progress().poll();
  return complete();
}

// Bodies of collectives progress by the runner, which their own wait would poll too seldom.
void StartedCall::wait(std::uint64_t limit) {
  if (complete()) return;
  fibers::Runner& runner = group_.process().runner();
  std::optional<fibers::Runner::Patience> patience;
  if (!group_.process().policy().oversubscribed) patience.emplace(runner);
  const auto done = [&] {
    if (complete()) return true;
    runner.poll();
    return complete();
  };
  try {
    if (!group_.wait_until(done, [this](int member) { return awaits(member); }, limit, "in a call with a request"))
      group_.give_up_late(arrival_, arrival_ ? "in a collective call" : "in a message");
  } catch (...) {
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
  group_.team().break_off();
  while (!complete())
    if (!group_.process().progress().poll()) yield();
}

void StartedExchange::finish(nf_message*) { judge(edges.outcome()); }

void StartedMessage::finish(nf_message* message) {
  judge(request.error);
  tell(request, message);
}

}  // namespace nearfield::api
