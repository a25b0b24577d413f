#include "engine/memory/placement.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace nearfield::memory {
namespace {

struct NamedComponent {
  const char *name, *about;
};
// In the order of Component.
constexpr NamedComponent components[component_count] = {
    {"fastboxes", "small messages of pairs that talk often"},
    {"copy-buffers", "messages and collectives whose buffers are not mapped"},
    {"windows", "MPI_Win_allocate and MPI_Win_allocate_shared"},
    {"heap", "the program's own allocations of 32 KiB and more"},
    {"control", "slots, mailboxes, synchronization words"},
    {"alloc-mem", "MPI_Alloc_mem"},
};

struct Word {
  const char* name;
  Wish::Target target;
};
constexpr Word targets[] = {{"bandwidth", Wish::Target::bandwidth},
                            {"latency", Wish::Target::latency},
                            {"capacity", Wish::Target::capacity},
                            {"local", Wish::Target::local}};
constexpr const char* valid_words =
    "words are bandwidth, latency, capacity, local, numbers of NUMA nodes, interleave, max=SIZE and forced";

std::string quoted(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// Calls `each` with each part between separators, trimmed, until it returns an Error.
Result<void> for_each_part(std::string_view text, char separator, FunctionRef<Result<void>(std::string_view)> each) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (auto done = each(trimmed(text.substr(0, end))); !done) return done;
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
}

// Returns whether all of the text is digits and the number fits.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool read_size(std::string_view text, std::size_t& bytes) {
  int shift = 0;
  if (!text.empty()) switch (text.back()) {
      case 'K': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      case 'T': shift = 40; break;
    }
  if (shift) text.remove_suffix(1);
  std::size_t units = 0;
  if (!read_number(text, units) || units == 0 || units > (std::numeric_limits<std::size_t>::max() >> shift))
    return false;
  bytes = units << shift;
  return true;
}

Result<void> read_word(std::string_view word, Wish& wish, bool& has_target) {
  constexpr std::string_view limit = "max=";
  constexpr int most_nodes = 1024;  // the kernel's limit
  if (int number = 0; read_number(word, number)) {
    if (number >= most_nodes) return Error{quoted(word) + " is not the number of a NUMA node"};
    if (has_target && wish.target != Wish::Target::numbers)
      return Error{quoted(word) + " is a second place, but only one is allowed"};
    if (std::ranges::find(wish.numbers, number) != wish.numbers.end()) return Error{quoted(word) + " appears twice"};
    has_target = true;
    wish.target = Wish::Target::numbers;
    wish.numbers.push_back(number);
    return {};
  }
  for (const auto& [name, target] : targets) {
    if (word != name) continue;
    if (has_target) return Error{quoted(word) + " is a second place, but only one is allowed"};
    has_target = true;
    wish.target = target;
    return {};
  }
  if (word == "interleave") {
    wish.interleave = true;
  } else if (word == "forced") {
    wish.forced = true;
  } else if (word.starts_with(limit)) {
    if (!read_size(word.substr(limit.size()), wish.most))
      return Error{quoted(word) + ": a size is a number above 0, followed by K, M, G, T or nothing"};
  } else {
    return Error{quoted(word) + " is not a word of a placement; " + valid_words};
  }
  return {};
}

const MemoryNode* find(std::span<const MemoryNode> nodes, int number) {
  const auto at = std::ranges::find(nodes, number, &MemoryNode::number);
  return at == nodes.end() ? nullptr : &*at;
}

// Returns the node on which the kernel puts memory without a policy. A node without CPUs is listed with those of the
// nearest that has some, behind it, so the first node with these CPUs is right.
const MemoryNode& home(std::span<const MemoryNode> nodes, const Vantage& from) {
  if (from.cpu >= 0)
    for (const MemoryNode& node : nodes)
      if (node.cpus.bits.test(std::size_t(from.cpu))) return node;
  const MemoryNode* best = &nodes[0];
  std::size_t most = 0;
  for (const MemoryNode& node : nodes) {
    const std::size_t shared = (node.cpus.bits & from.cpus.bits).count();
    if (shared > most) best = &node, most = shared;
  }
  return *best;
}

