// A collective call as the queue of a further context runs it (context/pool.hpp): once, by what has been chosen for
// such calls of that context, or again and again, by what was chosen when the operation was planned.
#pragma once
#include "engine/choosing/chooser.hpp"
#include "engine/choosing/skips.hpp"
#include "engine/context/pool.hpp"

namespace nearfield::choosing {

// Without copy buffers, on all members alike (team::Refused). The host cannot help, since each member has come here at
// another moment of its own calls.
void run_by_pieces(context::CollectiveContext& context, const collectives::Call& call);

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
  // False: no algorithm applies. Throws what waits throw.
  bool perform(context::CollectiveContext& context);

  collectives::Call call_;
  std::vector<std::size_t> parts_;
  FurtherChoosers* const choosers_ = nullptr;  // none: it is planned
  const Chooser::Rows planned_;
  Skips skips_;
};

}  // namespace nearfield::choosing
