// What layers above provide for teams: descriptions of calls, and configuration.
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
  // Configuration that the first member of a team keeps for the others beside the plan: the number of its bytes, and
  // the function that fills them before the members agree on the team.
  virtual std::size_t configuration_bytes() const { return 0; }
  virtual void begin_configuration(const Settings&, std::byte* /*room*/, int /*size*/) const {}
};

}  // namespace nearfield::team
