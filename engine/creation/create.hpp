// The creation of a team by all of its members, who wait for each other (create.cpp draws it). team_creation.hpp has
// its steps for who must not wait.
#pragma once
#include <cstddef>
#include <memory>

#include "engine/team/team.hpp"

namespace nearfield::creation {

// Collective. An Error means that these members cannot share memory, agreed by all of them.
Result<std::unique_ptr<team::Team>> create_team(team::Process& process, int rank, int size, team::Bootstrap& bootstrap);
// What a member without a node does while the others create: everybody then gets an Error.
void decline_team(int size, team::Bootstrap& bootstrap);
// Of a member's block; `leader`: the first member, with so many bytes of Process::annex.
std::size_t block_bytes(bool leader, std::size_t shared_configuration_bytes);

}  // namespace nearfield::creation