// Returns pointers to all nodes, the nearest first.
std::vector<const MemoryNode*> by_distance(std::span<const MemoryNode> nodes, const Vantage& from) {
  const MemoryNode& here = home(nodes, from);
  auto distance = [&](const MemoryNode* node) -> std::uint64_t {
    if (node == &here) return 0;
    for (const auto& [to, value] : here.distances)
      if (to == node->number) return value;
    return std::numeric_limits<std::uint64_t>::max();
  };
  std::vector<const MemoryNode*> all;
  for (const MemoryNode& node : nodes) all.push_back(&node);
  std::ranges::stable_sort(all, {}, distance);
  return all;
}

enum class Better : std::uint8_t { more, less };

// Sorts `nodes`, which come nearest first, best first. Values that differ by less than an eighth are equal, since the
// firmware takes some of a node's memory. `equals`: how many are as good as the first.
std::vector<const MemoryNode*> by_value(std::vector<const MemoryNode*> nodes, Better better, std::size_t& equals,
                                        FunctionRef<std::uint64_t(const MemoryNode*)> value) {
  std::vector<const MemoryNode*> all;
  equals = 0;
  while (!nodes.empty()) {
    std::uint64_t best = value(nodes[0]);
    for (const MemoryNode* node : nodes)
      best = better == Better::more ? std::max(best, value(node)) : std::min(best, value(node));
    auto good = [&](const MemoryNode* node) {
      const double ratio = double(value(node)) / double(best);
      return better == Better::more ? ratio > 7.0 / 8 : ratio < 9.0 / 8;
    };
    if (all.empty()) equals = std::size_t(std::ranges::count_if(nodes, good));
    const auto nearest = std::ranges::find_if(nodes, good);
    all.push_back(*nearest);
    nodes.erase(nearest);
  }
  return all;
}

Value value_for(const std::vector<MemoryNode::Seen>& seen, const CpuSet& cpus, Better better) {
  Value found;
  for (const auto& [from, value] : seen) {
    if (value == 0) continue;
    const bool own = from.intersects(cpus);
    const bool improves = better == Better::more ? value > found.value : value < found.value;
    if (found.value == 0 || own > found.own || (own == found.own && improves)) found = {value, own};
  }
  return found;
}

void append(std::vector<int>& numbers, std::span<const MemoryNode* const> nodes) {
  for (const MemoryNode* node : nodes) numbers.push_back(node->number);
}

// Nodes whose value is published for our CPUs come first, then those with values for other CPUs, then those without:
// bandwidth over the interconnect between packages is not published.
NodeOrder by_attribute(const char* what, std::span<const MemoryNode* const> near, Better better,
                       FunctionRef<Value(const MemoryNode*)> value) {
  std::vector<const MemoryNode*> groups[3];
  for (const MemoryNode* node : near) {
    const Value v = value(node);
    groups[v.value == 0 ? 2 : v.own ? 0 : 1].push_back(node);
  }
  NodeOrder order;
  for (int g = 0; g < 2; ++g) {
    std::size_t equals = 0;
    const auto sorted = by_value(groups[g], better, equals, [&](const MemoryNode* n) { return value(n).value; });
    const std::size_t asked = order.asked.empty() ? equals : 0;
    append(order.asked, std::span(sorted).first(asked));
    append(order.others, std::span(sorted).subspan(asked));
  }
  if (order.asked.empty()) {
    append(order.asked, near.first(1));
    append(order.others, near.subspan(1));
    if (near.size() > 1) order.doubt = std::string("no NUMA node says its ") + what + ", so the nearest is taken";
  } else {
    append(order.others, groups[2]);
  }
  return order;
}

}  // namespace

const char* name(Component component) { return components[std::size_t(component)].name; }
const char* about(Component component) { return components[std::size_t(component)].about; }

Result<Wish> parse_wish(std::string_view words) {
  Wish wish;
  wish.text = trimmed(words);
  bool has_target = false;
  if (auto read = for_each_part(words, ',',
                                [&](std::string_view word) -> Result<void> {
                                  if (word.empty()) return Error{std::string("a word is missing; ") + valid_words};
                                  return read_word(word, wish, has_target);
                                });
      !read)
    return read.error();
  if (!has_target && !wish.interleave)
    return Error{quoted(wish.text) +
                 " names no place: bandwidth, latency, capacity, local, numbers of nodes or "
                 "interleave"};
  return wish;
}

bool Wishes::empty() const {
  return std::ranges::none_of(of, [](const auto& wish) { return bool(wish); });
}

