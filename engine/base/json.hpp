// JSON.
#pragma once
#include <string>
#include <string_view>

namespace nearfield::json {

/// Returns `text` as a JSON string; bytes beyond ASCII are encoded as by Python's surrogateescape.
std::string quoted(std::string_view text);

}  // namespace nearfield::json
