#include "engine/machine/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/base/toml.hpp"
#include "engine/processor/processor.h"

namespace nearfield::machine {
namespace {

template <double Machine::*member>
double& field(Machine& machine) {
  return machine.*member;
}
template <Handing Machine::*which, double Handing::*member>
double& handing(Machine& machine) {
  return machine.*which.*member;
}
template <double Network::*member>
double& network(Machine& machine) {
  return machine.network.*member;
}

constexpr MachineField fields[] = {
    {"line", "ns: a cache line from one core to another, one way", field<&Machine::line>},
    {"near", "ns: the same between cores that share a last-level cache; 0: as line", field<&Machine::near>},
    {"turn", "ns: from one rank to the next on a CPU that both want", field<&Machine::turn>},
    {"copy", "ns per byte: one core copies what another has just written, in cache", field<&Machine::copy>},
    {"fold", "ns per byte of operands: reducing in cache", field<&Machine::fold>},
    {"memory", "ns per byte: one core copies out of cache, the others idle", field<&Machine::memory>},
    {"all_memory", "ns per byte of the node: all cores copy out of cache", field<&Machine::all_memory>},
    {"cache", "bytes of one last-level cache; 0: as the system says", field<&Machine::cache>},
    {"cores", "cores that share one last-level cache; 0: all of them", field<&Machine::cores>},
    {"own", "bytes of the largest cache that a core has alone; 0: as the system says", field<&Machine::own>},
    {"span", "bytes over which copy buffers rotate; 0: from the caches", field<&Machine::span>},
    {"l1", "bytes of a core's first-level cache (simulator)", field<&Machine::l1>},
    {"l1_ways", "its ways (simulator)", field<&Machine::l1_ways>},
    {"l2", "bytes of a core's second-level cache (simulator)", field<&Machine::l2>},
    {"l2_ways", "its ways (simulator)", field<&Machine::l2_ways>},
    {"cache_ways", "ways of a last-level cache (simulator)", field<&Machine::cache_ways>},
    {"sockets", "sockets, among which the cores are divided (simulator)", field<&Machine::sockets>},
    {"cpus", "CPUs that ranks may use; 0: as the system says", field<&Machine::cpus>},
    {"pair_line", "ns: a cache line between two ranks that are near; 0: the next five are nobody's",
     handing<&Machine::handing, &Handing::line>},
    {"pair_own", "ns per byte: a core copies within its private cache", handing<&Machine::handing, &Handing::own>},
    {"pair_copy", "ns per byte: it copies what the other has just written", handing<&Machine::handing, &Handing::copy>},
    {"pair_left", "ns per byte: what writing that again costs more than before",
     handing<&Machine::handing, &Handing::left>},
    {"pair_fill", "ns per byte: into a copy buffer that has rested", handing<&Machine::handing, &Handing::fill>},
    {"pair_empty", "ns per byte: out of it", handing<&Machine::handing, &Handing::empty>},
    {"far_line", "ns: a cache line between two ranks that are far apart; 0: nothing is known of such",
     handing<&Machine::far_handing, &Handing::line>},
    {"far_own", "as pair_own", handing<&Machine::far_handing, &Handing::own>},
    {"far_copy", "as pair_copy", handing<&Machine::far_handing, &Handing::copy>},
    {"far_left", "as pair_left", handing<&Machine::far_handing, &Handing::left>},
    {"far_fill", "as pair_fill", handing<&Machine::far_handing, &Handing::fill>},
    {"far_empty", "as pair_empty", handing<&Machine::far_handing, &Handing::empty>},
    {"net_latency", "ns: a short message from node to node, one way", network<&Network::latency>},
    {"net_message", "ns: from one short message of a rank to its next", network<&Network::message>},
    {"net_byte", "ns per byte of a rank's long messages", network<&Network::byte>},
    {"net_node_message", "ns: from one short message of a node to its next, all its ranks sending",
     network<&Network::node_message>},
    {"net_node_byte", "ns per byte of a node's, all its ranks sending", network<&Network::node_byte>},
};

// Two measurements of the same state differ by that factor at most.
constexpr double alike = 1.5;
bool like(double a, double b) { return a > 0 && b > 0 && a < alike * b && b < alike * a; }

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
    field->value(machine) = *value;
  }
  return machine;
}

std::string describe(const Machine& machine) {
  std::string text;
  Machine copy = machine;
  for (const auto& field : fields) {
    char line[200];
    std::snprintf(line, sizeof line, "%s = %.6g  # %s\n", field.name, field.value(copy), field.meaning);
    text += line;
  }
  return text;
}

std::string cpu_model() {
  char text[160];
  processor::describe(text, sizeof text);
  std::string name(text);
  std::erase_if(name, [](char each) { return each == '"' || each == '\\' || static_cast<unsigned char>(each) < 0x20; });
  return name;
}

Result<Machine> read_stored_machine(const std::string& path) {
  auto table = read_toml(path);
  if (!table) return table.error();
  if ((*table)["cpu"].value<std::string>() != cpu_model()) return Error{path + " is of another CPU"};
  return read_machine(path);
}

Result<void> store_machine(const std::string& path, const Machine& machine) {
  std::error_code trouble;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), trouble);
  const std::string fresh = path + "." + std::to_string(getpid());
  const std::string text = "cpu = \"" + cpu_model() + "\"\n" + describe(machine);
  std::FILE* const file = std::fopen(fresh.c_str(), "we");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file)) || !written || std::rename(fresh.c_str(), path.c_str())) {
    const auto error = system_error("writing " + path);
    std::remove(fresh.c_str());
    return error;
  }
  return {};
}

const Handing* known_handing(const Machine& machine, double line) {
  // Virtual CPUs may be siblings on one core for a while. Such a line is shorter still, but counts as near.
  const double near = machine.handing.line;
  if (like(line, near) || (line < near && near < 3 * line)) return &machine.handing;
  return like(line, machine.far_handing.line) ? &machine.far_handing : nullptr;
}

void learn(Machine& machine, const Handing& found) {
  if (machine.handing.line == 0 || like(found.line, machine.handing.line)) {
    machine.handing = found;
  } else if (found.line > machine.handing.line) {
    machine.far_handing = found;
  } else {
    machine.far_handing = std::exchange(machine.handing, found);
  }
}

}  // namespace nearfield::machine
