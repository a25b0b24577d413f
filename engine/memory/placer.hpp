// Places memory where a Wish says (placement.hpp), asks the kernel whether it lies there, and counts.
//
//   ask       before there is memory behind a range: decides, and tells the kernel
//   settle    makes its pages, asks where they are, counts; an Error where the wish is forced and they are elsewhere
//   place     both, where nothing is to be done in between
//
// Nothing is asked of anybody, hwloc is not loaded and nothing is allocated until there is a wish.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string>

#include "engine/memory/placement.hpp"

namespace nearfield::memory {

class Placer {
 public:
  // Of one component, in bytes. They do not fall when memory is given back.
  struct Counts {
    std::size_t asked = 0;      // that there are because of a wish, wherever they lie
    std::size_t placed = 0;     // that lie where they were asked for, as the kernel says
    std::size_t elsewhere = 0;  // that lie somewhere else
    // Of which the kernel does not say. Whole pages are told, also of what ends within one.
    std::size_t unknown() const { return asked - std::min(asked, placed + elsewhere); }
  };
  // How a range was asked for.
  struct Asked {
    NodeOrder order;
    std::string trouble;  // why some of it may lie elsewhere
  };

  // Called with the reason when a forced wish of NEARFIELD_MEMORY cannot be honoured, before that becomes an Error.
  using Refusal = void (*)(const std::string& why);
  explicit Placer(Wishes wishes, Refusal refusal = nullptr) : wishes_(std::move(wishes)), refusal_(refusal) {}

  // Of NEARFIELD_MEMORY; nullptr: none.
  const Wish* wish(Component component) const {
    const auto& wish = wishes_.of[std::size_t(component)];
    return wish ? &*wish : nullptr;
  }
  // What forced wishes of NEARFIELD_MEMORY fail for from the beginning; empty when all is well.
  std::string complaints() const;
  // What a wish leads to for this process, and what stands in its way.
  static Asked decide(const Wish& wish);
  // "NUMA node 2, then 0, 1"; or why not.
  static std::string describe(const Wish& wish);

  // Ranges are whole pages. `own`: the wish is the component's, whose limit counts all that was asked for so far; else
  // the limit is this range's.
  Asked ask(Component component, const Wish& wish, bool own, void* at, std::size_t bytes);
  Result<void> settle(Component component, const Wish& wish, bool own, const Asked& asked, void* at, std::size_t bytes);
  // For a range of whole pages that is mapped and that nobody has touched. Without `wish` the component's own counts,
  // and where there is none either nothing happens. An Error: a forced wish cannot be honoured, or there is no memory.
  Result<void> place(Component component, void* at, std::size_t bytes, const Wish* wish = nullptr);
  // The range's memory has gone; what comes there next is nobody's wish.
  void give_back(Component component, bool own, void* at, std::size_t bytes) noexcept;
  // Counts what lies in a range that fills as the program likes, instead of what was counted before.
  void count(Component component, const void* at, std::size_t bytes);

  Counts counts(Component component) const;
  // Memory of the component does not lie where it should: the Error where the wish is forced, else a line of the log,
  // once.
  Result<void> miss(Component component, const Wish& wish, bool own, const std::string& why);

 private:
  Wishes wishes_;
  Refusal refusal_;
  mutable std::mutex mutex_;
  std::array<Counts, component_count> counts_{};
  std::array<std::size_t, component_count> held_{};  // bytes that a component's own limit is charged with
  bool told_ = false;                                // why nothing is placed
};

// From where this process looks at nodes: as it was first asked, so that all of a component goes to one place.
const Vantage& vantage();

}  // namespace nearfield::memory
