// Places memory by a Wish (placement.hpp), asks the kernel where it lies, and counts.
//
//   ask       before a range has memory: decides, and sets the kernel's policy
//   settle    makes its pages, asks where they are, counts; an Error where the wish is forced and they are elsewhere
//   place     both
//
// Without a wish it makes no system call, loads no hwloc and allocates nothing.
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
  // Bytes of one component. They do not fall when memory is given back.
  struct Counts {
    std::size_t asked = 0;      // allocated by a wish
    std::size_t placed = 0;     // on the nodes asked for, as the kernel says
    std::size_t elsewhere = 0;  // on other nodes, as the kernel says
    // Bytes whose node the kernel does not say. It counts whole pages, so the sum may exceed `asked`.
    std::size_t unknown() const { return asked - std::min(asked, placed + elsewhere); }
  };
  struct Asked {
    NodeOrder order;
    std::string trouble;  // why some memory may lie elsewhere; empty: it does not
  };

  // Called with the reason when a forced wish of NEARFIELD_MEMORY cannot be met, before the Error is returned.
  using Refusal = void (*)(const std::string& why);
  explicit Placer(Wishes wishes, Refusal refusal = nullptr) : wishes_(std::move(wishes)), refusal_(refusal) {}

  // The component's wish in NEARFIELD_MEMORY; may be null.
  const Wish* wish(Component component) const {
    const auto& wish = wishes_.of[std::size_t(component)];
    return wish ? &*wish : nullptr;
  }
  // Returns why forced wishes of NEARFIELD_MEMORY cannot be met; empty: they can.
  std::string complaints() const;
  // Returns the nodes that a wish leads to for this process.
  static Asked decide(const Wish& wish);
  // Returns "NUMA node 2, then 0, 1", or the reason why memory is not placed.
  static std::string describe(const Wish& wish);

  // Ranges are whole pages. `own`: the wish is the component's, whose limit is for all its ranges; otherwise the limit
  // is for this range.
  Asked ask(Component component, const Wish& wish, bool own, void* at, std::size_t bytes);
  Result<void> settle(Component component, const Wish& wish, bool own, const Asked& asked, void* at, std::size_t bytes);
  // Places a range of whole pages that is mapped and untouched. Without `wish` the component's wish counts; if there is
  // none either, nothing happens. An Error: a forced wish cannot be met, or there is no memory.
  Result<void> place(Component component, void* at, std::size_t bytes, const Wish* wish = nullptr);
  // pre: the range has no memory any more. Resets its policy.
  void give_back(Component component, bool own, void* at, std::size_t bytes) noexcept;
  // Replaces the component's counts by those of a range whose pages come as the program touches them.
  void count(Component component, const void* at, std::size_t bytes);

  Counts counts(Component component) const;
  // Reports that memory of the component lies elsewhere: an Error if the wish is forced, otherwise a line of log, once.
  Result<void> miss(Component component, const Wish& wish, bool own, const std::string& why);

 private:
  Wishes wishes_;
  Refusal refusal_;
  mutable std::mutex mutex_;
  std::array<Counts, component_count> counts_{};
  std::array<std::size_t, component_count> held_{};  // bytes charged to the component's limit
  bool logged_ = false;                              // miss() has logged a line
};

// The process's position at the first call, so that all memory of a component goes to the same nodes.
const Vantage& vantage();

}  // namespace nearfield::memory
