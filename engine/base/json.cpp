#include "engine/base/json.hpp"

#include <cstdio>

namespace nearfield::json {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
      char code[8];
      const unsigned byte = static_cast<unsigned char>(c);
      std::snprintf(code, sizeof code, "\\u%04x", byte < 0x80 ? byte : 0xdc00 + byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace nearfield::json
