// Every setting of Nearfield, in one table: the environment variable, its meaning, its default.
// Settings are read once per process; whatever has to be equal on all ranks of a communicator is taken
// from the communicator's first rank, which publishes it (team/create.cpp).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "engine/machine/machine.hpp"

namespace nearfield {

enum class LogLevel : std::uint8_t { off, error, warn, info, debug };
enum class WaitStyle : std::uint8_t { automatic, spin, yield, sleep };
// How all members of a team wait for each other (track/words.hpp).
enum class Meeting : std::uint8_t { automatic, flags, tree, gate };
// How messages travel: forced for all, or by size and reach.
enum class Protocol : std::uint8_t { automatic, queue, fastbox, copy_buffers, cma, mapped };

// How algorithms are chosen: by the cost model, by trials that start from it, by a file written by `nearfield tune`.
enum class Choosing : std::uint8_t { model, trial, file };

struct Settings {
  bool enabled = true;
  LogLevel log = LogLevel::warn;
  bool stats = false;
  bool stats_all = false;  // every rank prints, not only the first
  bool check = false;
  std::string algorithm;  // grammar in choosing/choose.hpp
  Choosing choosing = Choosing::trial;
  std::string tuned;          // that file
  double stall_seconds = 60;  // 0: never report
  std::uint32_t ways_left_out = 0;
  WaitStyle wait = WaitStyle::automatic;
  Meeting meeting = Meeting::automatic;
  bool messages = true;  // carry point to point
  Protocol protocol = Protocol::automatic;
  std::uint64_t eager_bytes = 16 << 10;  // messages up to this length travel with their envelope
  Machine machine;                       // its figures, for the choice of algorithms
  bool calibrate = false;                // measure and store those that are not known
  std::string node;                      // pretend to live on a node of this name
};

struct SettingRow {
  const char* variable;
  const char* fallback;
  const char* meaning;
};
std::span<const SettingRow> settings_table();

// Where the figures of this machine are kept between runs.
std::string stored_machine();

// Where `nearfield tune` keeps what it has found.
std::string stored_tuning();

// Reads the environment. Text that cannot be understood is collected in `complaints` (empty when all is well).
Settings read_settings(std::string& complaints);

// One line on standard error, when `level` is at or above what NEARFIELD_LOG asks for.
void log_line(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void set_log_level(LogLevel level);

}  // namespace nearfield
