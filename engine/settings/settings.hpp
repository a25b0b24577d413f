// Every setting of Nearfield. A setting is a row of one table (settings.cpp): environment variable, default, whose
// value counts, help and parser. Errors, `nearfield info` and docs/reference/settings.md derive from the rows. Settings
// are read once per process.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "engine/base/early_settings.hpp"
#include "engine/base/log.hpp"
#include "engine/machine/machine.hpp"
#include "engine/memory/placement.hpp"

namespace nearfield::settings {

enum class WaitStyle : std::uint8_t { automatic, spin, yield, sleep };
// Barrier of a team (context/control_block.hpp).
enum class Meeting : std::uint8_t { automatic, flags, tree, gate };
// Protocol of messages: forced for all, or chosen by size and reach.
enum class Protocol : std::uint8_t { automatic, queue, fastbox, copy_buffers, cma, mapped };
// How records of several lines are handed over (messages/publication.hpp).
enum class Publishing : std::uint8_t { automatic, keep, ahead, demote };
// Algorithms are chosen by the cost model, by trials that start from it, or by a file that `nearfield tune` has
// written.
enum class Choosing : std::uint8_t { model, trial, file };
// Operations progress in calls of the program alone, or in a thread of their own as well.
enum class Progressing : std::uint8_t { calls, thread };
// Ranks that print statistics at the end.
enum class Reporting : std::uint8_t { none, first_rank, all_ranks };

// Values of all settings; the constructor sets the rows' defaults.
struct Settings {
  Settings();
  bool enabled{};
  LogLevel log{};
  Reporting stats{};
  std::string stats_file;  // pattern of file names
  bool check{};
  std::string algorithm;  // grammar in choosing/choose.hpp
  Choosing choosing{};
  std::string tuned;    // the file for Choosing::file
  bool reproducible{};  // reductions over nodes in rank order
  double stall_seconds{};
  std::string stall_signal;         // the signal that writes a hang report
  std::uint32_t ways_left_out = 0;  // a bit for each way of reach that is not used
  memory::Wishes memory;            // on which NUMA nodes memory should lie
  WaitStyle wait{};
  Progressing progress{};
  Meeting meeting{};
  bool messages{};  // true: Nearfield serves point-to-point calls
  Protocol protocol{};
  Publishing publishing{};
  std::uint64_t eager_bytes{};     // longest message whose sender never waits for the receiver
  std::uint64_t deferred_calls{};  // first collective calls of a communicator that the host serves
  Machine machine;                 // its figures, for the choice of algorithms
  bool calibrate = false;          // ranks measure and store unknown figures
  std::string record;              // directory of the recording
  std::string trace;               // pattern of file names
  std::string node;                // the process pretends to be on a node of this name
};

struct SettingReader {
  // Parses the text, which is not empty, into the field. Returns "", or an error text that continues "VARIABLE=text".
  std::string (*read)(const char* text, Settings& settings);
};
struct SettingRow : SettingText, SettingReader {};
std::span<const SettingRow> settings_table();

// Returns "each rank", "off in any rank", ...
const char* name(Decides decides);

// Returns the file that keeps the figures of this machine between runs.
std::string stored_machine();

// Returns the file that `nearfield tune` writes.
std::string stored_tuning();

// Reads the environment. Errors are collected in `complaints`; empty: there are none.
Settings read_settings(std::string& complaints);

}  // namespace nearfield::settings

namespace nearfield {
using settings::Choosing, settings::Meeting, settings::Progressing, settings::Protocol, settings::Publishing,
    settings::Reporting, settings::Settings, settings::WaitStyle;
using settings::name, settings::read_settings, settings::SettingRow, settings::settings_table, settings::stored_machine,
    settings::stored_tuning;
}  // namespace nearfield
