#include "engine/fibers/fiber.hpp"

#include <sys/mman.h>

#include <new>

#include "engine/base/out_of_memory.hpp"
#include "engine/processor/stacks.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace nearfield::fibers {
namespace {

// Bodies keep blocks of some KiB on the stack (collectives/pieces/folding.hpp), and write reports. Untouched pages take
// no memory.
constexpr std::size_t stack_bytes = 128 << 10, guard_bytes = 4096;

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemory();
  if (mprotect(memory, guard_bytes, PROT_NONE)) {
    munmap(memory, guard_bytes + stack_bytes);
    throw OutOfMemory();
  }
  memory_ = static_cast<std::byte*>(memory);
#ifdef __SANITIZE_THREAD__
  own_shadow_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(own_shadow_);
#endif
  munmap(memory_, guard_bytes + stack_bytes);
}

void Fiber::start(void (*body)(void*), void* context) {
  body_ = body;
  context_ = context;
  ended_ = false;
  own_ = nearfield_prepare_stack(memory_ + guard_bytes + stack_bytes, run, this);
  resume();
}

void Fiber::resume() {
#ifdef __SANITIZE_ADDRESS__
  void* shadow = nullptr;
  __sanitizer_start_switch_fiber(&shadow, memory_ + guard_bytes, stack_bytes);
#endif
#ifdef __SANITIZE_THREAD__
  other_shadow_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_shadow_, 0);
#endif
  nearfield_switch_stack(&other_, own_);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
}

// Called on the fiber's stack after each switch to it.
void Fiber::enter() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(own_shadow_, &other_stack_, &other_bytes_);
#endif
}

void Fiber::leave([[maybe_unused]] bool for_good) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_good ? nullptr : &own_shadow_, other_stack_, other_bytes_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(other_shadow_, 0);
#endif
  nearfield_switch_stack(&own_, other_);
}

void Fiber::suspend() {
  leave(false);
  enter();
}

void Fiber::run(void* fiber) {
  auto& self = *static_cast<Fiber*>(fiber);
  self.enter();
  self.body_(self.context_);
  self.ended_ = true;
  self.leave(true);
  __builtin_unreachable();
}

}  // namespace nearfield::fibers
