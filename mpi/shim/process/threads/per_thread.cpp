#include "mpi/shim/process/threads/per_thread.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "engine/base/log.hpp"

namespace nearfield::mpi::threads {
namespace {

constinit Variable* variables = nullptr;
constinit std::size_t more = 0;  // bytes beyond at::others
constexpr std::size_t most = 4096;
alignas(64) constinit std::byte of_first[most] = {};  // the first thread allocates nothing
constinit std::atomic<bool> first_is_taken{false};
std::size_t used() { return at::others + more; }

[[noreturn]] void give_up(const char* why) {
  log_line(LogLevel::error, "%s", why);
  std::abort();
}

}  // namespace

Variable::Variable(std::size_t bytes, std::size_t alignment, std::size_t offset) : offset_(offset), next_(variables) {
  variables = this;
  if (offset == at::anywhere) {
    offset_ = (used() + alignment - 1) & ~(alignment - 1);
    more = offset_ + bytes - at::others;
  }
  bool alone = used() <= most && alignment <= alignof(std::max_align_t) && offset_ % alignment == 0;
  end_ = offset_ + bytes;
  for (const Variable* each = next_; each; each = each->next_) alone &= each->end_ <= offset_ || end_ <= each->offset_;
  if (!alone) give_up("variables of threads do not fit their block");
}

void end_block(void* of_thread) {
  auto* const at = static_cast<std::byte*>(of_thread);
  for (const Variable* each = variables; each; each = each->next_) each->destroy(at);
  block = nullptr;
  std::free(at);
}

// Ends the process if there is no memory, as the C library does when it cannot allocate thread-local variables.
[[gnu::noinline]] std::byte* make_block() {
  const bool first = !first_is_taken.exchange(true, std::memory_order_relaxed);
  auto* const made = first ? of_first : static_cast<std::byte*>(std::malloc(used()));
  if (!made) give_up("there is no memory for the variables of a thread");
  for (const Variable* each = variables; each; each = each->next_) each->construct(made);
  block = made;
  if (first) return made;
  struct Key {
    pthread_key_t key = 0;
    bool good = pthread_key_create(&key, end_block) == 0;
  };
  static const Key key;
  if (key.good) pthread_setspecific(key.key, made);  // otherwise the block is never freed
  return made;
}

}  // namespace nearfield::mpi::threads
