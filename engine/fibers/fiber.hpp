// A stack for a body that can be suspended.
#pragma once
#include <cstddef>

namespace nearfield::fibers {

// It runs one body at a time. start() and resume() return when the body has suspended or ended. Different threads may
// call them, one after the other. A body must not keep the address of a thread-local variable while it is suspended. So
// it must not suspend in a catch handler, since the exception being handled is thread-local.
class Fiber {
 public:
  // Throws std::bad_alloc.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;

  // Runs body(context), which must not throw, on this stack. pre: ended().
  void start(void (*body)(void*), void* context);
  void resume();   // pre: it has suspended
  void suspend();  // called by the body
  bool ended() const { return ended_; }

 private:
  [[noreturn]] static void run(void* fiber);
  void enter();
  void leave(bool for_good);
  std::byte* memory_ = nullptr;  // a guard page, then the stack
  void* own_ = nullptr;          // saved stack pointer of the body
  void* other_ = nullptr;        // saved stack pointer of the thread that runs it
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  bool ended_ = true;
  // State of the sanitizers for both stacks.
  [[maybe_unused]] void *own_shadow_ = nullptr, *other_shadow_ = nullptr;
  [[maybe_unused]] const void* other_stack_ = nullptr;
  [[maybe_unused]] std::size_t other_bytes_ = 0;
};

}  // namespace nearfield::fibers
