// Creation of a team by members that wait for each other (create.cpp draws it). team_creation.hpp has the steps for
// members that must not wait.
#pragma once
#include <cstddef>
#include <memory>

#include "engine/team/team.hpp"

namespace nearfield::creation {

// Collective. An Error means that these members cannot share memory, agreed by all of them.
Result<std::unique_ptr<team::Team>> create_team(team::Process& process, int rank, int size, team::Bootstrap& bootstrap);
// Called instead by a member that cannot take part: all members get an Error.
void decline_team(int size, team::Bootstrap& bootstrap);
// Returns the length of a member's block. `leader`: the first member, with that many bytes of
// Services::begin_configuration.
std::size_t block_bytes(bool leader, std::size_t shared_configuration_bytes);

}  // namespace nearfield::creation
