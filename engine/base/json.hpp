// Texts of JSON.
#pragma once
#include <string>
#include <string_view>

namespace nearfield::json {

/// `text` between quotation marks; a byte that is no ASCII as Python's surrogateescape has it.
std::string quoted(std::string_view text);

}  // namespace nearfield::json