Result<Wishes> parse_wishes(std::string_view sentences) {
  Wishes wishes;
  std::optional<Wish> all;
  auto sentence = [&](std::string_view text) -> Result<void> {
    if (text.empty()) return {};  // behind a last semicolon
    const std::size_t colon = text.find(':');
    if (colon == text.npos) return Error{quoted(text) + " is not of the form COMPONENT:PLACE"};
    const std::string_view component = trimmed(text.substr(0, colon));
    std::optional<Wish>* place = component == "all" ? &all : nullptr;
    for (std::size_t c = 0; c < component_count; ++c)
      if (component == components[c].name) place = &wishes.of[c];
    if (!place) {
      std::string valid = "all";
      for (const NamedComponent& one : components) valid += std::string(", ") + one.name;
      return Error{quoted(component) + " is not one of " + valid};
    }
    if (*place) return Error{quoted(component) + " appears twice"};
    auto wish = parse_wish(text.substr(colon + 1));
    if (!wish) return Error{std::string(component) + ": " + wish.error().text};
    *place = std::move(*wish);
    return {};
  };
  if (auto read = for_each_part(sentences, ';', sentence); !read) return read.error();
  if (all)
    for (auto& wish : wishes.of)
      if (!wish) wish = all;
  return wishes;
}

Value bandwidth(const MemoryNode& node, const CpuSet& cpus) { return value_for(node.bandwidth, cpus, Better::more); }
Value latency(const MemoryNode& node, const CpuSet& cpus) { return value_for(node.latency, cpus, Better::less); }

NodeOrder order(const Wish& wish, std::span<const MemoryNode> nodes, const Vantage& from) {
  NodeOrder order;
  if (nodes.empty()) return order;
  const auto near = by_distance(nodes, from);
  switch (wish.target) {
    case Wish::Target::bandwidth:
      return by_attribute("bandwidth", near, Better::more,
                          [&](const MemoryNode* node) { return bandwidth(*node, from.cpus); });
    case Wish::Target::latency:
      return by_attribute("latency", near, Better::less,
                          [&](const MemoryNode* node) { return latency(*node, from.cpus); });
    case Wish::Target::capacity:
      return by_attribute("capacity", near, Better::more,
                          [](const MemoryNode* node) { return Value{node->bytes, true}; });
    case Wish::Target::local:
      append(order.asked, std::span(near).first(1));
      append(order.others, std::span(near).subspan(1));
      break;
    case Wish::Target::every_node: append(order.asked, near); break;
    case Wish::Target::numbers:
      for (const int number : wish.numbers) {
        if (find(nodes, number)) {
          order.asked.push_back(number);
          continue;
        }
        std::string usable;
        for (const MemoryNode& node : nodes) usable += (usable.empty() ? "" : ", ") + std::to_string(node.number);
        order.doubt = "this process has no NUMA node " + std::to_string(number) + ", it may use " + usable;
      }
      for (const MemoryNode* node : near)
        if (std::ranges::find(order.asked, node->number) == order.asked.end()) order.others.push_back(node->number);
      break;
  }
  return order;
}

std::vector<Piece> divide(const Wish& wish, const NodeOrder& order, std::size_t bytes, std::size_t left,
                          FunctionRef<std::size_t(int node)> room) {
  constexpr std::size_t page = 4096, huge_page = 2 << 20;
  std::vector<Piece> pieces;
  std::size_t rest = bytes;
  // Takes all of the rest, or as many whole pages as `most` holds, huge ones if at least one fits.
  auto take = [&](std::size_t most, std::vector<int> nodes, bool asked) {
    const std::size_t grain = most >= huge_page ? huge_page : page;
    const std::size_t taken = most >= rest ? rest : most / grain * grain;
    if (taken) pieces.push_back({taken, std::move(nodes), asked});
    rest -= taken;
    return taken;
  };
  if (wish.interleave && order.asked.size() > 1) {
    std::size_t least = SIZE_MAX / order.asked.size();
    for (const int node : order.asked) least = std::min(least, room(node));
    take(std::min(left, least * order.asked.size()), order.asked, true);
  } else {
    for (const int node : order.asked)
      if (rest) left -= take(std::min(left, room(node)), {node}, true);
  }
  for (const int node : order.others)
    if (rest) take(room(node), {node}, false);
  if (rest) pieces.push_back({rest, {}, false});
  return pieces;
}

}  // namespace nearfield::memory
