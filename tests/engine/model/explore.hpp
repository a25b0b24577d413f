// Explores what processes that run the engine's own code can do to each other.
//
// Processes are fibers. Before every access to a shared word (Atomic, engine/base/atomic.hpp) a fiber gives way to the
// explorer, which runs everything again from the start for each choice that it has not made yet, depth first.
//
// Memory is that of x86, or that of the language. What is no Atomic happens at once in both: data whose publication is
// in question is put and got (below).
//
//   x86        A store goes to its process's buffer, which hands its oldest store to memory at any later moment; loads
//              see the own buffer first; read-modify-writes, sequentially consistent stores, fences and system calls
//              wait until it is empty, and a barrier on all processors until each buffer has been empty once.
//   language   A word keeps what it has been, and each process knows from which value of each word on it may read. A
//              load returns any value from there on, and from then on no earlier one. A release store, and what
//              read-modify-writes make of it, carries what its process knew; an acquire load that returns it learns
//              that. Read-modify-writes work on the last value, and sequentially consistent loads return none before
//              the last sequentially consistent store of the word. A word's values are in the order in which its
//              stores were made. A fence learns what all fences before it knew; a barrier on all processors is one in
//              every process. Not explored: loads that return what is stored only after later stores of their own
//              process (no processor delays a load so when a branch depends on it).
//
// A state is the memory, the buffers or what may still be read, and what each process has seen so far: as processes are
// deterministic, that is where they are. No state is explored twice. A process that pauses goes on when a word that it
// has looked at since its last pause has changed, and its fruitless looks are forgotten.
//
// A process asleep in a futex wakes by a wake. Its time runs out only when nothing else can happen, so the naps of a
// run are the wakes that were missed.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/atomic.hpp"

namespace nearfield::testing {

// Weakens memory, or what the engine does with it, so that a model can show that it would notice.
struct Mutation {
  bool split_updates = false;   // read-modify-writes are a load and a store
  bool blind_compares = false;  // compare-and-swap always stores and says that it did
  bool unordered = false;       // buffers hand their stores out in any order
  bool no_wakes = false;        // a futex wakes nobody
  bool no_zeros = false;        // stores of 0 are lost
  bool no_release = false;      // release stores are relaxed ones (language)
  bool no_acquire = false;      // acquire loads are relaxed ones (language)
  bool no_barriers = false;     // barriers on all processors do nothing
};

enum class Memory : std::uint8_t { x86, language };

struct Options {
  Memory memory = Memory::x86;
  bool store_buffers = true;
  bool pause_after_stores = false;  // others run, too, between a store and what its process does next outside of words
  int preemptions = -1;             // at most so many; -1: any number
  Mutation mutation = {};
};

struct Explored {
  std::size_t states = 0, runs = 0;
  bool failed = false, deadlocked = false;
  int naps = 0;       // the most in one run
  std::string trace;  // the failure: what was wrong, and the steps to it: processes, and "-process": its
                      // buffer (x86), or a load of an older value (language)
  bool good() const { return !failed && !deadlocked; }
};

#define EXPECT_GOOD(explored) EXPECT_TRUE((explored).good()) << (explored).trace

// `begin` makes everything anew and gives the body of the processes 0 .. count - 1.
Explored explore(int count, const std::function<std::function<void(int process)>()>& begin,
                 const Options& options = {});
// In GoogleTest's report of the test that runs (record.cpp).
void record(int count, const Options& options, const Explored& explored);

// In a body: what must hold.
void require(bool holds, const char* what);
// Data that a word publishes, as one more word.
inline void put(const void* at, std::uint64_t value) {
  static_cast<Atomic<std::uint64_t>*>(const_cast<void*>(at))->store(value, std::memory_order_relaxed);
}
inline std::uint64_t get(const void* at) {
  return static_cast<const Atomic<std::uint64_t>*>(at)->load(std::memory_order_relaxed);
}

// The same memory mapped again, by another process: words are told apart by segment and offset.
void know_mapping(const void* base, std::size_t bytes, int segment);
void forget_mappings();
// Runs bodies in turn without exploring; each may call let_others_run. Throws std::runtime_error where one fails.
void run_in_turn(int count, const std::function<void(int process)>& body);
void let_others_run();

}  // namespace nearfield::testing
