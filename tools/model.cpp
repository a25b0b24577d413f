// nearfield-model predict OP RANKS SIZES [FILE]   prints the estimate of each algorithm, one JSON line per cell
// nearfield-model explain OP RANKS BYTES [FILE]   does so for one cell, with the properties of each algorithm; for
//                                                 messages, and operations made of them, prints their protocols
// nearfield-model constants                       prints the constants of estimates and of the choice, one JSON line
//                                                 each
// nearfield-model states                          reads times of a cache line, in ns, and prints the states of the
//                                                 machine (engine/machine/states.hpp), one JSON line each
// nearfield-model calibrate                       measures this machine's figures in about a second and stores them
// nearfield-model lines CPU-CPU...                measures the ns of a cache line one way between the CPUs of each
//                                                 pair (0: not measured), one JSON line each
// nearfield-model set NAME=NUMBER...              stores figures of this machine; the other stored ones stay
// nearfield-model plan ranks=N [NAME=VALUE...]    prints the memory that a node needs (plan.cpp)
//
// RANKS and SIZES are lists separated by commas; 64x96 are 64 nodes of 96 ranks each. FILE has the machine's figures;
// default: the stored figures, or the built-in ones. Commands that store figures print the name of the file.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "engine/choosing/choose.hpp"
#include "engine/hierarchy/costs.hpp"
#include "engine/hierarchy/rows.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/machine/states.hpp"
#include "engine/messages/protocol_ranges.hpp"
#include "engine/messages/publication.hpp"
#include "engine/reach/mappers.hpp"
#include "engine/settings/settings.hpp"
#include "engine/tuning/constants.hpp"
#include "tools/calibrate.hpp"
#include "tools/json.hpp"
#include "tools/plan.hpp"

