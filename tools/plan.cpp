// nearfield-model plan ranks=N [NAME=VALUE...]   prints one JSON object: the memory that Nearfield needs on a node,
//                                                where it should lie, and what this gains by the cost model
//
//   ranks=N          processes on the node
//   partners=N       number of ranks that each rank sends to; default: all others
//   collectives=0    the program calls no collectives on arrays that peers cannot reach
//   long=0           the program sends no messages that are too long to travel with their envelopes
//   communicators=N  number of further communicators of all ranks
//   heap=BYTES, windows=BYTES, alloc-mem=BYTES    memory that the program itself allocates in one rank; windows: in one
//   fastboxes=BYTES, copy-buffers=BYTES, control=BYTES    measured bytes of one rank, in place of computed ones
//   machine=FILE     figures of a machine; default: this one
//   calls=NAME:BYTES,...    collectives for which the model estimates what placement gains
//
// The bytes that a rank needs are not computed: this process makes the allocations of a rank in a segment of its own,
// with the engine's sizes and arena. The engine also decides where a wished placement leads (placement.hpp).
#include "tools/plan.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/toml.hpp"
#include "engine/choosing/chooser.hpp"
#include "engine/collectives/costs.hpp"
#include "engine/creation/create.hpp"
#include "engine/machine/cpus.hpp"
#include "engine/memory/copy_buffers.hpp"
#include "engine/memory/numa.hpp"
#include "engine/memory/placement.hpp"
#include "engine/messages/fastbox.hpp"
#include "engine/messages/fastbox_room.hpp"
#include "engine/team/team.hpp"
#include "engine/windows/control_block.hpp"
#include "tools/json.hpp"

namespace {

using namespace nearfield;
using machine::MemoryNode;
using memory::Component;
using Bytes = std::array<std::size_t, memory::component_count>;

constexpr std::size_t page = 4096, mebibyte = 1 << 20;
constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}
template <class T>
T value_of(Result<T> result) {
  if (!result) give_up(result.error().text);
  return std::move(*result);
}

constexpr Component computed[] = {Component::fastboxes, Component::copy_buffers, Component::control};

// ---------------------------------------------------------------- what is asked

class Asked {
 public:
  explicit Asked(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const std::size_t sign = word.find('=');
      if (sign == word.npos) give_up(word + " is no NAME=VALUE");
      values_[word.substr(0, sign)] = word.substr(sign + 1);
    }
  }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::size_t number(const std::string& name, std::size_t otherwise) const {
    return has(name) ? std::strtoull(text(name).c_str(), nullptr, 10) : otherwise;
  }
  std::vector<std::string> words(const std::string& name, const std::string& otherwise) const {
    std::vector<std::string> all;
    std::istringstream in(text(name, otherwise));
    for (std::string word; std::getline(in, word, ',');) all.push_back(word);
    return all;
  }

 private:
  std::map<std::string, std::string> values_;
};

// ---------------------------------------------------------------- the machine

struct Nodes {
  std::vector<MemoryNode> all;
  int figures = -1;  // the one for which the model's figures are, -1: that beside each rank
  bool here = false;
  std::string trouble;
};

// [numa.NUMBER]: bytes, cpus = [first, last] or beside = NUMBER, bandwidth in MB/s, latency in ns.
Nodes read_nodes(const std::string& path) {
  Nodes nodes;
  const toml::table file = value_of(read_toml(path));
  const toml::table* const numa = file["numa"].as_table();
  if (!numa) {
    nodes.trouble = path + " describes no NUMA nodes";
    return nodes;
  }
  for (const auto& [key, value] : *numa) {
    const toml::table* const about = value.as_table();
    if (!about) give_up(path + ": numa." + std::string(key.str()) + " is no table");
    auto figure = [&](const char* name) { return std::uint64_t((*about)[name].value<double>().value_or(0)); };
    MemoryNode node;
    node.number = std::atoi(std::string(key.str()).c_str());
    node.bytes = figure("bytes");
    const auto beside = (*about)["beside"].value<std::string>().value_or("");
    const toml::table* const home = beside.empty() ? about : (*numa)[beside].as_table();
    const toml::array* const cpus = home ? (*home)["cpus"].as_array() : nullptr;
    if (!cpus || cpus->size() != 2) give_up(path + ": numa." + std::string(key.str()) + " lies beside no CPUs");
    const int first = cpus->get(0)->value_or(-1), last = cpus->get(1)->value_or(-1);
    if (first < 0 || last < first || std::size_t(last) >= node.cpus.bits.size())
      give_up(path + ": numa." + std::string(key.str()) + " has no such CPUs");
    for (int cpu = first; cpu <= last; ++cpu) node.cpus.bits.set(std::size_t(cpu));
    if (figure("bandwidth")) node.bandwidth.push_back({node.cpus, figure("bandwidth")});
    if (figure("latency")) node.latency.push_back({node.cpus, figure("latency")});
    if ((*about)["figures"].value_or(false)) nodes.figures = node.number;
    nodes.all.push_back(std::move(node));
  }
  std::ranges::sort(nodes.all, {}, &MemoryNode::number);
  return nodes;
}

