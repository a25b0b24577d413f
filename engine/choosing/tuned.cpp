#include "engine/choosing/tuned.hpp"

#include <algorithm>
#include <cmath>

#include "engine/base/toml.hpp"
#include "engine/collectives/table.hpp"
#include "engine/tuning/lengths.hpp"

namespace nearfield::choosing {

Result<Tuned> Tuned::read(const std::string& path) {
  auto table = read_toml(path);
  if (!table) return table.error();
  const auto* const cells = (*table)["cell"].as_array();
  if (!cells) return Error{path + " has no [[cell]]; `nearfield tune` writes such files"};
  Tuned tuned;
  for (const auto& node : *cells) {
    const toml::table* const entry = node.as_table();
    auto wrong = [&](const std::string& what) {
      return Error{path + ", line " + std::to_string(node.source().begin.line) + ": " + what};
    };
    if (!entry) return wrong("no table");
    const auto op = (*entry)["op"].value<std::string>();
    const auto ranks = (*entry)["ranks"].value<std::int64_t>(), bytes = (*entry)["bytes"].value<std::int64_t>();
    if (!op || !ranks || !bytes || *ranks < 2 || *bytes < 0) return wrong("a cell has op, ranks and bytes");
    const auto which = collectives::collective_named(*op);
    if (!which) return wrong("\"" + *op + "\" is not a collective");
    Cell cell{*which, int(*ranks), tuning::size_class(std::size_t(*bytes)), {0, 0}};
    const auto rows = collectives::algorithms(*which);
    constexpr const char* keys[] = {"algorithm", "staged"};
    for (int i = 0; i < 2; ++i) {
      const auto name = (*entry)[keys[i]].value<std::string>();
      if (!name) continue;
      std::size_t row = 0;
      while (row < rows.size() && *name != rows[row].name) ++row;
      if (row == rows.size()) return wrong("\"" + *name + "\" is not an algorithm of " + *op);
      cell.row[i] = std::uint8_t(row + 1);
    }
    tuned.cells_.push_back(cell);
  }
  return tuned;
}

void Tuned::fill_in(int size, std::uint8_t (&rows)[collectives::collective_count][64][2]) const {
  int nearest = 0;
  auto distance = [&](int ranks) { return std::abs(std::log(double(ranks) / size)); };
  for (const Cell& cell : cells_)
    if (distance(cell.ranks) <= std::log(1.5) && (!nearest || distance(cell.ranks) < distance(nearest)))
      nearest = cell.ranks;
  for (const Cell& cell : cells_)
    if (cell.ranks == nearest) std::copy_n(cell.row, 2, rows[std::size_t(cell.collective)][cell.size_class]);
}

}  // namespace nearfield::choosing
