// Tables of recorded calls. A thread's table and ring lie in bounded memory of their own, which is zero at first and
// never freed. Only that thread writes them; when it has ended, the next new thread continues with them. A row is
// visible to other threads once its function is set.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi/shim/recording/recording.hpp"

namespace nearfield::mpi::recording {

inline constexpr std::size_t rows_of_a_thread = 4096, places_of_a_thread = 2 * rows_of_a_thread;
inline constexpr std::size_t events_of_a_thread = std::size_t{1} << 16;

// Messages of this rank to one rank of a communicator; any thread adds.
struct SentTo {
  std::atomic<std::uint64_t> messages{0}, bytes{0};
};

// A communicator, known by its context, or its handle if it has none. Those of one split share a context, but no rank.
struct KnownCommunicator {
  std::uint64_t context;
  bool agreed;  // all its ranks have the same context
  std::string name;
  int rank, size;
  int first;                                  // MPI_COMM_WORLD's rank of its first rank; -1: in another world
  bool inter;                                 // an intercommunicator: `rank`, `size` and `members` are of our group
  std::vector<int> members, remote;           // ranks in MPI_COMM_WORLD; only its first rank fills them in
  std::atomic<std::uint32_t> collectives{0};  // traced so far; the same on all ranks
  std::unique_ptr<SentTo[]> sent;             // one for each of the `partners` ranks that this rank can send to
  int partners;
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
  std::atomic<Function> function;  // none: free. Stored (release) by add_row, loaded (acquire) when files are written
  const void* site;
  std::uint64_t context;
  const char* algorithm;            // nullptr: none; `by_host`
  KnownCommunicator* communicator;  // nullptr: the call has none
  CallSiteRow* further;             // row of the same call site with another algorithm
  std::uint32_t size_class;
  Sum place_calls;  // calls by all algorithms; only in the first row of a place
  Sum calls, bytes, waited;
  Sum timed, ticks, waited_timed, longest;  // of the calls that were timed
};

struct Event {
  std::uint64_t start, end, bytes, waited;  // ticks, ticks, bytes, nanoseconds
  std::uint32_t row, number;                // number: position among the communicator's collectives
  std::int32_t partner;
};

struct Thread {
  CallSiteRow* places[places_of_a_thread];  // hash table, at most half full
  CallSiteRow rows[rows_of_a_thread];
  std::uint32_t used;
  std::uint32_t number;            // in the order of creation
  Sum rows_lost, events;           // calls without a row, all events
  Event ring[events_of_a_thread];  // used only when tracing
  Thread* next;
  Thread* next_free;  // under the lock of table.cpp
};

inline constinit std::atomic<Thread*> threads{nullptr};           // the newest
inline constinit std::atomic<KnownCommunicator*> known{nullptr};  // the newest
inline constinit std::atomic<std::uint64_t> calls_unkept{0};      // calls of threads without a table
inline constinit bool tracing = false;
inline constinit bool all_timed = false;                   // false: a sample of them
inline constinit std::atomic<std::uint64_t> next_save{0};  // ticks
void save_so_far(std::uint64_t now);

// Sizes of a class are below 2^size_class; class 0 is size 0.
inline std::uint32_t size_class(std::uint64_t bytes) { return bytes ? std::uint32_t(64 - __builtin_clzll(bytes)) : 0; }

}  // namespace nearfield::mpi::recording
