#include "mpi/shim/statistics/table.hpp"

#include "engine/reach/shared_heap.hpp"

namespace nearfield::mpi::statistics {
namespace {

std::uint64_t amount(const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

std::uint64_t to_the_host(const Tally& tally) {
  std::uint64_t all = 0;
  for (const auto& of_reason : tally.host) all += amount(of_reason);
  return all;
}

std::uint64_t windows(WhoseWindow whose) { return amount(one_sided_counts.windows[std::size_t(whose)]); }

std::uint64_t segment_pages() {
  team::Process* const node = process_ever();
  return node ? node->segment().memory() : 0;
}

template <class... Arguments>
std::uint64_t of_contention(std::uint64_t (waiting::Contention::*what)(Arguments...) const, Arguments... arguments) {
  const team::Process* const node = process_ever();
  return node ? (node->contention().*what)(arguments...) : 0;
}

memory::Arena::Held held(team::Process& node, memory::Component component) {
  if (component != memory::Component::heap) return node.arena().held(component);
  const reach::SharedHeap* const heap = reach::SharedHeap::find();
  const nearfield_heap_statistics now = heap ? heap->statistics() : nearfield_heap_statistics{};
  return {now.bytes_in_use, now.bytes_highest};
}

memory::Placer::Counts placed(team::Process& node, memory::Component component) {
  if (component == memory::Component::heap) node.count_heap();
  return node.placer().counts(component);
}

// clang-format off
#define ROW(type, parameters, name, of_class, counted, meaning, value) \
  type{{#name, MPI_T_PVAR_CLASS_##of_class, Counted::counted, meaning}, [] parameters -> std::uint64_t { return std::uint64_t(value); }},

constexpr OfOperation operation_rows[] = {
#define OF_OPERATION(name, unit, of_class, meaning, value) ROW(OfOperation, (const Tally& tally), name, of_class, on_request, meaning, value)
#include "mpi/statistics.def"
};
constexpr OfFunction function_rows[] = {
#define OF_FUNCTION(name, unit, of_class, meaning, value) ROW(OfFunction, (const HostCalls& calls), name, of_class, on_request, meaning, value)
#include "mpi/statistics.def"
};
constexpr OfComponent component_rows[] = {
#define OF_COMPONENT(name, unit, of_class, meaning, value) ROW(OfComponent, (team::Process& node, memory::Component component), name, of_class, always, meaning, value)
#include "mpi/statistics.def"
};
constexpr OfProcess process_rows[] = {
#define OF_PROCESS(name, unit, of_class, counted, meaning, value) ROW(OfProcess, (), name, of_class, counted, meaning, value)
#include "mpi/statistics.def"
};
#undef ROW
// clang-format on

}  // namespace

std::span<const OfOperation> of_operation() { return operation_rows; }
std::span<const OfFunction> of_function() { return function_rows; }
std::span<const OfComponent> of_component() { return component_rows; }
std::span<const OfProcess> of_process() { return process_rows; }

}  // namespace nearfield::mpi::statistics