Nodes nodes_of(const std::string& file) {
  if (!file.empty()) return read_nodes(file);
  Nodes nodes;
  nodes.here = true;
  if (const auto& known = machine::memory_nodes()) nodes.all = *known;
  else nodes.trouble = known.error().text;
  return nodes;
}

// Reads the machine. Figures that it lacks are filled in as a rank does it (engine/team/process.cpp).
Machine machine_of(const std::string& file) {
  Machine machine;
  if (!file.empty()) machine = value_of(read_machine(file));
  else if (auto stored = read_stored_machine(stored_machine())) machine = *stored;
  const machine::Cpus cpus = machine::available_cpus();
  const machine::Caches caches = machine::read_caches(cpus);
  if (machine.cpus == 0) machine.cpus = cpus.available();
  if (machine.cache == 0) machine.cache = double(caches.largest);
  if (machine.own == 0 && file.empty()) machine.own = double(caches.own);
  if (machine.own == 0) machine.own = machine.l2;
  const std::size_t sharing = std::size_t(file.empty() ? caches.neighbors.count() : machine.cores);
  if (machine.span == 0)
    machine.span = double(memory::span_for(std::size_t(machine.own), std::size_t(machine.cache), sharing));
  return machine;
}

// ---------------------------------------------------------------- what a rank needs

// Rounds of oversubscribed teams take no buffers of the span, nor do those of two members except in long rooted calls.
bool takes_copy_buffers(const team::Shape& shape, const Asked& asked, std::size_t partners) {
  return (partners > 0 && asked.number("long", 1)) ||
         (asked.number("collectives", 1) && !shape.oversubscribed() && shape.size > 2);
}

// Lists the parts of a rank's memory for people. The sizes are the engine's.
Json pieces(const team::Shape& shape, const Asked& asked, std::size_t partners) {
  Json all = Json::array();
  auto piece = [&](const char* name, Component component, const char* per, std::size_t each, std::size_t count) {
    if (count)
      all.push_back(
          {{"name", name}, {"component", memory::name(component)}, {"per", per}, {"each", each}, {"of_a_rank", count}});
  };
  const std::size_t teams = 1 + asked.number("communicators", 0);
  const auto p = std::size_t(shape.size);
  piece("fastbox", Component::fastboxes, "pair", messages::bytes_of_fastbox(messages::fastbox_bytes(shape.size)),
        partners);
  piece("copy buffers", Component::copy_buffers, "rank",
        memory::CopyBuffers::bytes_for(std::size_t(shape.machine.span)), takes_copy_buffers(shape, asked, partners));
  piece("copy buffers of rounds", Component::copy_buffers, "communicator", context::staging_bytes(shape.buffer_bytes),
        asked.number("collectives", 1) && p > 1 ? teams : 0);
  piece("header", Component::control, "rank", team::header_bytes, 1);
  piece("control block and rings", Component::control, "communicator", creation::block_bytes(false, 0), teams);
  piece("message queue", Component::control, "rank", sizeof(messages::MessageMailbox::cell), 1);
  piece("rest of the mailbox", Component::control, "rank",
        sizeof(messages::MessageMailbox) - sizeof(messages::MessageMailbox::cell), 1);
  piece("records of transfers", Component::control, "rank", messages::transfers_at_once * sizeof(messages::Transfer),
        1);
  piece("control block of a window", Component::control, "window",
        creation::block_bytes(false, 0) + windows::words_bytes(shape.size), asked.has("windows"));
  return all;
}

struct Needs {
  Bytes bytes{};
  std::size_t segment = 0;  // pages of it, without windows and MPI_Alloc_mem
};

