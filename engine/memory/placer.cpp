#include "engine/memory/placer.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>

#include "engine/base/log.hpp"
#include "engine/memory/numa.hpp"

namespace nearfield::memory {
namespace {

std::string list(std::span<const int> numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::string nodes_text(std::span<const int> numbers) {
  return (numbers.size() == 1 ? "NUMA node " : "NUMA nodes ") + list(numbers);
}

// An Error: the kernel does not let this process place memory.
Result<void> try_placing(int node) {
  constexpr std::size_t page = 4096;
  void* const at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return {};
  auto done = numa::prefer(at, page, {&node, 1});
  munmap(at, page);
  return done;
}

}  // namespace

const Vantage& vantage() {
  static const auto* const first = new Vantage{machine::available_cpus().allowed, sched_getcpu()};
  return *first;
}

Placer::Asked Placer::decide(const Wish& wish) {
  const auto& nodes = machine::memory_nodes();
  if (!nodes) return {{}, nodes.error().text};
  Asked asked{order(wish, *nodes, vantage()), {}};
  asked.trouble = asked.order.doubt;
  return asked;
}

std::string Placer::complaints() const {
  std::string all;
  for (std::size_t c = 0; c < component_count; ++c) {
    const Wish* const own = wish(Component(c));
    if (!own || !own->forced) continue;
    Asked asked = decide(*own);
    if (asked.trouble.empty() && !asked.order.asked.empty())
      if (auto tried = try_placing(asked.order.asked[0]); !tried) asked.trouble = tried.error().text;
    if (!asked.trouble.empty())
      all += std::string(name(Component(c))) + ":" + own->text + ": " + asked.trouble +
             "; change it or leave out `forced`\n";
  }
  return all;
}

Placer::Asked Placer::ask(Component component, const Wish& wish, bool own, void* at, std::size_t bytes) {
  Asked asked = decide(wish);
  std::size_t left = wish.most;
  {
    const std::lock_guard lock(mutex_);
    std::size_t& held = held_[std::size_t(component)];
    if (own) {
      left -= std::min(left, held);
      held += bytes;
    }
  }
  auto* place = static_cast<std::byte*>(at);
  for (const Piece& piece : divide(wish, asked.order, bytes, left, [](int node) { return numa::room(node); })) {
    if (auto done = numa::prefer(place, piece.bytes, piece.nodes); !done) asked.trouble = done.error().text;
    else if (!piece.asked && asked.trouble.empty())
      asked.trouble = wish.most != SIZE_MAX && left < bytes
                          ? "no more than max= says may lie on " + nodes_text(asked.order.asked)
                          : nodes_text(asked.order.asked) + " has no room";
    place += piece.bytes;
  }
  return asked;
}

Result<void> Placer::settle(Component component, const Wish& wish, bool own, const Asked& asked, void* at,
                            std::size_t bytes) {
  if (auto filled = numa::fill(at, bytes); !filled) return filled;
  auto census = numa::where(at, bytes);
  std::size_t placed = 0, present = 0;
  if (census)
    for (const auto& [node, there] : census->bytes) {
      present += there;
      if (std::ranges::find(asked.order.asked, node) != asked.order.asked.end()) placed += there;
    }
  std::string trouble = asked.trouble;
  if (trouble.empty() && !census) trouble = census.error().text;
  if (trouble.empty() && placed < bytes) trouble = nodes_text(asked.order.asked) + " has no room any more";
  // Without move_pages a forced wish counts as met if mbind has succeeded.
  const bool unseen = asked.trouble.empty() && !census;
  if (!trouble.empty() && !(wish.forced && unseen))
    if (auto missed = miss(component, wish, own, trouble); !missed) return missed;
  const std::lock_guard lock(mutex_);
  Counts& counts = counts_[std::size_t(component)];
  counts.asked += bytes;
  counts.placed += placed;
  counts.elsewhere += present - placed;
  return {};
}

Result<void> Placer::place(Component component, void* at, std::size_t bytes, const Wish* wish) {
  const bool own = !wish;
  if (own) wish = this->wish(component);
  if (!wish || bytes == 0) return {};
  const Asked asked = ask(component, *wish, own, at, bytes);
  auto done = settle(component, *wish, own, asked, at, bytes);
  if (!done) give_back(component, own, at, bytes);
  return done;
}

void Placer::give_back(Component component, bool own, void* at, std::size_t bytes) noexcept {
  static_cast<void>(numa::prefer(at, bytes, {}));
  if (!own) return;
  const std::lock_guard lock(mutex_);
  std::size_t& held = held_[std::size_t(component)];
  held -= std::min(held, bytes);
}

void Placer::count(Component component, const void* at, std::size_t bytes) {
  const Wish* const own = wish(component);
  if (!own) return;
  const Asked asked = decide(*own);
  auto census = numa::where(at, bytes);
  Counts counts;
  counts.asked = bytes;
  if (census) {
    counts.asked -= census->absent;
    for (const auto& [node, there] : census->bytes) {
      const bool there_asked = std::ranges::find(asked.order.asked, node) != asked.order.asked.end();
      (there_asked ? counts.placed : counts.elsewhere) += there;
    }
  }
  const std::lock_guard lock(mutex_);
  counts_[std::size_t(component)] = counts;
}

Placer::Counts Placer::counts(Component component) const {
  const std::lock_guard lock(mutex_);
  return counts_[std::size_t(component)];
}

std::string Placer::describe(const Wish& wish) {
  const Asked asked = decide(wish);
  if (asked.order.asked.empty()) return "not placed: " + asked.trouble;
  std::string text = nodes_text(asked.order.asked);
  if (wish.interleave && asked.order.asked.size() > 1) text += " by turns";
  if (!asked.order.others.empty()) text += wish.forced ? "" : ", then " + list(asked.order.others);
  return asked.trouble.empty() ? text : text + " (" + asked.trouble + ")";
}

Result<void> Placer::miss(Component component, const Wish& wish, bool own, const std::string& why) {
  if (wish.forced) {
    const std::string text = std::string("memory for ") + name(component) + " cannot be placed as `" + wish.text +
                             "` forces it: " + why + "; ask for less, name other nodes, or leave out `forced`";
    if (own && refusal_) refusal_(text);
    return Error{text};
  }
  const std::lock_guard lock(mutex_);
  if (!logged_)
    log_line(LogLevel::info, "not all memory of %s is where NEARFIELD_MEMORY asks for: %s", name(component),
             why.c_str());
  logged_ = true;
  return {};
}

}  // namespace nearfield::memory
