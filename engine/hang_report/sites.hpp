// Where in a program something is: object, offset and symbol by the loader, file and line by addr2line.
#pragma once
#include <string>
#include <vector>

#include "engine/hang_report/report.hpp"

namespace nearfield::hang_report {

struct Site {
  std::string object;  // an absolute path, "": not known
  std::size_t offset = 0;
  std::string symbol;  // as C++ has it, "": none is near
};
// Of the call that returns to an address.
Site site_of(const void* returns_to);
// "/program+0x1234 (main)", "": not asked for yet.
std::string site_text(const CallState& told);
// "/program+0x1234: main at file.c:12" for each site of the attendance, where addr2line is installed; it has two
// seconds.
std::vector<std::string> source_lines(const std::vector<Attendance>& all);

}  // namespace nearfield::hang_report