// Finds the bytes that a rank needs by making its allocations. `leader`: whether it is the first rank.
Needs needs(const team::Shape& shape, const Asked& asked, std::size_t partners, bool leader) {
  auto segment = value_of(memory::Segment::create(std::size_t{1} << 30));
  memory::Arena arena(segment, 0);
  auto allocate = [&](std::size_t bytes, std::size_t align, Component component = Component::control) {
    value_of(arena.allocate(bytes, align, component));
  };
  memory::Allowance collapsing;
  memory::CopyBuffers span(segment, arena, std::size_t(shape.machine.span), collapsing);
  auto make_team = [&] { allocate(creation::block_bytes(leader, choosing::shared_configuration_bytes), page); };
  const std::size_t teams = 1 + asked.number("communicators", 0);
  allocate(team::header_bytes, team::header_bytes);
  make_team();
  allocate(sizeof(messages::MessageMailbox), page);
  allocate(messages::transfers_at_once * sizeof(messages::Transfer), messages::line);
  for (std::size_t i = 0; i < partners; ++i)
    allocate(messages::bytes_of_fastbox(messages::fastbox_bytes(shape.size)), messages::line, Component::fastboxes);
  for (std::size_t i = 1; i < teams; ++i) make_team();
  if (asked.number("collectives", 1) && shape.size > 1)
    for (std::size_t i = 0; i < teams; ++i)
      allocate(context::staging_bytes(shape.buffer_bytes), page, Component::copy_buffers);
  if (asked.has("windows")) {
    make_team();  // a window has one of its own
    allocate(windows::words_bytes(shape.size), team::line);
  }
  if (takes_copy_buffers(shape, asked, partners)) span.put_back(span.take(1), 1);
  Needs found;
  for (std::size_t c = 0; c < memory::component_count; ++c) found.bytes[c] = arena.held(Component(c)).most;
  found.segment = segment.memory();
  for (const Component c : {Component::heap, Component::windows, Component::alloc_mem})
    found.bytes[std::size_t(c)] = asked.number(memory::name(c), 0);
  return found;
}

// ---------------------------------------------------------------- what placement is worth

// Returns the shape with all memory in that node. The time of a copy by one core alone stays: its outstanding cache
// misses limit it, not the memory.
team::Shape shape_in(const team::Shape& shape, const MemoryNode& node, const MemoryNode& figures) {
  team::Shape there = shape;
  const auto to = memory::bandwidth(node, node.cpus).value, from = memory::bandwidth(figures, figures.cpus).value;
  if (to && from) there.machine.all_memory *= double(from) / double(to);
  return there;
}

struct Planner {
  Nodes nodes;
  team::Shape shape;
  std::vector<memory::Vantage> ranks;  // each has a CPU; ranks are spread evenly over the node's CPUs
  Bytes bytes{};                       // of a rank
  const MemoryNode *home = nullptr, *fast = nullptr;

  const MemoryNode* node(int number) const { return &*std::ranges::find(nodes.all, number, &MemoryNode::number); }
  memory::NodeOrder order(const char* words, const memory::Vantage& from) const {
    return memory::order(*memory::parse_wish(words), nodes.all, from);
  }
  std::size_t of(Component c) const { return bytes[std::size_t(c)]; }

  void look_around() {
    if (nodes.all.empty()) return;
    std::vector<int> cpus;
    const machine::CpuSet allowed = machine::available_cpus().allowed;
    for (std::size_t cpu = 0; cpu < allowed.bits.size(); ++cpu)
      if (std::ranges::any_of(nodes.all, [&](const MemoryNode& n) { return n.cpus.bits.test(cpu); }) &&
          (!nodes.here || allowed.bits.test(cpu)))
        cpus.push_back(int(cpu));
    for (int r = 0; r < shape.size; ++r) {
      memory::Vantage from;
      if (!cpus.empty()) {
        from.cpu = cpus[std::size_t(r) * cpus.size() / std::size_t(shape.size)];
        from.cpus.bits.set(std::size_t(from.cpu));
      }
      ranks.push_back(from);
    }
    // `home` and `fast` are those of the first rank for which a node is faster than the memory beside it.
    for (const auto& from : ranks) {
      if (home && fast != home) break;
      home = node(order("local", from).asked[0]);
      const memory::NodeOrder best = order("bandwidth", from);
      fast = best.doubt.empty() ? node(best.asked[0]) : home;
      if (memory::bandwidth(*fast, from.cpus).value <= memory::bandwidth(*home, from.cpus).value) fast = home;
    }
  }

