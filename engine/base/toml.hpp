// The TOML library as Nearfield uses it: without a shared library of its own, without exceptions.
#pragma once
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// A line with nothing behind its bracket fails an assertion right before the parser reports it as an error.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include <sstream>

#include "engine/base/result.hpp"

namespace nearfield {

inline Result<toml::table> read_toml(const std::string& path) {
  auto parsed = toml::parse_file(path);
  if (parsed) return std::move(parsed).table();
  std::ostringstream text;
  text << path;
  if (const auto line = parsed.error().source().begin.line) text << ", line " << line;
  text << ": " << parsed.error().description();
  return Error{text.str()};
}

}  // namespace nearfield
