#include "engine/reach/mappers.hpp"

#include <algorithm>

namespace nearfield::reach {

Result<std::uint32_t> parse_left_out(const std::string& text) {
  std::uint32_t mask = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    bool known = false;
    std::string names;
    for (std::size_t w = 0; w < mapper_count; ++w) {
      names += std::string(w ? ", ^" : "^") + rows[w]->name;
      if (word != std::string("^") + rows[w]->name &&
          (!rows[w]->part_of || word != std::string("^") + rows[w]->part_of))
        continue;
      mask |= 1u << w;
      known = true;
    }
    if (!known) return Error{"\"" + word + "\" is not one of " + names};
  }
  return mask;
}

}  // namespace nearfield::reach