  // Returns the bytes of all ranks that compete for the caches when data pass through a component.
  double footprint(Component component) const {
    double all = double(of(Component::fastboxes) + of(Component::copy_buffers));
    if (component != Component::fastboxes && component != Component::copy_buffers) all += double(of(component));
    return all * shape.size;
  }
  // Returns the ns in which a rank puts a KiB into the component and another takes it out, if it lies in that node.
  double transfer_time(Component component, const MemoryNode& node) const {
    constexpr double kib = 1024;
    const team::Shape there = shape_in(shape, node, figures());
    return collectives::filling(there, kib, footprint(component)) +
           collectives::emptying(there, kib, footprint(component));
  }
  const MemoryNode& figures() const { return nodes.figures < 0 ? *home : *node(nodes.figures); }
};

// Components that gain most for their bytes come first: Nearfield's are rewritten often, the program's once a call.
constexpr Component by_worth[] = {Component::fastboxes, Component::copy_buffers, Component::control,
                                  Component::windows,   Component::alloc_mem,    Component::heap};

// Bytes that nodes still have.
using Room = std::map<int, std::size_t>;

// Places `bytes` of every rank as the wish asks. Returns whether all bytes that the wish covers fit where it asks for.
bool take(const Planner& plan, const memory::Wish& wish, std::size_t bytes, Room& room) {
  const std::size_t wanted = std::min(wish.most, bytes);
  for (const auto& from : plan.ranks) {
    std::size_t there = 0;
    for (const memory::Piece& piece : divide(wish, order(wish, plan.nodes.all, from), bytes, wanted,
                                             [&](int node) { return room[node] / page * page; })) {
      if (piece.asked) there += piece.bytes;
      for (const int node : piece.nodes) room[node] -= std::min(room[node], piece.bytes / piece.nodes.size());
    }
    if (there < wanted) return false;
  }
  return true;
}

// Returns how much of every rank's `bytes` fits into the node of the word, equally for all: all of it, or whole MiB.
std::size_t fitting(const Planner& plan, const std::string& word, std::size_t bytes, const Room& room) {
  auto fits = [&](std::size_t some) {
    Room left = room;
    return take(plan, *memory::parse_wish(word), some, left);
  };
  if (fits(bytes)) return bytes;
  std::size_t least = 0, most = bytes / mebibyte + 1;  // fits, does not
  while (least + 1 < most) {
    const std::size_t middle = (least + most) / 2;
    (fits(middle * mebibyte) ? least : most) = middle;
  }
  return least * mebibyte;
}

struct Advice {
  std::string text;
  Json components = Json::object();
};

Advice advise(const Planner& plan) {
  Advice advice;
  if (!plan.home) return advice;
  Room room;
  for (const MemoryNode& node : plan.nodes.all)
    room[node.number] = plan.nodes.here ? std::min(memory::numa::room(node.number), node.bytes) : node.bytes;
  const bool one_kind = plan.fast == plan.home;
  const bool has_latency = memory::latency(*plan.home, plan.home->cpus).value > 0;
  for (const Component component : by_worth) {
    const std::size_t bytes = whole_pages(plan.of(component));
    if (!bytes) continue;
    const bool streams = component != Component::control;
    const double slow = plan.transfer_time(component, *plan.home), quick = plan.transfer_time(component, *plan.fast);
    // Memory that stays in caches misses one line at a time, so latency counts. The program's moves only if it gains.
    const bool own = std::ranges::find(computed, component) != std::end(computed);
    std::string words = one_kind                         ? ""
                        : streams && quick < 0.99 * slow ? "bandwidth"
                        : own && has_latency             ? "latency"
                                                         : "";
    const std::size_t fits = words.empty() ? 0 : fitting(plan, words, bytes, room);
    const bool gains = words == "bandwidth" && fits;
    if (words.size() && !fits) words = "local";
    else if (fits && fits < bytes) words += ",max=" + std::to_string(fits / mebibyte) + "M";
    take(plan, *memory::parse_wish(words.empty() ? "local" : words), bytes, room);
    if (!words.empty())
      advice.text += (advice.text.empty() ? "" : ";") + std::string(memory::name(component)) + ":" + words;
    Json& row = advice.components[memory::name(component)] = {{"words", words}, {"fits", fits}};
    if (!streams) continue;
    row["beyond_caches"] = rounded(collectives::spilled(plan.shape, plan.footprint(component)), 2);
    row["slow_ns"] = rounded(slow, 1);
    row["fast_ns"] = rounded(gains ? quick : slow, 1);
  }
  return advice;
}

