// Every setting of Nearfield. A setting is a row of one table (settings.cpp): the field that it fills, the environment
// variable, how its text is read, its default, what it means and whose value counts. Errors, `nearfield info`,
// docs/settings.md and control variables of MPI's tools interface derive from the rows. Settings are read once per
// process.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "engine/base/early_settings.hpp"
#include "engine/base/log.hpp"
#include "engine/machine/machine.hpp"
#include "engine/memory/placement.hpp"

namespace nearfield {

enum class WaitStyle : std::uint8_t { automatic, spin, yield, sleep };
// How all members of a team wait for each other (context/control_block.hpp).
enum class Meeting : std::uint8_t { automatic, flags, tree, gate };
// How messages travel: forced for all, or by size and reach.
enum class Protocol : std::uint8_t { automatic, queue, fastbox, copy_buffers, cma, mapped };
// How algorithms are chosen: by the cost model, by trials that start from it, by a file written by `nearfield tune`.
enum class Choosing : std::uint8_t { model, trial, file };
// Who keeps operations going that have begun: calls of the program alone, or a thread beside it as well.
enum class Progressing : std::uint8_t { calls, thread };
// Who prints statistics at the end.
enum class Reporting : std::uint8_t { none, first_rank, all_ranks };

// What the rows say, without their environment: their defaults.
struct Settings {
  Settings();
  bool enabled{};
  LogLevel log{};
  Reporting stats{};
  std::string stats_file;  // pattern of a file's name
  bool check{};
  std::string algorithm;  // grammar in choosing/choose.hpp
  Choosing choosing{};
  std::string tuned;    // that file
  bool reproducible{};  // reductions over nodes in rank order
  double stall_seconds{};
  std::string stall_signal;  // that writes a hang report
  std::uint32_t ways_left_out = 0;
  memory::Wishes memory;  // on which NUMA nodes memory should lie
  WaitStyle wait{};
  Progressing progress{};
  Meeting meeting{};
  bool messages{};  // carry point to point
  Protocol protocol{};
  std::uint64_t eager_bytes{};
  std::uint64_t young_calls{};
  Machine machine;         // its figures, for the choice of algorithms
  bool calibrate = false;  // measure and store those that are not known
  std::string record;      // directory of what calls did
  std::string trace;       // pattern of a file's name
  std::string node;        // pretend to live on a node of this name
};

// A value as its type, that of a name as the name.
using SettingValue = std::variant<std::string, bool, std::uint64_t, double>;

struct SettingAccess {
  // Text into the field; "", or what is wrong with it, behind "VARIABLE=text". An empty text is not read.
  std::string (*read)(const char* text, Settings& settings);
  // The field; nullptr: what is set is the text as it was given.
  SettingValue (*held)(const Settings& settings) = nullptr;
};
struct SettingRow : SettingText, SettingAccess {};
std::span<const SettingRow> settings_table();

// What is in force by `settings`; of what they do not hold, the environment's text or the default.
SettingValue value_of(const SettingRow& row, const Settings& settings);

// "each rank", "off in any rank", ...
const char* name(Decides decides);

// Where the figures of this machine are kept between runs.
std::string stored_machine();

// Where `nearfield tune` keeps what it has found.
std::string stored_tuning();

// Reads the environment. Text that cannot be understood is collected in `complaints` (empty when all is well).
Settings read_settings(std::string& complaints);

}  // namespace nearfield