namespace {

using namespace nearfield;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

collectives::Collective collective_of(const std::string& op) {
  if (const auto which = collectives::collective_named(op)) return *which;
  std::fprintf(stderr, "%s is not a collective of Nearfield\n", op.c_str());
  std::exit(2);
}

collectives::Call call_of(collectives::Collective which, const std::string& bytes) {
  collectives::Call call{which, std::strtoull(bytes.c_str(), nullptr, 10)};
  call.count = std::max<std::size_t>(call.bytes / 8, 1);
  return call;
}

void print_prediction(const team::Shape& shape, const collectives::Call& call) {
  const auto chosen = choosing::choose(shape, "", call);
  Json costs = Json::object(), behind = Json::object(), promising = Json::array();
  for (const auto& row : collectives::algorithms(call.collective)) {
    if (!row.applies(shape, call)) continue;
    const double cost = row.cost(shape, call);
    if (cost >= 1e11) continue;
    costs[row.name] = rounded(cost, 1);
    if (const double later = choosing::left_behind(shape, row, call); later > 0) behind[row.name] = rounded(later, 1);
  }
  for (const auto* row : chosen.promising) promising.push_back(row->name);
  print({{"op", collectives::name(call.collective)},
         {"ranks", shape.size},
         {"bytes", call.bytes},
         {"chosen", chosen.best->name},
         {"staged", (chosen.staged ? chosen.staged : chosen.best)->name},
         {"promising", promising},
         {"ns", costs},
         {"behind", behind}});
}

// Describes every row of the table: whether it applies, its estimate, and the part that does not depend on the length.
void print_rows(const team::Shape& shape, const collectives::Call& call) {
  const auto nothing = call_of(call.collective, "1");
  constexpr const char* reach[] = {"no", "send buffers", "receive buffers", "all buffers"};
  for (const auto& row : collectives::algorithms(call.collective))
    print({{"name", row.name},
           {"applies", row.applies(shape, call)},
           {"ns", rounded(row.cost(shape, call), 1)},
           {"fixed", rounded(row.cost(shape, nothing), 1)},
           {"behind", rounded(choosing::left_behind(shape, row, call), 1)},
           {"reach", reach[row.reach]},
           {"about", row.about}});
}

// ---------------------------------------------------------------- several nodes
void print_prediction(const hierarchy::HierarchyShape& shape, const collectives::Call& call) {
  Json costs = Json::object();
  const char* best = "host";  // serves calls to which no row applies
  double least = hierarchy::impossible;
  for (const auto& row : hierarchy::rows_of(call.collective)) {
    if (!row.run || !row.applies(shape, call)) continue;  // the time of the host's own algorithm is not known
    const double cost = row.cost(shape, call);
    costs[row.name] = rounded(cost, 1);
    if (cost < least) best = row.name, least = cost;
  }
  const Network& net = shape.node.machine.network;
  print({{"op", collectives::name(call.collective)},
         {"nodes", shape.nodes},
         {"ranks_per_node", shape.node.size},
         {"ranks", shape.ranks},
         {"bytes", call.bytes},
         {"chosen", best},
         {"ns", costs},
         {"chunks", hierarchy::chunks(shape, call)},
         {"network",
          {{"latency", net.latency},
           {"message", net.message},
           {"byte", net.byte},
           {"node_message", net.node_message},
           {"node_byte", net.node_byte}}}});
}

// Returns empty phases for a row whose estimate has none.
hierarchy::Phases phases_of(const hierarchy::HierarchyShape& shape, const hierarchy::HierarchyAlgorithm& row,
                            const collectives::Call& call) {
  if (row.cost == hierarchy::leader_cost) return hierarchy::leader_phases(shape, call);
  if (row.cost == hierarchy::lanes_cost) return hierarchy::lanes_phases(shape, call);
  if (row.cost == hierarchy::pipelined_cost) return hierarchy::chunk_phases(shape, call);
  return {};
}

void print_rows(const hierarchy::HierarchyShape& shape, const collectives::Call& call) {
  for (const auto& row : hierarchy::rows_of(call.collective)) {
    if (!row.run) continue;
    const bool applies = row.applies(shape, call);
    const auto phases = applies ? phases_of(shape, row, call) : hierarchy::Phases{};
    print({{"name", row.name},
           {"applies", applies},
           {"ns", applies ? rounded(row.cost(shape, call), 1) : 0},
           {"before", rounded(phases.before, 1)},
           {"network", rounded(phases.network, 1)},
           {"after", rounded(phases.after, 1)},
           {"about", row.about}});
  }
}

// Calls `what` with the shape that RANKS stands for: a team's, or that of several nodes.
template <class What>
void with_shape(const std::string& ranks, const Machine& machine, What what) {
  const std::size_t by = ranks.find('x');
  if (by == std::string::npos) return what(team::shape_for(std::max(2, std::atoi(ranks.c_str())), machine));
  const int nodes = std::max(1, std::atoi(ranks.c_str())), each = std::max(1, std::atoi(ranks.c_str() + by + 1));
  what(hierarchy::HierarchyShape{team::shape_for(each, machine), nodes, nodes * each, each});
}

int predict(const std::string& op, const std::string& ranks, const std::string& sizes, const Machine& machine) {
  const auto which = collective_of(op);
  for (const auto& each : split(ranks))
    for (const auto& bytes : split(sizes))
      with_shape(each, machine, [&](const auto& shape) { print_prediction(shape, call_of(which, bytes)); });
  return 0;
}

// Returns whether the operation is a message, or is made of messages.
bool is_of_messages(std::string_view op) {
  for (std::size_t c = collectives::collective_count; c < collectives::operation_count; ++c)
    if (op == collectives::name(collectives::Collective(c))) return true;
  return op == "message";
}

// Describes the ways to publish a record of several cache lines.
Json publications() {
  Json all = Json::array();
  for (const messages::Publication& each : messages::publications)
    all.push_back({{"name", each.name}, {"possible", each.possible()}, {"needs", each.needs}, {"about", each.about}});
  return all;
}

// Describes the protocols of a message. The first that fits is chosen; beyond copied_always a later one than `buffers`.
int explain_messages(const std::string& op, const std::string& ranks, const std::string& bytes,
                     const Machine& machine) {
  const std::uint64_t length = std::strtoull(bytes.c_str(), nullptr, 10);
  const bool over_nodes = ranks.find('x') != std::string::npos;
  std::string complaints;
  const Settings settings = read_settings(complaints);
  const auto describe = [&](const team::Shape& shape, int all) {
    const messages::Limits limits = messages::limits(settings, shape.oversubscribed(), machine.own);
    const messages::ProtocolRange* chosen = nullptr;
    const auto applies = [&](const messages::ProtocolRange& range) {
      return length >= range.from(limits) && length <= range.to(limits);
    };
    for (const messages::ProtocolRange& range : messages::protocol_ranges)
      if (applies(range) && (!chosen || (length > limits.copied_always && chosen->name == std::string("buffers"))))
        chosen = &range;
    print({{"op", op},
           {"ranks", all},
           {"bytes", length},
           {"chosen", chosen->name},
           {"made_of", "messages"},
           {"publications", publications()},
           {"nodes", over_nodes ? std::atoi(ranks.c_str()) : 1}});
    for (const messages::ProtocolRange& range : messages::protocol_ranges) {
      const std::uint64_t to = range.to(limits);
      print({{"name", range.name},
             {"applies", applies(range)},
             {"from", range.from(limits)},
             {"to", to == ~std::uint64_t{0} ? Json() : Json(to)},
             {"needs", range.needs},
             {"about", range.about}});
    }
  };
  with_shape(ranks, machine, [&](const auto& shape) {
    if constexpr (requires { shape.node; }) describe(shape.node, shape.ranks);
    else describe(shape, shape.size);
  });
  return 0;
}

int explain(const std::string& op, const std::string& ranks, const std::string& bytes, const Machine& machine) {
  if (is_of_messages(op)) return explain_messages(op, ranks, bytes, machine);
  const auto call = call_of(collective_of(op), bytes);
  with_shape(ranks, machine, [&](const auto& shape) {
    print_prediction(shape, call);
    print_rows(shape, call);
  });
  return 0;
}

// ---------------------------------------------------------------- constants
int print_constants() {
  const auto print_one = [](const std::string& name, const char* unit, double value, const std::string& about,
                            const char* measured) {
    print({{"name", name}, {"unit", unit}, {"value", value}, {"about", about}, {"measured", measured}});
  };
  for (const tuning::Constant& each : tuning::constants_table)
    print_one(each.name, each.unit, each.value, each.about, each.measured);
  for (const reach::MemoryMapper* const each : reach::mappers()) {
    const auto print_cost = [&](const char* what, double value, const char* about) {
      print_one(std::string("reach_") + each->name + "_" + what, "ns", value, std::string(each->name) + ": " + about,
                "a usual machine; trials find the best way");
    };
    print_cost("access", each->costs.access, "a byte that is loaded and stored, or read by a call");
    print_cost("call", each->costs.call, "one access");
    print_cost("attach", each->costs.attach, "a region that is not attached yet");
    print_cost("page", each->costs.page, "each of its pages, at the first touch");
  }
  return 0;
}

// ---------------------------------------------------------------- states
int print_states() {
  std::vector<double> lines;
  for (double line; std::cin >> line;)
    if (line > 0) lines.push_back(line);
  for (const MachineState& state : find_states(lines))
    print({{"low", rounded(state.low, 1)},
           {"middle", rounded(state.middle, 1)},
           {"high", rounded(state.high, 1)},
           {"border", std::isinf(state.border) ? Json() : Json(rounded(state.border, 1))},
           {"lines", state.lines}});
  return 0;
}

// ---------------------------------------------------------------- lines
int print_lines(std::span<char*> pairs) {
  const machine::CpuSet allowed = machine::available_cpus().allowed;
  const auto usable = [&](int cpu) { return cpu >= 0 && cpu < 1024 && allowed.bits[std::size_t(cpu)]; };
  for (const char* const pair : pairs) {
    int first = -1, second = -1, length = 0;
    const bool whole = std::sscanf(pair, "%d-%d%n", &first, &second, &length) == 2 && !pair[length];
    if (!whole || !usable(first) || !usable(second) || first == second) {
      std::fprintf(stderr, "%s is not a pair of two CPUs out of %s\n", pair, allowed.list().c_str());
      return 2;
    }
    print({{"first", first}, {"second", second}, {"ns", rounded(measure_line(first, second), 1)}});
  }
  return 0;
}

// ---------------------------------------------------------------- what is stored
int store(const Machine& machine) {
  const auto stored = store_machine(stored_machine(), machine);
  if (!stored) std::fprintf(stderr, "%s\n", stored.error().text.c_str());
  else std::puts(stored_machine().c_str());
  return stored ? 0 : 1;
}

int set(std::span<char*> figures) {
  Machine machine;
  if (auto known = read_stored_machine(stored_machine())) machine = *known;
  for (const std::string figure : figures) {
    const std::size_t sign = std::min(figure.find('='), figure.size());
    const auto field = std::ranges::find(machine_fields(), figure.substr(0, sign), &MachineField::name);
    char* end = nullptr;
    const char* const text = figure.c_str() + std::min(sign + 1, figure.size());
    const double value = std::strtod(text, &end);
    if (field == machine_fields().end() || end == text || *end || !(value >= 0) || std::isinf(value)) {
      std::fprintf(stderr, "%s is not a figure of a machine\n", figure.c_str());
      return 2;
    }
    field->value(machine) = value;
  }
  return store(machine);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "constants" && argc == 2) return print_constants();
  if (command == "states" && argc == 2) return print_states();
  if (command == "calibrate" && argc == 2) return store(calibrate());
  if (command == "lines" && argc > 2) return print_lines({argv + 2, std::size_t(argc - 2)});
  if (command == "plan") return plan_memory(argc - 1, argv + 1);
  if (command == "set" && argc > 2) return set({argv + 2, std::size_t(argc - 2)});
  if ((argc == 5 || argc == 6) && (command == "predict" || command == "explain")) {
    Machine machine;
    auto read = argc == 6 ? read_machine(argv[5]) : read_stored_machine(stored_machine());
    if (read) {
      machine = *read;
    } else if (argc == 6) {
      std::fprintf(stderr, "%s\n", read.error().text.c_str());
      return 2;
    }
    const machine::Cpus cpus = machine::available_cpus();
    const machine::Caches caches = machine::read_caches(cpus);
    if (machine.cpus == 0) machine.cpus = cpus.available();
    if (machine.cache == 0) machine.cache = double(caches.largest);
    if (machine.own == 0) machine.own = argc == 6 ? machine.l2 : double(caches.own);
    return (command == "predict" ? predict : explain)(argv[2], argv[3], argv[4], machine);
  }
  std::fprintf(
      stderr,
      "usage: %s predict OP RANKS SIZES [FILE] | explain OP RANKS BYTES [FILE] | constants | states | calibrate |"
      " lines CPU-CPU... | set NAME=NUMBER... | plan ranks=N [NAME=VALUE...]\n",
      argv[0]);
  return 2;
}
