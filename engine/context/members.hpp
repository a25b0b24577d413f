// Who is in a context, and where the words of each member lie.
#pragma once
#include <span>
#include <vector>

#include "engine/context/control_block.hpp"
#include "engine/team/team.hpp"

namespace nearfield::context {

using team::Broken, team::MemberControlBlock, team::Peer, team::Process, team::ProcessHeader, team::Refused,
    team::Shape, team::Team, team::Tree, team::What, team::everybody;

struct ContextMembers {
  Team& team;
  const unsigned number;  // of the context; 0: that of blocking calls
  Process& process = team.process();
  const Shape& shape = team.shape();
  const int rank = team.rank(), size = team.size();
  const std::span<std::byte* const> segments = team.segments();
  const std::span<Peer* const> peers = team.peers();
  std::vector<ContextControlBlock*> words = std::vector<ContextControlBlock*>(std::size_t(size));
  ContextControlBlock* mine = nullptr;
  ContextGate* gate = nullptr;
};

}  // namespace nearfield::context
