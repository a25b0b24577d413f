// Small files, whole, without streams: the first stream of a process builds the locale's facets, which touch pages of
// the library: a sixth of a MiB a rank at 2 ranks.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace nearfield {

/// What a file holds; nothing where it cannot be read, and errno says why.
std::optional<std::string> read_file(const std::string& path);

/// The same, "" where it cannot be read.
inline std::string contents(const std::string& path) { return read_file(path).value_or(std::string()); }

/// The file appears under its name when it is whole. False where it cannot be written, and errno says why.
bool write_whole(const std::string& path, const std::string& text);

/// From the present directory on, since programs change it; in a `pattern` a percent sign is written twice. "" stays.
std::string absolute_path(const std::string& path, bool pattern);

/// What comes before the first `separator`, or all of it; taken from `rest` with the separator.
inline std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return part;
}

}  // namespace nearfield
