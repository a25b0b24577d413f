// A call behind a request: a collective that the team's further contexts run, one that is made of messages, or a
// message.
#pragma once
#include <memory>
#include <optional>

#include "engine/api/process_group.hpp"

namespace nearfield::api {

class StartedCall {
 public:
  // `arrival`: the number of the collective call, 0: it is a message.
  StartedCall(ProcessGroup& group, std::uint64_t arrival) : group_(group), arrival_(arrival) { group.count_started(1); }
  virtual ~StartedCall() { group_.count_started(-1); }
  StartedCall(const StartedCall&) = delete;

  // Progresses everything, for up to so many nanoseconds, 0: once; whether it is done. Throws what waits throw.
  bool test(std::uint64_t nanoseconds);
  // Until it is done. `limit`: ns, 0: the group's. Throws what waits throw; then nothing of it is under way any more.
  void wait(std::uint64_t limit);
  // pre: done. Throws why it has failed.
  virtual void finish(nf_message* message) = 0;

 protected:
  virtual bool complete() const = 0;
  virtual bool awaits(int) const { return false; }  // that member of the set
  virtual void abandon() = 0;                       // until nothing is under way. pre: the group is broken
  ProcessGroup& group_;

 private:
  // False: it is not done within `limit` ns, 0: the group's.
  bool wait_for(std::uint64_t limit);
  const std::uint64_t arrival_;
};

// By the algorithms of a collective.
class QueuedCollective final : public StartedCall {
 public:
  QueuedCollective(ProcessGroup& group, std::uint64_t arrival, const CollectiveCall& what,
                   choosing::FurtherChoosers& choosers)
      : StartedCall(group, arrival), what_(what), call_(what.call, choosers) {}
  context::Task& task() { return call_; }
  void finish(nf_message*) override;

 private:
  bool complete() const override { return call_.complete(); }
  void abandon() override;
  const CollectiveCall what_;
  choosing::QueuedCall call_;
};

// Of one rank: it was done when it was started.
class DoneAtOnce final : public StartedCall {
 public:
  using StartedCall::StartedCall;
  void finish(nf_message*) override {}

 private:
  bool complete() const override { return true; }
  void abandon() override {}
};

class StartedExchange final : public StartedCall {
 public:
  StartedExchange(ProcessGroup& group, std::uint64_t arrival, const messages::Partners& partners)
      : StartedCall(group, arrival), edges(partners) {}
  void finish(nf_message*) override;
  messages::Edges edges;

 private:
  bool complete() const override { return edges.complete(); }
  bool awaits(int member) const override { return edges.involves(member); }
  void abandon() override { edges.abandon(); }
};

class StartedMessage final : public StartedCall {
 public:
  explicit StartedMessage(ProcessGroup& group) : StartedCall(group, 0) {}
  void finish(nf_message* message) override;
  messages::Request request;

 private:
  bool complete() const override { return request.complete(); }
  bool awaits(int member) const override { return request.member == member || request.member < 0; }
  void abandon() override { group_.messenger().abandon(request); }
};

// Whether a member's blocks of an average are to be scaled, and that.
void scale_result(const ProcessGroup& group, const CollectiveCall& what);
// What has become of messages, with that rank; -1: with several. Throws Failed.
void judge(ProcessGroup& group, messages::ErrorKind error, int partner);
void tell(const messages::Request& request, nf_message* message);

}  // namespace nearfield::api
