// A collective call as the queue of a further context runs it (context/pool.hpp, task_queue.hpp): once, by what has
// been chosen for such calls of that context, or again and again, by what was chosen when the operation was planned.
#pragma once
#include "engine/choosing/chooser.hpp"
#include "engine/choosing/skips.hpp"
#include "engine/context/pool.hpp"

namespace nearfield::choosing {

// Without copy buffers, on all members alike (team::Refused). The host cannot help, since each member has come here at
// another moment of its own calls. Returns a row that says so.
const collectives::Algorithm* run_by_pieces(context::CollectiveContext& context, const collectives::Call& call);
// The same, where `perform()` says that it has to be so. What that returns is what has run the call; it must be
// something.
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

// What has been chosen for calls of each further context.
using FurtherChoosers = std::unique_ptr<Chooser>[context::further];
// Makes those that are missing, for what serves `team`. Throws std::bad_alloc.
void make_choosers(FurtherChoosers& choosers, const team::Team& team);

class QueuedCall final : public context::Task {
 public:
  // pre: `choosers` have been made when the call is issued, and stay until it is complete.
  QueuedCall(const collectives::Call& call, FurtherChoosers& choosers) : call_(call), choosers_(&choosers) {}
  QueuedCall(const collectives::Call& call, const Chooser::Rows& planned) : call_(call), planned_(planned) {}
  // The call's parts may go before it ends. Throws std::bad_alloc.
  void keep_parts(int members);

 private:
  void run(context::CollectiveContext& context) override;
  collectives::Call call_;
  std::vector<std::size_t> parts_;
  FurtherChoosers* const choosers_ = nullptr;  // none: it is planned
  const Chooser::Rows planned_;
  Skips skips_;
};

}  // namespace nearfield::choosing
