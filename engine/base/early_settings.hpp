// Texts of a setting, and the settings that are read before the engine exists: by the shared heap at the first
// allocation, and by libnearfield.so. Neither links the C++ library, so nothing of it is used here.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace nearfield {

// Whose value of a setting counts in a communicator.
enum class Decides : unsigned char {
  each_rank,   // each rank follows its own
  any_rank,    // if it is off in one rank, it is off in all
  first_rank,  // that of the communicator's first rank, which publishes it (creation/create.cpp)
  the_heap,    // each rank's heap follows its own, before anything else runs
};

struct SettingText {
  const char* variable;
  const char* fallback;  // default, as text of the variable; "": it depends on the machine, or there is none
  Decides decides;
  const char* meaning;
};

namespace early {

inline bool is_off(const char* variable) {
  const char* const text = std::getenv(variable);
  return text && (!std::strcmp(text, "off") || !std::strcmp(text, "0"));
}

// In the order of LogLevel.
inline constexpr const char* log_levels[] = {"off", "error", "warn", "info", "debug"};
inline constexpr SettingText log{"NEARFIELD_LOG", "warn", Decides::each_rank,
                                 "messages on standard error: `off`, `error`, `warn`, `info`, `debug`"};
// Returns the index of a level; -1: the text is none.
inline int log_level(const char* text) {
  for (int i = 0; i < int(sizeof log_levels / sizeof *log_levels); ++i)
    if (!std::strcmp(text, log_levels[i])) return i;
  return -1;
}

inline constexpr SettingText log_file{
    "NEARFIELD_LOG_FILE", "", Decides::each_rank,
    "files for the log instead of standard error: a path in which `%h` is the host, `%p` the process and "
    "`%r` the rank in MPI_COMM_WORLD (`unknown` before MPI_Init has returned). If a file cannot be "
    "opened, the log stays on standard error and says why"};

inline constexpr SettingText outcome{
    "NEARFIELD_OUTCOME", "", Decides::each_rank,
    "a file in which each process of this node records whether it is served, and why not; `nearfield run` "
    "sets it"};

inline constexpr SettingText libraries{"NEARFIELD_LIBDIR", "", Decides::each_rank,
                                       "the directory of the libraries; default: beside libnearfield.so"};

// The next two are read before the first call of MPI, when the functions of MPI are bound.
inline constexpr SettingText record{
    "NEARFIELD_RECORD", "", Decides::each_rank,
    "a directory in which each rank records its MPI calls by place, communicator and length. `nearfield run "
    "--report` sets it and makes a page of the files"};
inline constexpr SettingText trace{
    "NEARFIELD_TRACE", "", Decides::each_rank,
    "a file for each rank, in which the rank writes its last calls one by one, for Chrome and Perfetto; at most "
    "65536 for each thread. `%r` is the rank, `%p` the process, `%h` the host; the path needs `%r` or `%p`"};

inline constexpr SettingText stats_file{
    "NEARFIELD_STATS_FILE", "", Decides::each_rank,
    "a file for each rank, in which the rank writes its statistics as JSON at the end (`nearfield stats` and "
    "`nearfield plan --job` read them). `%r` is the rank, `%p` the process, `%h` the host; the path needs "
    "`%r` or `%p`. If it cannot be written, the log says why"};

inline constexpr SettingText shm{"NEARFIELD_SHM", "on", Decides::each_rank,
                                 "`on`: if /dev/shm has little room, memory that the host MPI creates there becomes a "
                                 "memfd, so the host starts in containers with 64 MB or less "
                                 "(docs/user/containers.md). `off`: it stays a file"};

inline constexpr const char* heaps[] = {"shared", "off"};
inline constexpr SettingText heap{
    "NEARFIELD_HEAP", "shared", Decides::the_heap,
    "`shared`: `nearfield run` preloads the shared heap. `off`: the program keeps its own "
    "allocator. If you preload libnearfield-heap.so by hand, `off` switches it off. The heap switches itself off if "
    "address space is limited (`ulimit -v`), vm.overcommit_memory is 2 or /proc is missing, and under sanitizers, "
    "Valgrind and musl; and with NEARFIELD=off, unless this setting is given"};

inline constexpr SettingText heap_keep{
    "NEARFIELD_HEAP_KEEP", "", Decides::the_heap,
    "how many freed bytes the shared heap keeps for reuse: a number without a unit; default: 256 MiB, at most "
    "1/16 of memory"};

// Accepts digits alone, while strtoull would accept more. Leaves `bytes` as it is if the text is wrong.
inline bool read_bytes(const char* text, std::size_t& bytes) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  const std::size_t read = std::strtoull(text, &end, 10);
  if (*end) return false;
  bytes = read;
  return true;
}

}  // namespace early
}  // namespace nearfield
