// Notes the program's calls under way. Each call stores its function in a word that the node's processes can read (the
// *post*), and the address of its arguments, which lie on its stack, for its own thread. That costs 1 to 4 ns, mostly
// for storing arguments on the stack.
//
// A callback of the program may leave a call by longjmp, which runs no code here. The next call therefore drops calls
// whose return address is no longer on the stack above its own.
#pragma once
#include <cstdint>
#include <type_traits>

#include "engine/hang_report/call_post.hpp"
#include "engine/processor/processor.h"
#include "mpi/numbers.hpp"
#include "mpi/shim/process/host.hpp"
#include "mpi/shim/process/threads/inside.hpp"

namespace nearfield::mpi {

namespace calls {

struct CallFrame {
  Function function;
  const void* site;  // return address
  const std::uint64_t* argument;
  void* const* slot;     // on the stack, where `site` lies
  std::uint64_t before;  // in a nested call, from a callback or a tool: the outer call's word
  Inside inside;         // the thread's `inside` before
};

// Calls of one thread, the outermost first; at most `most`. Calls nested deeper are not noted.
struct Calls {
  static constexpr unsigned most = 8;
  unsigned depth = 0;
  std::atomic<std::uint64_t>* word = nullptr;  // CallPost::call, or without a post a word of its own
  CallFrame call[most];

  CallFrame* innermost() { return depth == 0 ? nullptr : &call[depth < most ? depth - 1 : most - 1]; }
};
extern const PerThread<Calls, threads::at::calls> calls_of_thread;
void take_post(Calls& calls);                    // gives the thread a word; a post once MPI is initialised
unsigned nest(Calls& calls, void* const* slot);  // drops calls left by longjmp; returns how many enclose the new one
void go_on(Calls& calls, std::uint64_t word);    // a nested call has ended; `word`: what the outer one had stored

// Converts an argument of an MPI function, an integer or a pointer.
template <class T>
std::uint64_t as_word(T value) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<std::uintptr_t>(value);
  else return std::uint64_t(std::int64_t(value));
}

template <class T>
T from_word(std::uint64_t word) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(word);
  else return T(word);
}

// All arguments of a call, one element each.
template <class... Arguments>
struct ArgumentWords {
  explicit ArgumentWords(Arguments... arguments) : all{as_word(arguments)...} {}
  std::uint64_t all[sizeof...(Arguments)];
};
template <>
struct ArgumentWords<> {
  static constexpr const std::uint64_t* all = nullptr;
};

// Scope of one call. `words`: its arguments.
class CallScope {
 public:
  [[gnu::always_inline]] CallScope(Function function, const void* site, void* const* slot, const std::uint64_t* words)
      : calls_(*calls_of_thread) {
    if (calls_.depth) [[unlikely]]
      depth_ = nest(calls_, slot);
    if (!calls_.word) [[unlikely]]
      take_post(calls_);
    before_ = calls_.word->load(std::memory_order_relaxed);
    if (depth_ < Calls::most) [[likely]] {
      CallFrame& call = calls_.call[depth_];
      call.function = function, call.site = site, call.argument = words, call.slot = slot;
    }
    calls_.depth = depth_ + 1;
    during_ = hang_report::next_call(before_, unsigned(function));
    calls_.word->store(during_, std::memory_order_relaxed);
  }
  [[gnu::always_inline]] ~CallScope() {
    calls_.depth = depth_;
    if (depth_) [[unlikely]]
      go_on(calls_, before_);
    else calls_.word->store(during_ - 1, std::memory_order_relaxed);
  }
  CallScope(const CallScope&) = delete;

 private:
  Calls& calls_;
  unsigned depth_ = 0;
  std::uint64_t before_, during_;
};

}  // namespace calls
}  // namespace nearfield::mpi
