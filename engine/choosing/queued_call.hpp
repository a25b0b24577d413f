// A collective call as the queue of a further context runs it (context/pool.hpp, task_queue.hpp): a non-blocking call,
// by the context's Chooser, or a persistent operation, by the rows chosen when it was planned.
#pragma once
#include "engine/choosing/chooser.hpp"
#include "engine/choosing/skips.hpp"
#include "engine/context/pool.hpp"

namespace nearfield::choosing {

// Runs a call in pieces by slots, without copy buffers, on all members alike, after team::Refused. The host cannot
// serve it, since members get here at different points of their programs. Returns a row that is named slots.
const collectives::Algorithm* run_by_pieces(context::CollectiveContext& context, const collectives::Call& call);
// Returns the row that perform() has run; if that throws team::Refused, runs the call by pieces.
template <class Perform>
const collectives::Algorithm* run_anyhow(context::CollectiveContext& context, const collectives::Call& call,
                                         Perform perform) {
  try {
    if (const collectives::Algorithm* const ran = perform()) return ran;
    throw team::Broken("no algorithm applies, by NEARFIELD_ALGORITHM");
  } catch (const team::Refused&) {
  }
  return run_by_pieces(context, call);
}

// The chooser of each further context.
using FurtherChoosers = std::unique_ptr<Chooser>[context::further];
// Makes the missing choosers of `team`. Throws std::bad_alloc.
void make_choosers(FurtherChoosers& choosers, const team::Team& team);

class QueuedCall final : public context::Task {
 public:
  // pre: `choosers` have been made when the call is issued, and stay until it is complete.
  QueuedCall(const collectives::Call& call, FurtherChoosers& choosers) : call_(call), choosers_(&choosers) {}
  QueuedCall(const collectives::Call& call, const Chooser::Rows& planned) : call_(call), planned_(planned) {}
  // Copies the call's parts, which the caller may free before the call ends. Throws std::bad_alloc.
  void keep_parts(int members);

 private:
  void run(context::CollectiveContext& context) override;
  collectives::Call call_;
  std::vector<std::size_t> parts_;
  FurtherChoosers* const choosers_ = nullptr;  // nullptr: the call is planned
  const Chooser::Rows planned_;
  Skips skips_;
};

}  // namespace nearfield::choosing
