#include "engine/choosing/overlapping.hpp"

namespace nearfield::choosing {

using collectives::Call;
using collectives::Collective;

void Overlapping::prepare(const team::Team& team) {
  for (auto& chooser : choosers_) {
    if (chooser) continue;
    auto made = std::make_unique<Chooser>();
    made->serve(team, false);
    chooser = std::move(made);
  }
}

namespace {

// Without copy buffers, on all members alike: by pieces that need none. The host cannot help, since each member has
// come here at another moment of its own calls.
void run_by_pieces(team::Track& track, const Call& call) {
  if (call.collective != Collective::allreduce) throw team::Broken("a member has no room for copy buffers");
  const std::size_t element = call.bytes / call.count, most = team::slot_payload / element;
  for (std::size_t at = 0; at < call.count; at += most) {
    Call piece = call;
    piece.count = std::min(most, call.count - at);
    piece.bytes = piece.count * element;
    piece.send = static_cast<const std::byte*>(call.send) + at * element;
    piece.recv = static_cast<std::byte*>(call.recv) + at * element;
    collectives::algorithms(call.collective).front().run(track, piece);  // by slots
  }
}

}  // namespace

void Overlapping::run(team::Track& track) {
  Chooser& chooser = *choosers_[track.number() - 1];
  if (track.team().plan().check) collectives::compare_calls(track, call_);
  if (call_.bytes == 0 && !collectives::operation(call_.collective).moves_nothing()) return;
  track.enter(collectives::pack(call_));
  bool refused = false;
  try {
    if (!chooser.perform(track, call_)) throw team::Broken("no algorithm applies, by NEARFIELD_ALGORITHM");
  } catch (const team::Refused&) {
    refused = true;
  }
  if (refused) run_by_pieces(track, call_);
}

}  // namespace nearfield::choosing
