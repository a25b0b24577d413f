// Where in a program something is: object, offset and symbol by the loader, file and line by addr2line.
#pragma once
#include <string>
#include <vector>

#include "engine/roll/report.hpp"

namespace nearfield::roll {

// "program+0x1234 (main)" for an address that a call returns to.
std::string site_of(const void* returns_to);
// "program+0x1234: main at file.c:12" for each site of the attendance, where addr2line is installed; it has two
// seconds.
std::vector<std::string> source_lines(const std::vector<Attendance>& all);

}  // namespace nearfield::roll
