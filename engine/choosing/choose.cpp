#include "engine/choosing/choose.hpp"

#include <vector>

namespace nearfield::choosing {
namespace {

using collectives::Algorithm;
using collectives::Collective;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct Sentence {
  std::string_view collective;
  std::vector<std::string_view> names;  // with their ^
};

Sentence parse(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), split(colon < text.size() ? text.substr(colon + 1) : std::string_view{}, ',')};
}

// Whether the override lets an algorithm be used: 2 forced, 1 allowed, 0 excluded.
int standing(std::string_view override_text, const Algorithm& algorithm) {
  int result = 1;
  for (const auto part : split(override_text, ';')) {
    const Sentence sentence = parse(part);
    if (sentence.collective != collectives::name(algorithm.collective)) continue;
    for (auto name : sentence.names) {
      const bool excluded = name.front() == '^';
      if (excluded) name.remove_prefix(1);
      if (name == algorithm.name) result = excluded ? 0 : 2;
    }
  }
  return result;
}

}  // namespace

std::string complain_about(std::string_view override_text) {
  for (const auto part : split(override_text, ';')) {
    const Sentence sentence = parse(part);
    std::string names;
    for (std::size_t c = 0; c < collectives::collective_count; ++c)
      names += (c ? ", " : "") + std::string(collectives::name(Collective(c)));
    std::size_t which = 0;
    while (which < collectives::collective_count && sentence.collective != collectives::name(Collective(which)))
      ++which;
    if (which == collectives::collective_count)
      return "\"" + std::string(sentence.collective) + "\" is not a collective; there are " + names;
    const auto rows = collectives::algorithms(Collective(which));
    names.clear();
    for (const auto& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
    if (sentence.names.empty())
      return "\"" + std::string(part) + "\" names no algorithm; " + std::string(sentence.collective) + " has " + names;
    std::size_t excluded = 0;
    for (auto name : sentence.names) {
      if (name.front() == '^') {
        name.remove_prefix(1);
        ++excluded;
      }
      bool known = false;
      for (const auto& row : rows) known |= name == row.name;
      if (!known)
        return "\"" + std::string(name) + "\" is not an algorithm of " + std::string(sentence.collective) +
               "; there are " + names;
    }
    if (excluded >= rows.size())
      return "\"" + std::string(part) + "\" leaves no algorithm of " + std::string(sentence.collective);
  }
  return {};
}

bool choose_slowly(team::Team& team, const collectives::Call& call, team::Team::Choice& choice) {
  struct Best {
    const Algorithm* algorithm = nullptr;
    int standing = -1;
    double cost = 0;
    void consider(const Algorithm& row, int its_standing, double its_cost) {
      if (its_standing < standing || (its_standing == standing && its_cost >= cost)) return;
      *this = {&row, its_standing, its_cost};
    }
  } best, best_staged;
  for (const auto& row : collectives::algorithms(call.collective)) {
    if (!row.applies(team.shape(), call)) continue;
    const int rank = standing(team.algorithm_text, row);
    const double cost = row.cost(team.shape(), call);
    best.consider(row, rank, cost);
    if (row.reach == collectives::staged) best_staged.consider(row, rank, cost);
  }
  choice = {best.algorithm, best_staged.algorithm, 0, 0};
  return best.algorithm != nullptr;
}

}  // namespace nearfield::choosing
