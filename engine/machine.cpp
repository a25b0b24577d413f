#include "engine/machine.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace nearfield {
namespace {

constexpr MachineField fields[] = {
    {"line", &Machine::line, "ns: a cache line from one core to another, one way"},
    {"turn", &Machine::turn, "ns: from one rank to the next on a CPU that both want"},
    {"copy", &Machine::copy, "ns per byte: one core copies what another has just written, in cache"},
    {"fold", &Machine::fold, "ns per byte of operands: reducing in cache"},
    {"memory", &Machine::memory, "ns per byte: one core copies out of cache, the others idle"},
    {"all_memory", &Machine::all_memory, "ns per byte of the node: all cores copy out of cache"},
    {"cache", &Machine::cache, "bytes of one last-level cache; 0: as the system says"},
    {"cores", &Machine::cores, "cores that share one last-level cache; 0: all of them"},
    {"cpus", &Machine::cpus, "CPUs that ranks may use; 0: as the system says"},
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

}  // namespace

std::span<const MachineField> machine_fields() { return fields; }

Result<Machine> read_machine(const std::string& path) {
  std::ifstream file(path);
  if (!file) return system_error("opening " + path);
  Machine machine;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty() || line[0] == '[') continue;
    const auto equals = line.find('=');
    const std::string name = trimmed(line.substr(0, equals));
    const std::string text = equals == std::string::npos ? "" : trimmed(line.substr(equals + 1));
    if (!text.empty() && text[0] == '"') continue;  // descriptions
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const MachineField* found = nullptr;
    for (const auto& field : fields)
      if (name == field.name) found = &field;
    if (!found || text.empty() || *end || !(value >= 0)) {
      std::string names;
      for (const auto& field : fields) names += (names.empty() ? "" : ", ") + std::string(field.name);
      return Error{path + ", line " + std::to_string(number) + ": \"" + line + "\" is not a number for one of " +
                   names};
    }
    machine.*found->value = value;
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
