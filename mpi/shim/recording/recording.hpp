// Records a program's calls for `nearfield run --report`: NEARFIELD_RECORD counts them by call site, communicator, size
// and algorithm; NEARFIELD_TRACE keeps the last of them one by one.
//
// Whether calls are recorded is decided before the first one: only then do slots of libnearfield.so lead to the
// CallWrapper of each function, so it costs nothing otherwise. A CallWrapper's return address is the call site.
//
//   MPI_Init       begin(): from here on calls are recorded
//   a call         CallWrapper, CallTimer: counted in a row of the thread's own table (table.hpp)
//   now and then   save(): the file so far, for programs that are killed
//   MPI_Finalize   end(), or exit(): the final file, and the trace (writing.cpp)
//
// Each thread writes its own table, in memory of its own; saving reads all tables, whose numbers may be inconsistent
// before the end.
#pragma once
#include <atomic>
#include <cstdint>

#include "engine/processor/processor.h"
#include "engine/waiting/wait.hpp"
#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/recording/arguments.hpp"
#include "mpi/shim/statistics/counts.hpp"

namespace nearfield::mpi::recording {

const char* name(FunctionKind kind);

struct CallSiteRow;

// Returns whether the environment asks for recording; the first answer is kept.
bool wanted();
// Returns a CallWrapper that records calls of `function`, which serves the MPI function with that number. Returns
// `function` itself if such calls are not recorded.
void* around(Function number, void* function);

inline constinit std::atomic<bool> active{false};  // between begin() and end()
void begin();
void end();

// Observes a call of this thread from its beginning. pre: active, and not nested.
class CallTimer {
 public:
  // `words`: its arguments (calls::ArgumentWords).
  CallTimer(Function function, const void* site, const std::uint64_t* words);
  void end();

 private:
  const Function function_;
  const void* const site_;
  const std::uint64_t bytes_;
  const int partner_;
  const MPI_Comm communicator_;
  bool agreed_ = false;                // all ranks of the communicator have the same context
  std::uint64_t context_, start_ = 0;  // 0: not timed
  CallSiteRow** place_ = nullptr;
  const char* before_;  // last_algorithm before the call
};

inline constinit void* recorded[std::size_t(Function::count)] = {};  // what serves each function

// Wraps the function with that number.
template <Function number, class Signature>
struct CallWrapper;
template <Function number, class... Arguments>
struct CallWrapper<number, int(Arguments...)> {
  [[gnu::noinline]] static int call(Arguments... arguments) {
    const auto inner = reinterpret_cast<int (*)(Arguments...)>(recorded[unsigned(number)]);
    if (!active.load(std::memory_order_relaxed) || inside->recorded) return inner(arguments...);
    const calls::ArgumentWords words(arguments...);
    CallTimer seen(number, __builtin_return_address(0), words.all);
    const int code = inner(arguments...);
    seen.end();
    return code;
  }
};

}  // namespace nearfield::mpi::recording
