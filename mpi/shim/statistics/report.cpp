#include "mpi/shim/statistics/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/files.hpp"
#include "engine/base/json.hpp"
#include "engine/base/log_line.hpp"
#include "engine/choosing/decisions.hpp"
#include "mpi/shim/process/version.hpp"
#include "mpi/shim/statistics/table.hpp"

namespace nearfield::mpi::statistics {
namespace {

// The numbers of one operation, function or component of memory, in the order of its section's columns.
struct TextLine {
  std::string subject;
  std::vector<std::uint64_t> values;
  std::vector<std::pair<const char*, std::uint64_t>> why{};  // calls that the host served, by reason
  std::string wish{};                                        // the wished place of its memory

  bool counted() const {
    return !wish.empty() || std::ranges::any_of(values, [](std::uint64_t value) { return value != 0; });
  }
};

struct Section {
  const char *key, *title;  // in JSON, in the text
  std::vector<const Number*> columns{};
  std::vector<TextLine> lines{};

  template <class Rows>
  Section(const char* key, const char* title, const Rows& rows) : key(key), title(title) {
    for (const auto& row : rows) columns.push_back(&row);
  }
};

template <class Rows, class... Subject>
std::vector<std::uint64_t> read_all(const Rows& rows, Subject&... subject) {
  std::vector<std::uint64_t> values;
  for (const auto& row : rows) values.push_back(row.read(subject...));
  return values;
}

Section operations() {
  Section section{"operations", "operation", of_operation()};
  for (std::size_t c = 0; c < collectives::operation_count; ++c) {
    const auto operation = collectives::Collective(c);
    const Tally& counts = tally(operation);
    TextLine line{collectives::name(operation), read_all(of_operation(), counts)};
    for (std::size_t r = 0; r < std::size_t(Reason::count); ++r)
      if (const std::uint64_t calls = counts.host[r].load(std::memory_order_relaxed))
        line.why.emplace_back(name(Reason(r)), calls);
    section.lines.push_back(std::move(line));
  }
  return section;
}

Section functions() {
  Section section{"functions", "always the host's", of_function()};
  each_host_function([&](Function function, const HostCalls& calls) {
    section.lines.push_back({name_of(function), read_all(of_function(), calls)});
  });
  return section;
}

Section components() {
  Section section{"memory", "memory", of_component()};
  team::Process* const node = process_ever();
  for (std::size_t c = 0; node && c < memory::component_count; ++c) {
    const auto component = memory::Component(c);
    TextLine line{name(component), read_all(of_component(), *node, component)};
    if (const memory::Wish* const wish = node->placer().wish(component))
      line.wish = wish->text + ": " + memory::Placer::describe(*wish);
    section.lines.push_back(std::move(line));
  }
  return section;
}

std::string shown(const Number& number, std::uint64_t value) {
  if (!number.is_timer()) return std::to_string(value);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.6f", double(value) * 1e-9);
  return seconds;
}

// ---------------------------------------------------------------- text

void add_text(std::string& text, const Section& section) {
  if (section.lines.empty()) return;
  const auto cell = [&](const Number& column, const std::string& value) {
    const std::size_t width = std::max<std::size_t>(14, std::strlen(column.name) + 2);
    text += std::string(width - std::min(width, value.size()), ' ') + value;
  };
  const auto begin = [&](const std::string& subject) {
    text += "  " + subject + std::string(26 - std::min<std::size_t>(26, subject.size()), ' ');
  };
  begin(section.title);
  for (const Number* column : section.columns) cell(*column, column->name);
  text += '\n';
  for (const TextLine& line : section.lines) {
    begin(line.subject);
    for (std::size_t i = 0; i < line.values.size(); ++i)
      cell(*section.columns[i], shown(*section.columns[i], line.values[i]));
    const char* between = "  ";
    for (const auto& [reason, calls] : line.why) {
      text += between + std::string(reason) + " " + std::to_string(calls);
      between = ", ";
    }
    text += (line.wish.empty() ? "" : "  ") + line.wish + "\n";
  }
}

void print(const std::vector<Section>& sections, int rank, int size) {
  std::string text = "nearfield: rank " + std::to_string(rank) + " of " + std::to_string(size) + "\n";
  for (const Section& section : sections) add_text(text, section);
  for (const OfProcess& row : of_process())
    if (const std::uint64_t value = row.read()) {
      char line[256];
      std::snprintf(line, sizeof line, "  %-32s %12s  %s\n", row.name, shown(row, value).c_str(), row.meaning);
      text += line;
    }
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody reads it
}

// ---------------------------------------------------------------- JSON

// Joins members of a JSON object.
class Members {
 public:
  void add(const char* key, const std::string& value) {
    text_ += (text_.empty() ? "" : ",") + json::quoted(key) + ":" + value;
  }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string json_of(const Section& section) {
  std::string lines;
  for (const TextLine& line : section.lines) {
    Members members, why;
    for (std::size_t i = 0; i < line.values.size(); ++i)
      members.add(section.columns[i]->name, shown(*section.columns[i], line.values[i]));
    for (const auto& [reason, calls] : line.why) why.add(reason, std::to_string(calls));
    if (!line.why.empty()) members.add("why", why.object());
    if (!line.wish.empty()) members.add("wish", json::quoted(line.wish));
    lines += (lines.empty() ? "\n" : ",\n") + json::quoted(line.subject) + ":" + members.object();
  }
  return "{" + lines + "}";
}

std::string seconds(double nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9f", nanoseconds * 1e-9);
  return text;
}

std::string decisions() {
  std::string all;
  choosing::each_decision([&](const choosing::Decision& decision) {
    Members members, tried;
    for (const auto& [algorithm, nanoseconds] : decision.tried)
      tried.add(algorithm, nanoseconds > 0 ? seconds(double(nanoseconds)) : "null");
    members.add("operation", json::quoted(collectives::name(decision.collective)));
    members.add("bytes", std::to_string(decision.bytes));
    members.add("ranks", std::to_string(decision.ranks));
    members.add("algorithm", json::quoted(decision.algorithm));
    members.add("tried", tried.object());
    members.add("calls", std::to_string(decision.calls));
    members.add("seconds_beyond_best", seconds(decision.beyond_best_ns));
    all += (all.empty() ? "\n" : ",\n") + members.object();
  });
  return "[" + all + "]";
}

std::string json_of(const std::vector<Section>& sections, const early::Speaker& who, int size) {
  Members file, process;
  file.add("nearfield", json::quoted(version()));
  file.add("host", json::quoted(who.host));
  file.add("process", std::to_string(who.process));
  file.add("rank", std::to_string(who.rank));
  file.add("size", std::to_string(size));
  for (const Section& section : sections) file.add(section.key, json_of(section));
  for (const OfProcess& row : of_process()) process.add(row.name, shown(row, row.read()));
  file.add("counts", process.object());
  file.add("decisions", decisions());
  return file.object() + "\n";
}

void write(const std::string& pattern, const std::string& text, const early::Speaker& who) {
  char path[4096];
  const char* wrong = early::expand_pattern(pattern.c_str(), who, path, sizeof path);
  if (!wrong && !write_whole(path, text)) wrong = std::strerror(errno);
  if (wrong)
    log_line(LogLevel::warn, "NEARFIELD_STATS_FILE=%s: %s; there are no statistics of this rank", pattern.c_str(),
             wrong);
}

bool is_wanted(const Settings& settings) { return settings.stats != Reporting::none || !settings.stats_file.empty(); }

}  // namespace

void begin(const Settings& settings) {
  if (!is_wanted(settings)) return;
  begin_counting();
  if (!settings.stats_file.empty()) choosing::keep_decisions();
}

void report(const Settings& settings) {
  if (!is_wanted(settings)) return;
  int rank = 0, size = 1;
  host.Comm_rank(host.world, &rank);
  host.Comm_size(host.world, &size);
  std::vector<Section> sections;
  for (const auto make : {operations, functions, components}) {
    Section section = make();
    std::erase_if(section.lines, [](const TextLine& line) { return !line.counted(); });
    sections.push_back(std::move(section));
  }
  if (settings.stats == Reporting::all_ranks || (settings.stats == Reporting::first_rank && rank == 0))
    print(sections, rank, size);
  if (!settings.stats_file.empty()) {
    const early::Speaker who = early::speaker(rank);
    write(settings.stats_file, json_of(sections, who, size), who);
  }
}

}  // namespace nearfield::mpi::statistics
