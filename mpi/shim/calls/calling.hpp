// The calls of the program that are under way: each says which it is in a word that the node's processes see, and where
// its arguments lie, on its stack, to its own thread. That is all that a call costs which nobody asks about: 1 to 4 ns,
// most of it for arguments that go to the stack.
#pragma once
#include <cstdint>
#include <type_traits>

#include "engine/roll/post.hpp"
#include "mpi/shim/host.hpp"

namespace nearfield::mpi {

// Every function that is ours, or that may block in the host. Equal numbers in all processes of a job.
enum class Function : std::uint16_t {
  none,
#define NAME(name) name,
#include "mpi/each_function.def"
  blocking_ones,
#define F(name, types) Blocking_##name,
#define L(name, types) Blocking_##name##_c,
#include "mpi/shim/signatures.def"
#undef F
#undef L
  count
};

namespace calls {

struct Call {
  Function function;
  const void* site;  // that it returns to
  const std::uint64_t* argument;
  const Call* outer;  // that it was called in: by a callback or a tool
};

extern constinit thread_local const Call* innermost;
// This thread's word (Post::call). Of its own as long as it has no post.
extern constinit thread_local std::atomic<std::uint64_t>* word;
void take_post();                // gives it one, once MPI is up
void go_on(std::uint64_t call);  // with the outer call, whose word that was

// An argument of any MPI function: an integer or a pointer.
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

// All of a call, an element each.
template <class... Arguments>
struct Words {
  explicit Words(Arguments... arguments) : all{as_word(arguments)...} {}
  std::uint64_t all[sizeof...(Arguments)];
};
template <>
struct Words<> {
  static constexpr const std::uint64_t* all = nullptr;
};

// Around one call. `words`: its arguments.
class Calling {
 public:
  [[gnu::always_inline]] Calling(Function function, const void* site, const std::uint64_t* words)
      : call_{function, site, words, innermost} {
    innermost = &call_;
    if (!word) [[unlikely]]
      take_post();
    before_ = word->load(std::memory_order_relaxed);
    during_ = roll::next_call(before_, unsigned(function));
    word->store(during_, std::memory_order_relaxed);
  }
  [[gnu::always_inline]] ~Calling() {
    innermost = call_.outer;
    if (call_.outer) [[unlikely]]
      go_on(before_);
    else word->store(during_ - 1, std::memory_order_relaxed);
  }
  Calling(const Calling&) = delete;

 private:
  const Call call_;
  std::uint64_t before_, during_;
};

}  // namespace calls
}  // namespace nearfield::mpi
