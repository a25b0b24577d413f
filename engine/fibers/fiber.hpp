// A stack of its own for a body that can be suspended.
#pragma once
#include <cstddef>

namespace nearfield::fibers {

// One body at a time. Whoever starts or resumes it goes on when it has suspended or ended; that may be another thread
// each time, but never two at once. A body must not keep the address of a thread's own variable while it is suspended,
// hence must not be suspended in a catch handler: what is being handled is the thread's.
class Fiber {
 public:
  // Throws std::bad_alloc.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;

  // body(context) on this stack, which must not throw. pre: ended().
  void start(void (*body)(void*), void* context);
  void resume();   // pre: it has suspended
  void suspend();  // by the body
  bool ended() const { return ended_; }

 private:
  [[noreturn]] static void run(void* fiber);
  void enter();
  void leave(bool for_good);
  std::byte* memory_ = nullptr;  // a guard page, then the stack
  void* own_ = nullptr;          // where the body goes on
  void* other_ = nullptr;        // where whoever runs it goes on
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  bool ended_ = true;
  // What sanitizers know of both stacks.
  [[maybe_unused]] void *own_shadow_ = nullptr, *other_shadow_ = nullptr;
  [[maybe_unused]] const void* other_stack_ = nullptr;
  [[maybe_unused]] std::size_t other_bytes_ = 0;
};

}  // namespace nearfield::fibers
