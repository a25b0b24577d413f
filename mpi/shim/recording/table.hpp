// Where recorded calls are kept. A thread's table and ring are memory of their own, bounded, zero until they are used,
// and never given back; that thread alone writes them, and when it has ended the next thread that comes goes on with
// them. A row is there for others when its function is.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi/shim/recording/recording.hpp"

namespace nearfield::mpi::recording {

inline constexpr std::size_t rows_of_a_thread = 4096, places_of_a_thread = 2 * rows_of_a_thread;
inline constexpr std::size_t events_of_a_thread = std::size_t{1} << 16;

// A communicator by its context; where that is none, by its handle. Those that one split has made share a context, but
// no rank.
struct KnownCommunicator {
  std::uint64_t context;
  bool agreed;  // the context is equal on all of its ranks
  std::string name;
  int rank, size;
  int first;                                  // its first rank, in MPI_COMM_WORLD; -1: of another world
  bool inter;                                 // an intercommunicator: `rank`, `size` and `members` are of our group
  std::vector<int> members, remote;           // ranks in MPI_COMM_WORLD, at its first rank
  std::atomic<std::uint32_t> collectives{0};  // traced so far; all ranks count alike
  KnownCommunicator* next;
};

// A sum that one thread adds to.
class Sum {
 public:
  void add(std::uint64_t n) { value_.store(value() + n, std::memory_order_relaxed); }
  void raise(std::uint64_t n) {
    if (n > value()) value_.store(n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_;
};

struct CallSiteRow {
  std::atomic<Function> function;  // none: free. Released by add_row, acquired by who writes
  const void* site;
  std::uint64_t context;
  const char* algorithm;            // nullptr: none; `by_host`
  KnownCommunicator* communicator;  // nullptr: of none
  CallSiteRow* further;             // the same place by another algorithm
  std::uint32_t size_class;
  Sum place_calls;  // by whatever algorithm, where this row was the first of its place
  Sum calls, bytes, waited;
  Sum timed, ticks, waited_timed, longest;  // of the calls that were timed
};

struct Event {
  std::uint64_t start, end, bytes, waited;  // ticks, ticks, bytes, nanoseconds
  std::uint32_t row, number;                // of the communicator's collectives
  std::int32_t partner;
};

struct Thread {
  CallSiteRow* places[places_of_a_thread];  // by a hash, at most half of them taken
  CallSiteRow rows[rows_of_a_thread];
  std::uint32_t used;
  std::uint32_t number;            // in the order in which tables came
  Sum rows_lost, events;           // calls without a row, events ever
  Event ring[events_of_a_thread];  // touched only where there is a trace
  Thread* next;
  Thread* next_free;  // under the lock of table.cpp
};

extern std::atomic<Thread*> threads;             // the last that came; releases what it points to
extern std::atomic<KnownCommunicator*> known;    // likewise
extern std::atomic<std::uint64_t> calls_unkept;  // of threads that have no table
extern bool tracing;
extern bool all_timed;                        // and not some of them only
extern std::atomic<std::uint64_t> next_save;  // ticks
void save_so_far(std::uint64_t now);

// Lengths of a class are below 2^size_class; 0 is nothing.
inline std::uint32_t size_class(std::uint64_t bytes) { return bytes ? std::uint32_t(64 - __builtin_clzll(bytes)) : 0; }

}  // namespace nearfield::mpi::recording
