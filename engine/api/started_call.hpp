// A call behind a request: a collective that a further context of the team runs, one made of messages, or a message.
#pragma once
#include <memory>
#include <optional>

#include "engine/api/process_group.hpp"

namespace nearfield::api {

class StartedCall {
 public:
  // `arrival`: number of the collective call; 0: a message.
  StartedCall(ProcessGroup& group, std::uint64_t arrival) : group_(group), arrival_(arrival) { group.count_started(1); }
  virtual ~StartedCall() { group_.count_started(-1); }
  StartedCall(const StartedCall&) = delete;

  // Progresses everything for up to `nanoseconds`; 0: once. Returns whether the call is complete. Throws what waits
  // throw.
  bool test(std::uint64_t nanoseconds);
  // Waits until the call is complete. `limit`: ns; 0: the group's timeout. Throws what waits throw, after abandoning
  // the call.
  void wait(std::uint64_t limit);
  // pre: complete. Throws if the call has failed.
  virtual void finish(nf_message* message) = 0;

 protected:
  virtual bool complete() const = 0;
  virtual bool awaits(int) const { return false; }  // whether that member of the set may have to act
  virtual void abandon() = 0;                       // ends what is under way. pre: the group is broken
  ProcessGroup& group_;

 private:
  // False: not complete within `limit` ns; 0: the group's timeout.
  bool wait_for(std::uint64_t limit);
  const std::uint64_t arrival_;
};

// A collective that an algorithm runs in a further context.
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

// A collective of a group of one rank: it is complete when it is started.
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

// Scales this member's result if the operator is an average.
void scale_result(const ProcessGroup& group, const CollectiveCall& what);
// Throws Failed for an error, which breaks the group unless it is a truncation. `partner`: rank; -1: several.
void judge(ProcessGroup& group, messages::ErrorKind error, int partner);
void tell(const messages::Request& request, nf_message* message);

}  // namespace nearfield::api
