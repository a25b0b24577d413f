// Rows of performance variables. Those of operations, reasons and components of memory are made for each of them.
#include <algorithm>

#include "engine/reach/shared_heap.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/stats.hpp"
#include "mpi/shim/tools/variables.hpp"

namespace nearfield::mpi::tools {
namespace {

using Amount = std::uint64_t;
using Counter = std::atomic<std::uint64_t>;

Amount amount(const Counter& counter) { return counter.load(std::memory_order_relaxed); }

constexpr int counter = MPI_T_PVAR_CLASS_COUNTER, aggregate = MPI_T_PVAR_CLASS_AGGREGATE,
              timer = MPI_T_PVAR_CLASS_TIMER, level = MPI_T_PVAR_CLASS_LEVEL, size = MPI_T_PVAR_CLASS_SIZE,
              highest = MPI_T_PVAR_CLASS_HIGHWATERMARK;

// ---------------------------------------------------------------- nearfield_OPERATION_...

struct OfOperation {
  const char *name, *about;
  int of_class;
  Amount (*read)(const Tally& tally);
};
constexpr OfOperation of_operations[] = {
    {"calls", "calls in all forms, those that the host served included", counter,
     [](const Tally& t) { return amount(t.calls); }},
    {"bytes", "bytes of the calls that Nearfield carried", aggregate, [](const Tally& t) { return amount(t.bytes); }},
    {"seconds", "time in these calls; of non-blocking ones only what the host takes to begin them", timer,
     [](const Tally& t) { return amount(t.nanoseconds); }},
    {"to_the_host", "calls that the host served", counter,
     [](const Tally& t) {
       Amount all = 0;
       for (const Counter& of_reason : t.host) all += amount(of_reason);
       return all;
     }},
};

// ---------------------------------------------------------------- nearfield_messages_...

struct OfMessages {
  const char *name, *about;
  int of_class;
  Amount messages::Counts::*field;
};
constexpr OfMessages of_messages[] = {
    {"by_fastboxes", "messages and notes about them that were sent by fastboxes", counter, &messages::Counts::fastbox},
    {"by_the_queue", "messages and notes about them that were sent by the receiver's queue", counter,
     &messages::Counts::cells},
    {"unexpected", "messages that came before their receive was posted", counter, &messages::Counts::unexpected},
    {"direct", "large messages that were received directly", counter, &messages::Counts::direct},
    {"by_cma", "large messages that were received by CMA", counter, &messages::Counts::by_calls},
    {"by_copy_buffers", "large messages that were received by copy buffers", counter, &messages::Counts::staged},
    {"large_bytes", "bytes of large messages that were received", aggregate, &messages::Counts::bytes},
    {"fastboxes", "fastboxes that were made", counter, &messages::Counts::fastboxes},
};

// ---------------------------------------------------------------- nearfield_...

struct Single {
  const char *name, *about;
  int of_class;
  bool needs_counts;
  Amount (*read)();
};
template <WhoseWindow whose>
Amount windows() {
  return amount(one_sided_counts.windows[std::size_t(whose)]);
}
constexpr Single singles[] = {
    {"messages_to_the_host", "calls for messages that the host served", counter, true,
     [] { return amount(host_messages); }},
    {"ranks_of_the_node", "ranks that messages of Nearfield's reach", size, false,
     [] { return Amount(the_messenger ? the_messenger->members() : 0); }},
    {"host_calls", "calls of functions that the host serves always and that may block there", counter, true,
     [] { return Amount(host_totals().calls); }},
    {"host_calls_seconds", "time in these calls", timer, true, [] { return Amount(host_totals().nanoseconds); }},
    {"windows", "windows that Nearfield serves", counter, false, windows<WhoseWindow::ours>},
    {"windows_to_the_host_communicator", "windows left to the host, their communicator not being on one node", counter,
     false, windows<WhoseWindow::communicator>},
    {"windows_to_the_host_memory", "windows left to the host, their memory being out of reach", counter, false,
     windows<WhoseWindow::reach>},
    {"windows_to_the_host_dynamic", "windows left to the host since they are dynamic", counter, false,
     windows<WhoseWindow::dynamic>},
    {"puts_and_gets", "one-sided operations on windows of Nearfield's that move data", counter, true,
     [] { return amount(one_sided_counts.moves); }},
    {"accumulates", "one-sided operations on windows of Nearfield's that combine data", counter, true,
     [] { return amount(one_sided_counts.accumulates); }},
    {"one_sided_bytes", "bytes of one-sided operations on windows of Nearfield's", aggregate, true,
     [] { return amount(one_sided_counts.bytes); }},
    {"company", "how often others began to want the CPUs of this process, so that its waits yield or sleep", counter,
     false, [] { return Amount(waiting::company.begun()); }},
    {"company_seconds", "time in which they did", timer, false,
     [] { return Amount(waiting::company.lasted(waiting::nanoseconds())); }},
    {"memory_pages", "bytes of pages of this process's segment", level, false,
     [] {
       team::Node* const n = node_ever();
       return Amount(n ? n->segment().memory() : 0);
     }},
};

// ---------------------------------------------------------------- nearfield_memory_COMPONENT_...

struct OfMemory {
  const char *name, *about;
  int of_class;
  Amount (*read)(team::Node& node, memory::Component component);
};
nearfield_heap_statistics heap() {
  const reach::SharedHeap* const there = reach::SharedHeap::find();
  return there ? there->statistics() : nearfield_heap_statistics{};
}
constexpr OfMemory of_memory[] = {
    {"in_use", "bytes in use", level,
     [](team::Node& n, memory::Component c) {
       return Amount(c == memory::Component::heap ? heap().bytes_in_use : n.arena().held(c).now);
     }},
    {"in_use_at_most", "the most bytes that were in use", highest,
     [](team::Node& n, memory::Component c) {
       return Amount(c == memory::Component::heap ? heap().bytes_highest : n.arena().held(c).most);
     }},
};

std::string identifier(std::string words) {
  std::ranges::replace_if(words, [](char c) { return c == ' ' || c == '-'; }, '_');
  return words;
}

std::vector<PerformanceVariable> make_all() {
  constexpr int basic = MPI_T_VERBOSITY_USER_BASIC, detail = MPI_T_VERBOSITY_TUNER_DETAIL;
  std::vector<PerformanceVariable> all;
  for (std::size_t c = 0; c < collectives::operation_count; ++c) {
    const auto operation = collectives::Collective(c);
    const std::string called = collectives::name(operation), prefix = "nearfield_" + called + "_";
    for (const OfOperation& row : of_operations)
      all.push_back({prefix + row.name, called + ": " + row.about, row.of_class, basic, true,
                     [operation, read = row.read] { return read(tally(operation)); }});
    for (std::size_t r = 0; r < std::size_t(Reason::count); ++r) {
      const std::string why = name(Reason(r));
      all.push_back({prefix + "to_the_host_" + identifier(why), called + ": calls that the host served: " + why,
                     counter, detail, true, [operation, r] { return amount(tally(operation).host[r]); }});
    }
  }
  for (const OfMessages& row : of_messages)
    all.push_back({std::string("nearfield_messages_") + row.name, row.about, row.of_class, basic, false,
                   [field = row.field] { return message_counts().*field; }});
  for (const Single& row : singles)
    all.push_back({std::string("nearfield_") + row.name, row.about, row.of_class, basic, row.needs_counts, row.read});
  for (std::size_t c = 0; c < memory::component_count; ++c) {
    const auto component = memory::Component(c);
    const std::string called = name(component);
    for (const OfMemory& row : of_memory)
      all.push_back({"nearfield_memory_" + identifier(called) + "_" + row.name, called + ": " + row.about, row.of_class,
                     basic, false, [component, read = row.read] {
                       team::Node* const n = node_ever();
                       return n ? read(*n, component) : 0;
                     }});
  }
  return all;
}

}  // namespace

const std::vector<PerformanceVariable>& performance_variables() {
  static const auto& all = *new std::vector<PerformanceVariable>(make_all());  // never destroyed
  return all;
}

}  // namespace nearfield::mpi::tools
