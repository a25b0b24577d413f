// A collective call that may overlap others: chosen and run as any other, on the track that it is issued to.
#pragma once
#include "engine/choosing/chooser.hpp"
#include "engine/track/tracks.hpp"

namespace nearfield::choosing {

class Overlapping final : public team::Pending {
 public:
  // What has been chosen for calls of each further track; a track without has it made. By whoever made the team.
  using Choosers = std::unique_ptr<Chooser>[team::further];

  // pre: `choosers` stay until the operation is complete.
  Overlapping(const collectives::Call& call, Choosers& choosers) : call_(call), choosers_(choosers) {}
  // Throws std::bad_alloc: what the call needs beside the words of its track is there from then on.
  void prepare(const team::Team& team);
  const collectives::Call& call() const { return call_; }

 private:
  void run(team::Track& track) override;
  collectives::Call call_;
  Choosers& choosers_;
};

}  // namespace nearfield::choosing
