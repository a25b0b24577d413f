// What the layers above know of the calls of teams, for those who report them and who create teams.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/settings/settings.hpp"

namespace nearfield::team {

struct Services {
  virtual ~Services() = default;
  // Describes a word of ContextControlBlock::doing in reports.
  virtual std::string describe(std::uint64_t /*doing*/) const { return "in a call"; }
  virtual std::uint64_t length_of_doing() const { return 0; }  // mask of its bits that hold a length
  // Configuration that the first member of a team keeps for the others beside the plan: its bytes, which begin() fills
  // before the team is agreed on.
  virtual std::size_t configuration_bytes() const { return 0; }
  virtual void begin_configuration(const Settings&, std::byte* /*room*/, int /*size*/) const {}
};

}  // namespace nearfield::team
