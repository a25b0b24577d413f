// Initialises and finalises the tools interface; calls are counted as the host counts them.
#include "mpi/shim/tools/interface.hpp"

#include <cstring>
#include <mutex>

#include "engine/base/made.hpp"
#include "engine/reach/shared_heap.hpp"
#include "mpi/shim/tools/variables.hpp"

namespace nearfield::mpi {
namespace tools {

struct AppendedIndices {
  Appended controls{int(control_variables().size())}, performances{int(performance_variables().size())}, categories{1};
};

Appended& controls() { return made<AppendedIndices>().controls; }
Appended& performances() { return made<AppendedIndices>().performances; }
Appended& categories() { return made<AppendedIndices>().categories; }

int number(Appended& indices, int (*get_num)(int*), int* result) {
  return answer([&]() -> int {
    if (const int code = know(indices, get_num); code != MPI_SUCCESS) return code;
    const int code = at_host(get_num, result);
    if (code == MPI_SUCCESS) *result = indices.number(*result);
    return code;
  });
}

void give_text(std::string_view text, char* buffer, int* length) {
  if (!length) return;
  if (buffer && *length > 0) {
    const std::size_t fits = std::min(text.size(), std::size_t(*length) - 1);
    std::memcpy(buffer, text.data(), fits);
    buffer[fits] = '\0';
  }
  *length = int(text.size()) + 1;
}

namespace {
constinit std::mutex counting_users;
constinit std::atomic<int> users{0};  // written under the lock
}  // namespace

bool initialized() { return users.load(std::memory_order_relaxed) > 0; }

}  // namespace tools

using namespace tools;

int T_init_thread(int required, int* provided) {
  const reach::SharedHeap::Pause pause;
  const std::lock_guard lock(counting_users);
  const int code = at_host(host.T_init_thread, required, provided);
  if (code == MPI_SUCCESS) ++users;
  return code;
}

// Indices are valid until the last call, since a host that starts anew may have fewer.
int T_finalize() {
  const std::lock_guard lock(counting_users);
  const int code = at_host(host.T_finalize);
  if (code != MPI_SUCCESS || --users > 0) return code;
  return answer([&] {
    forget_handles_of_controls();
    forget_handles_of_performances();
    for (Appended* indices : {&controls(), &performances(), &categories()}) indices->forget();
    return code;
  });
}

}  // namespace nearfield::mpi
