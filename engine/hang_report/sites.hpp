// Sites in a program: object, offset and symbol by the loader, file and line by addr2line.
#pragma once
#include <string>
#include <vector>

#include "engine/hang_report/report.hpp"

namespace nearfield::hang_report {

struct Site {
  std::string object;  // an absolute path, "": unknown
  std::size_t offset = 0;
  std::string symbol;  // demangled, "": none is near
};
// Returns the site of the call that returns to an address.
Site site_of(const void* returns_to);
// Returns "/program+0x1234 (main)"; "": not looked up.
std::string site_text(const CallState& state);
// "/program+0x1234: main at file.c:12" for each site, where addr2line is installed; takes two seconds at most.
std::vector<std::string> source_lines(const std::vector<ProcessSeen>& all);

}  // namespace nearfield::hang_report
