#include "engine/machine.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/toml.hpp"

namespace nearfield {
namespace {

constexpr MachineField fields[] = {
    {"line", &Machine::line, "ns: a cache line from one core to another, one way"},
    {"near", &Machine::near, "ns: the same between cores that share a last-level cache; 0: as line"},
    {"turn", &Machine::turn, "ns: from one rank to the next on a CPU that both want"},
    {"copy", &Machine::copy, "ns per byte: one core copies what another has just written, in cache"},
    {"fold", &Machine::fold, "ns per byte of operands: reducing in cache"},
    {"memory", &Machine::memory, "ns per byte: one core copies out of cache, the others idle"},
    {"all_memory", &Machine::all_memory, "ns per byte of the node: all cores copy out of cache"},
    {"cache", &Machine::cache, "bytes of one last-level cache; 0: as the system says"},
    {"cores", &Machine::cores, "cores that share one last-level cache; 0: all of them"},
    {"own", &Machine::own, "bytes of the largest cache that a core has alone; 0: as the system says"},
    {"span", &Machine::span, "bytes over which copy buffers rotate; 0: from the caches"},
    {"l1", &Machine::l1, "bytes of a core's first-level cache (simulator)"},
    {"l1_ways", &Machine::l1_ways, "its ways (simulator)"},
    {"l2", &Machine::l2, "bytes of a core's second-level cache (simulator)"},
    {"l2_ways", &Machine::l2_ways, "its ways (simulator)"},
    {"cache_ways", &Machine::cache_ways, "ways of a last-level cache (simulator)"},
    {"sockets", &Machine::sockets, "sockets, among which the cores are divided (simulator)"},
    {"cpus", &Machine::cpus, "CPUs that ranks may use; 0: as the system says"},
};

}  // namespace

std::span<const MachineField> machine_fields() { return fields; }

Result<Machine> read_machine(const std::string& path) {
  auto table = read_toml(path);
  if (!table) return table.error();
  Machine machine;
  for (const auto& [key, node] : *table) {
    if (node.is_string() || node.is_table()) continue;  // descriptions
    const auto value = node.value<double>();
    const auto* const field = std::ranges::find(fields, std::string_view(key.str()), &MachineField::name);
    if (field == std::end(fields) || !value || !(*value >= 0)) {
      std::string names;
      for (const auto& known : fields) names += (names.empty() ? "" : ", ") + std::string(known.name);
      return Error{path + ", line " + std::to_string(node.source().begin.line) + ": \"" + std::string(key.str()) +
                   "\" is not a number for one of " + names};
    }
    machine.*field->value = *value;
  }
  return machine;
}

std::string describe(const Machine& machine) {
  std::string text;
  for (const auto& field : fields) {
    char line[200];
    std::snprintf(line, sizeof line, "%s = %.6g  # %s\n", field.name, machine.*field.value, field.meaning);
    text += line;
  }
  return text;
}

}  // namespace nearfield
