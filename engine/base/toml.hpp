// Configures the TOML library: header only, without exceptions.
#pragma once
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_FLOAT_CHARCONV 1  // numbers are parsed without streams (files.hpp)
// Without assertions: the parser asserts right before it reports a line with nothing behind its bracket.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "engine/base/files.hpp"
#include "engine/base/result.hpp"

namespace nearfield {

inline Result<toml::table> read_toml(const std::string& path) {
  // parse_file is not used: it copies the path inside a function that must not throw.
  const auto content = read_file(path);
  if (!content) return system_error("reading " + path);
  auto parsed = toml::parse(std::string_view(*content));
  if (parsed) return std::move(parsed).table();
  const auto line = parsed.error().source().begin.line;
  const std::string where = line ? path + ", line " + std::to_string(line) : path;
  return Error{where + ": " + std::string(parsed.error().description())};
}

}  // namespace nearfield
