// Makes performance variables of the rows of mpi/statistics.def: for each operation, for each reason why the host
// served a call of it, for each component of memory, and for the process.
#include <algorithm>

#include "mpi/shim/statistics/table.hpp"
#include "mpi/shim/tools/performance_variables.hpp"

namespace nearfield::mpi::tools {
namespace {

std::string identifier(std::string words) {
  std::ranges::replace_if(words, [](char c) { return c == ' ' || c == '-'; }, '_');
  return words;
}

PerformanceVariable variable(const std::string& prefix, const std::string& about, const statistics::Number& row,
                             std::function<std::uint64_t()> read) {
  return {prefix + row.name,
          about + row.meaning,
          row.of_class,
          MPI_T_VERBOSITY_USER_BASIC,
          row.counted == statistics::Counted::on_request,
          std::move(read)};
}

std::vector<PerformanceVariable> make_all() {
  std::vector<PerformanceVariable> all;
  for (std::size_t c = 0; c < collectives::operation_count; ++c) {
    const auto operation = collectives::Collective(c);
    const std::string called = collectives::name(operation), prefix = "nearfield_" + called + "_";
    for (const statistics::OfOperation& row : statistics::of_operation())
      all.push_back(
          variable(prefix, called + ": ", row, [operation, read = row.read] { return read(tally(operation)); }));
    for (std::size_t r = 0; r < std::size_t(Reason::count); ++r) {
      const std::string why = name(Reason(r));
      all.push_back({prefix + "to_the_host_" + identifier(why), called + ": calls that the host served: " + why,
                     MPI_T_PVAR_CLASS_COUNTER, MPI_T_VERBOSITY_TUNER_DETAIL, true,
                     [operation, r] { return tally(operation).host[r].load(std::memory_order_relaxed); }});
    }
  }
  for (const statistics::OfProcess& row : statistics::of_process())
    all.push_back(variable("nearfield_", "", row, row.read));
  for (std::size_t c = 0; c < memory::component_count; ++c) {
    const auto component = memory::Component(c);
    const std::string called = name(component);
    for (const statistics::OfComponent& row : statistics::of_component())
      all.push_back(variable("nearfield_memory_" + identifier(called) + "_", called + ": ", row,
                             [component, read = row.read]() -> std::uint64_t {
                               team::Process* const process = process_ever();
                               return process ? read(*process, component) : 0;
                             }));
  }
  return all;
}

}  // namespace

const std::vector<PerformanceVariable>& performance_variables() {
  static const auto& all = *new std::vector<PerformanceVariable>(make_all());  // never destroyed
  return all;
}

}  // namespace nearfield::mpi::tools
