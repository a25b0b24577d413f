#include "engine/machine/machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/base/toml.hpp"
#include "engine/machine/states.hpp"
#include "engine/processor/processor.h"

namespace nearfield::machine {
namespace {

template <double Machine::*member>
double& field(Machine& machine) {
  return machine.*member;
}
template <PairCosts Machine::*which, double PairCosts::*member>
double& pair_cost(Machine& machine) {
  return machine.*which.*member;
}
template <int which, double PairCosts::*member>
double& further(Machine& machine) {
  return machine.further[which].*member;
}
template <double Network::*member>
double& network(Machine& machine) {
  return machine.network.*member;
}

constexpr MachineField fields[] = {
    {"line", "ns: a cache line from one core to another, one way", field<&Machine::line>},
    {"near", "ns: a cache line between cores that share a last-level cache; 0: as line", field<&Machine::near>},
    {"turn", "ns: the switch from one rank to the next on a CPU that they share", field<&Machine::turn>},
    {"copy", "ns per byte: one core copies what another has just written, in cache", field<&Machine::copy>},
    {"fold", "ns per byte of operands: reducing in cache", field<&Machine::fold>},
    {"memory", "ns per byte: one core copies out of cache, the others idle", field<&Machine::memory>},
    {"all_memory", "ns per byte of the node: all cores copy out of cache", field<&Machine::all_memory>},
    {"cache", "bytes of one last-level cache; 0: as the system says", field<&Machine::cache>},
    {"cores", "cores that share one last-level cache; 0: all of them", field<&Machine::cores>},
    {"own", "bytes of the largest cache that a core has alone; 0: as the system says", field<&Machine::own>},
    {"span", "bytes over which copy buffers rotate; 0: from the caches", field<&Machine::span>},
    {"l1", "bytes of a core's first-level cache (simulator)", field<&Machine::l1>},
    {"l1_ways", "ways of that cache (simulator)", field<&Machine::l1_ways>},
    {"l2", "bytes of a core's second-level cache (simulator)", field<&Machine::l2>},
    {"l2_ways", "ways of that cache (simulator)", field<&Machine::l2_ways>},
    {"cache_ways", "ways of a last-level cache (simulator)", field<&Machine::cache_ways>},
    {"sockets", "sockets, among which the cores are divided (simulator)", field<&Machine::sockets>},
    {"cpus", "CPUs that ranks may use; 0: as the system says", field<&Machine::cpus>},
    {"pair_line", "ns: a cache line between two ranks, in the state with the shortest time; 0: not measured",
     pair_cost<&Machine::near_pair, &PairCosts::line>},
    {"pair_own", "ns per byte: a core copies within its private cache",
     pair_cost<&Machine::near_pair, &PairCosts::own>},
    {"pair_copy", "ns per byte: a core copies what the other core has just written",
     pair_cost<&Machine::near_pair, &PairCosts::copy>},
    {"pair_left", "ns per byte: the other core writes that again: time beyond that before it was read",
     pair_cost<&Machine::near_pair, &PairCosts::left>},
    {"pair_fill", "ns per byte: a core fills a copy buffer that was not in use for a while",
     pair_cost<&Machine::near_pair, &PairCosts::fill>},
    {"pair_empty", "ns per byte: the other core reads that buffer", pair_cost<&Machine::near_pair, &PairCosts::empty>},
    {"pair_kind", "number of the kind of stores with which pair_fill and pair_empty were measured",
     pair_cost<&Machine::near_pair, &PairCosts::kind>},
    {"pair_times", "how often these figures were measured", pair_cost<&Machine::near_pair, &PairCosts::times>},
    {"pair_hour", "when they were last measured, in hours since 1970",
     pair_cost<&Machine::near_pair, &PairCosts::hour>},
    {"far_line", "ns: a cache line in the state with the next longer time; 0: no other state is known",
     pair_cost<&Machine::far_pair, &PairCosts::line>},
    {"far_own", "as pair_own", pair_cost<&Machine::far_pair, &PairCosts::own>},
    {"far_copy", "as pair_copy", pair_cost<&Machine::far_pair, &PairCosts::copy>},
    {"far_left", "as pair_left", pair_cost<&Machine::far_pair, &PairCosts::left>},
    {"far_fill", "as pair_fill", pair_cost<&Machine::far_pair, &PairCosts::fill>},
    {"far_empty", "as pair_empty", pair_cost<&Machine::far_pair, &PairCosts::empty>},
    {"far_kind", "as pair_kind", pair_cost<&Machine::far_pair, &PairCosts::kind>},
    {"far_times", "as pair_times", pair_cost<&Machine::far_pair, &PairCosts::times>},
    {"far_hour", "as pair_hour", pair_cost<&Machine::far_pair, &PairCosts::hour>},
    {"third_line", "ns: a cache line in the third state", further<0, &PairCosts::line>},
    {"third_own", "as pair_own", further<0, &PairCosts::own>},
    {"third_copy", "as pair_copy", further<0, &PairCosts::copy>},
    {"third_left", "as pair_left", further<0, &PairCosts::left>},
    {"third_fill", "as pair_fill", further<0, &PairCosts::fill>},
    {"third_empty", "as pair_empty", further<0, &PairCosts::empty>},
    {"third_kind", "as pair_kind", further<0, &PairCosts::kind>},
    {"third_times", "as pair_times", further<0, &PairCosts::times>},
    {"third_hour", "as pair_hour", further<0, &PairCosts::hour>},
    {"fourth_line", "ns: a cache line in the fourth state", further<1, &PairCosts::line>},
    {"fourth_own", "as pair_own", further<1, &PairCosts::own>},
    {"fourth_copy", "as pair_copy", further<1, &PairCosts::copy>},
    {"fourth_left", "as pair_left", further<1, &PairCosts::left>},
    {"fourth_fill", "as pair_fill", further<1, &PairCosts::fill>},
    {"fourth_empty", "as pair_empty", further<1, &PairCosts::empty>},
    {"fourth_kind", "as pair_kind", further<1, &PairCosts::kind>},
    {"fourth_times", "as pair_times", further<1, &PairCosts::times>},
    {"fourth_hour", "as pair_hour", further<1, &PairCosts::hour>},
    {"net_latency", "ns: a short message from node to node, one way", network<&Network::latency>},
    {"net_message", "ns: from one short message of a rank to its next", network<&Network::message>},
    {"net_byte", "ns per byte of a rank's long messages", network<&Network::byte>},
    {"net_node_message", "ns: from one short message of a node to its next, if all its ranks send",
     network<&Network::node_message>},
    {"net_node_byte", "ns per byte of a node's long messages, if all its ranks send", network<&Network::node_byte>},
};

// A place for the figures of each state, the shortest line first.
template <class Constness>
auto places(Constness& machine) {
  return std::array{&machine.near_pair, &machine.far_pair, &machine.further[0], &machine.further[1]};
}

double apart(double a, double b) { return std::abs(std::log(a / b)); }
double of_a_byte(const PairCosts& costs) { return costs.own + costs.copy + costs.left + costs.fill + costs.empty; }

// Hours between one measurement of a job and the next: a file is not of one busy minute, hour or day alone.
constexpr double rests[std::size_t(measured_enough)] = {0, 0, 0, 1, 24};

}  // namespace

std::span<const MachineField> machine_fields() { return fields; }

namespace {

Result<Machine> figures_of(const toml::table& table, const std::string& path) {
  Machine machine;
  for (const auto& [key, node] : table) {
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

}  // namespace

Result<Machine> read_machine(const std::string& path) {
  auto table = read_toml(path);
  return table ? figures_of(*table, path) : table.error();
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
  return figures_of(*table, path);
}

Result<void> store_machine(const std::string& path, const Machine& machine) {
  std::error_code trouble;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), trouble);
  std::string fresh = path + ".XXXXXX";  // processes of several containers may have the same number
  const int descriptor = mkostemp(fresh.data(), O_CLOEXEC);
  // Every start reads it, so it has no comments, and no figures that are built in.
  std::string text = "cpu = \"" + cpu_model() + "\"\n";
  Machine copy = machine, built_in;
  for (const auto& field : fields) {
    char line[80];
    std::snprintf(line, sizeof line, "%s = %.6g\n", field.name, field.value(copy));
    if (field.value(copy) != field.value(built_in)) text += line;
  }
  std::FILE* const file = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file)) || !written || std::rename(fresh.c_str(), path.c_str())) {
    const auto error = system_error("writing " + path);
    std::remove(fresh.c_str());
    return error;
  }
  return {};
}

