// Creation of a team, step by step (create.cpp draws it), for members that wait for the others in between and for those
// that must not.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "engine/creation/calibrating.hpp"
#include "engine/reach/peers.hpp"
#include "engine/team/team.hpp"

namespace nearfield::creation {

// Published by each member to all others.
struct Hello {
  reach::Card card;
  std::uint64_t node;
  std::uint64_t block;  // offset in the segment; 0: the member cannot take part
  std::uint32_t protocol;
  std::uint32_t enabled;
  std::int64_t group;      // scheduling group
  std::int64_t cache;      // first CPU of the last-level cache that all its CPUs share, -1: there is none
  std::int64_t package;    // the same of the package
  std::uint64_t cpus[16];  // affinity mask
};

class TeamCreation {
 public:
  // Local, step 1. After a failure the Hello says that this member cannot take part. `together`: the members wait for
  // each other, so that the first two can measure.
  TeamCreation(team::Process& process, int rank, int size, bool together);
  TeamCreation(const TeamCreation&) = delete;

  const Hello& mine() const { return mine_; }
  // Local. Returns why there will be no team, or "". All members get the same answer, since it depends on the hellos
  // alone.
  std::string judge(std::span<const Hello> hellos) const;
  // Steps 3 and 4. Without a `bootstrap`: local, for processes that have met. False: this member has failed, see
  // error().
  bool join(std::span<const Hello> hellos, team::Bootstrap* bootstrap);
  const std::string& error() const { return error_; }
  // Local. pre: all members have joined.
  std::unique_ptr<team::Team> finish();

 private:
  std::unique_ptr<team::Team> prepare();
  void fill_in(std::span<const Hello> hellos);
  bool met_all(std::span<const Hello> hellos) const;
  team::Process& process_;
  const int rank_, size_;
  const bool together_;
  Calibrating calibrating_;
  std::string error_;
  std::unique_ptr<team::Team> team_;
  Hello mine_{};
};

}  // namespace nearfield::creation