// Estimates collectives with all memory in the one node, and in the other.
Json worth(const Planner& plan, const Asked& asked) {
  Json cells = Json::array();
  if (!plan.home || plan.home == plan.fast || plan.shape.size < 2) return cells;
  for (const auto& cell : asked.words("calls", "")) {
    const std::size_t colon = std::min(cell.find(':'), cell.size() - 1);
    const auto which = collectives::collective_named(cell.substr(0, colon));
    if (!which) continue;  // a message, or the host's
    collectives::Call call{*which, std::strtoull(cell.c_str() + colon + 1, nullptr, 10)};
    call.count = std::max<std::size_t>(call.bytes / 8, 1);
    auto cost = [&](const MemoryNode& node) {
      const team::Shape there = shape_in(plan.shape, node, plan.figures());
      return choosing::choose(there, "", call).best->cost(there, call);
    };
    cells.push_back({{"op", collectives::name(*which)},
                     {"bytes", call.bytes},
                     {"slow_ns", rounded(cost(*plan.home), 0)},
                     {"fast_ns", rounded(cost(*plan.fast), 0)}});
  }
  return cells;
}

Json describe(const Planner& plan) {
  Json all = Json::array();
  auto figure = [](memory::Value v) { return v.value ? Json(v.value) : Json(nullptr); };
  for (const MemoryNode& node : plan.nodes.all)
    all.push_back({{"node", node.number},
                   {"bytes", node.bytes},
                   {"cpus", node.cpus.list()},
                   {"bandwidth", figure(memory::bandwidth(node, node.cpus))},
                   {"latency", figure(memory::latency(node, node.cpus))}});
  return all;
}

}  // namespace

int plan_memory(int argc, char** argv) {
  const Asked asked(argc, argv);
  const auto ranks = int(asked.number("ranks", 0));
  if (ranks < 1 || ranks > 4096) give_up("usage: nearfield-model plan ranks=1..4096 [NAME=VALUE...]");
  const std::string file = asked.text("machine");
  const std::size_t partners = std::min({asked.number("partners", std::size_t(ranks) - 1), std::size_t(ranks) - 1,
                                         std::size_t(messages::most_fastboxes)});
  Planner plan{nodes_of(file), team::shape_for(ranks, machine_of(file)), {}, {}, nullptr, nullptr};
  const Needs leader = needs(plan.shape, asked, partners, true), other = needs(plan.shape, asked, partners, false);
  plan.bytes = other.bytes;
  Json components = Json::array();
  for (std::size_t c = 0; c < memory::component_count; ++c) {
    const char* const name = memory::name(Component(c));
    const bool own = std::ranges::find(computed, Component(c)) != std::end(computed);
    if (own) plan.bytes[c] = asked.number(name, plan.bytes[c]);
    components.push_back({{"name", name},
                          {"rank", other.bytes[c]},
                          {"leader", leader.bytes[c]},
                          {"node", other.bytes[c] * std::size_t(ranks - 1) + leader.bytes[c]},
                          {"measured", own && asked.has(name) ? Json(plan.bytes[c]) : Json(nullptr)}});
  }
  plan.look_around();
  const Advice advice = advise(plan);
  print({{"ranks", ranks},
         {"partners", partners},
         {"oversubscribed", plan.shape.oversubscribed()},
         {"pieces", pieces(plan.shape, asked, partners)},
         {"components", components},
         {"segment",
          {{"rank", other.segment},
           {"leader", leader.segment},
           {"node", other.segment * std::size_t(ranks - 1) + leader.segment}}},
         {"nodes", describe(plan)},
         {"trouble", plan.nodes.trouble},
         {"home", plan.home ? Json(plan.home->number) : Json(nullptr)},
         {"fast", plan.fast ? Json(plan.fast->number) : Json(nullptr)},
         {"advice", advice.text},
         {"advised", advice.components},
         {"worth", worth(plan, asked)}},
        1);
  return 0;
}
