#include "engine/reach/shared_heap.hpp"

#include <dlfcn.h>

#include <cstring>
#include <optional>
#include <type_traits>

#include "engine/base/log.hpp"
#include "heap/heap.h"

namespace nearfield::reach {
namespace {

// Returns whether the heap is loaded and has the version of libnearfield.so, if that is loaded (not in engine tests).
bool is_ours() {
  using Version = const char*();
  auto* const ours = reinterpret_cast<Version*>(dlsym(RTLD_DEFAULT, "nearfield_version"));
  auto* const heaps = reinterpret_cast<Version*>(dlsym(RTLD_DEFAULT, "nearfield_heap_version"));
  if (!heaps || !ours || !std::strcmp(ours(), heaps())) return heaps != nullptr;
  log_line(LogLevel::warn,
           "libnearfield.so has version %s, libnearfield-heap.so %s: peers do not map the memory of this heap", ours(),
           heaps());
  return false;
}

}  // namespace

const SharedHeap* SharedHeap::find() {
  // Static, since MPI_Init must not fail for want of memory.
  static const auto found = [] {
    SharedHeap heap;
    auto look_up = [](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
      return function != nullptr;
    };
    const bool there =
        is_ours() && look_up(heap.current_, "nearfield_heap_current") &&
        look_up(heap.serves_, "nearfield_heap_serves") && look_up(heap.descriptor_, "nearfield_heap_descriptor") &&
        look_up(heap.contains_, "nearfield_heap_contains") && look_up(heap.on_fork_, "nearfield_heap_on_fork") &&
        look_up(heap.place_, "nearfield_heap_place") && look_up(heap.stats_, "nearfield_heap_stats") &&
        look_up(heap.use_, "nearfield_heap_use") && look_up(heap.pause_, "nearfield_heap_pause");
    return there ? std::optional(heap) : std::nullopt;
  }();
  return found ? &*found : nullptr;
}

SharedHeap::View SharedHeap::current() const {
  nearfield_heap_view view{};
  if (current_(&view) != 0) return {};
  return {static_cast<std::byte*>(view.base), view.size, view.used, view.generation};
}

nearfield_heap_statistics SharedHeap::statistics() const {
  nearfield_heap_statistics now{};
  stats_(&now);
  return now;
}

Result<void> SharedHeap::place(const nearfield_heap_placement& placement) const {
  if (place_(&placement)) return system_error("placing the shared heap (mbind)");
  return {};
}

}  // namespace nearfield::reach
