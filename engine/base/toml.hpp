// The TOML library as Nearfield uses it: without a shared library of its own, without exceptions.
#pragma once
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// A line with nothing behind its bracket fails an assertion right before the parser reports it as an error.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "engine/base/result.hpp"

namespace nearfield {

inline Result<toml::table> read_toml(const std::string& path) {
  // Not by parse_file: where it is given a name it allocates inside a function that must not throw.
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) return system_error("reading " + path);
  auto parsed = toml::parse(std::string_view(content));
  if (parsed) return std::move(parsed).table();
  std::ostringstream text;
  text << path;
  if (const auto line = parsed.error().source().begin.line) text << ", line " << line;
  text << ": " << parsed.error().description();
  return Error{text.str()};
}

}  // namespace nearfield