PairStates pair_states(const Machine& machine) {
  PairStates states;
  std::ranges::transform(places(machine), states.begin(), [](const PairCosts* each) { return *each; });
  return states;
}

const PairCosts* known_pair(const Machine& machine, double line) {
  const PairCosts* found = nullptr;
  for (const PairCosts* each : places(machine))
    if (like(line, each->line) && (!found || apart(line, each->line) < apart(line, found->line))) found = each;
  if (found) return found;
  // Virtual CPUs may be siblings on one core for a while. Such a line is shorter still, but counts as near.
  const double near = machine.near_pair.line;
  return line < near && near < 3 * line ? &machine.near_pair : nullptr;
}

const PairCosts* slower_pair(const Machine& machine, double line, bool slowest) {
  const PairCosts* found = nullptr;
  for (const PairCosts* each : places(machine))
    if (each->line > line && !like(line, each->line) && (!found || slowest)) found = each;
  return found;
}

bool to_be_measured(const Machine& machine, double line, double hour) {
  const PairCosts* const known = known_pair(machine, line);
  if (!known) return true;
  if (!like(line, known->line) || known->times >= measured_enough) return false;
  return std::abs(hour - known->hour) >= rests[std::size_t(known->times)];
}

void learn(Machine& machine, const PairCosts& measured) {
  constexpr std::size_t most = std::tuple_size_v<decltype(places(machine))>;
  std::array<PairCosts, most + 1> states;
  PairCosts found = measured;
  std::size_t count = 0;
  for (const PairCosts* each : places(machine)) {
    if (each->line <= 0) continue;
    if (!like(each->line, measured.line)) {
      states[count++] = *each;
    } else if (measured.times < measured_enough) {  // it has been measured again
      const double times = std::max(found.times, each->times);
      if (of_a_byte(*each) < of_a_byte(found)) found = *each;
      found.times = times;
      found.hour = measured.hour;
    }
  }
  found.times = std::min(found.times + 1, measured_enough);
  states[count++] = found;
  std::sort(states.begin(), states.begin() + count,
            [](const PairCosts& a, const PairCosts& b) { return a.line < b.line; });
  if (count > most) {  // of the two that are least apart, the one that is not new goes
    std::size_t at = 1;
    for (std::size_t i = 2; i < count; ++i)
      if (apart(states[i].line, states[i - 1].line) < apart(states[at].line, states[at - 1].line)) at = i;
    if (states[at].line == found.line) --at;
    std::copy(states.begin() + at + 1, states.begin() + count--, states.begin() + at);
  }
  for (std::size_t i = 0; i < most; ++i) {
    if (i < count) *places(machine)[i] = states[i];
    else places(machine)[i]->line = 0;
  }
}

}  // namespace nearfield::machine
