// Collective calls that may overlap others: run as any other, on the context that they are issued to.
#pragma once
#include "engine/choosing/chooser.hpp"
#include "engine/context/pool.hpp"

namespace nearfield::choosing {

// Without copy buffers, on all members alike (team::Refused). The host cannot help, since each member has come here at
// another moment of its own calls.
void run_by_pieces(context::CollectiveContext& context, const collectives::Call& call);

class CollectiveTask : public context::Task {
 public:
  explicit CollectiveTask(const collectives::Call& call) : call_(call) {}
  virtual ~CollectiveTask() = default;
  const collectives::Call& call() const { return call_; }
  // The call's parts may go before it ends. Throws std::bad_alloc.
  void keep_parts(int members);

 private:
  void run(context::CollectiveContext& context) final;
  // False: no algorithm applies. Throws what waits throw.
  virtual bool perform(context::CollectiveContext& context) = 0;

 protected:
  collectives::Call call_;

 private:
  std::vector<std::size_t> parts_;
};

// CollectiveTask once, as the next one of its communicator.
class Overlapping final : public CollectiveTask {
 public:
  // What has been chosen for calls of each further context; a context without has it made. By whoever made the team.
  using Choosers = std::unique_ptr<Chooser>[context::further];

  // pre: `choosers` stay until the operation is complete.
  Overlapping(const collectives::Call& call, Choosers& choosers) : CollectiveTask(call), choosers_(choosers) {}
  // Throws std::bad_alloc: what the call needs beside the words of its context is there from then on.
  void prepare(const team::Team& team);

 private:
  bool perform(context::CollectiveContext& context) override;
  Choosers& choosers_;
};

// CollectiveTask again and again, to a context of its own, and run by what was chosen for it when it was planned.
class PersistentTask final : public CollectiveTask {
 public:
  PersistentTask(const collectives::Call& call, const Chooser::Rows& rows) : CollectiveTask(call), rows_(rows) {}

 private:
  bool perform(context::CollectiveContext& context) override;
  const Chooser::Rows rows_;
  tuning::Skips skips_;
};

}  // namespace nearfield::choosing
