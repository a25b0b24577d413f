// Reads and writes small files whole, without streams: the first stream of a process builds the locale's facets, which
// touch a sixth of a MiB of the library's pages in each of 2 ranks.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace nearfield {

/// Returns the contents of a file; nothing if it cannot be read, and errno says why.
std::optional<std::string> read_file(const std::string& path);

/// Returns the contents of a file; "" if it cannot be read.
inline std::string contents(const std::string& path) { return read_file(path).value_or(std::string()); }

/// Writes a file that appears under its name when it is whole. False: it cannot be written, and errno says why.
bool write_whole(const std::string& path, const std::string& text);

/// Returns `path` relative to the current directory as an absolute path, since programs change directories; "" stays.
/// In a `pattern` percent signs of the directory are doubled.
std::string absolute_path(const std::string& path, bool pattern);

/// Removes the part before the first `separator`, or all, from `rest` and returns it; the separator goes as well.
inline std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return part;
}

}  // namespace nearfield
