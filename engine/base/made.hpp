// An object of the whole process, made at its first use. Never destroyed: threads and handlers of exit() outlive main.
#pragma once
#include <atomic>

namespace nearfield {

template <class T>
T& made(std::atomic<T*>& at) {
  T* known = at.load(std::memory_order_acquire);  // SYNC: made
  if (known) [[likely]]
    return *known;
  auto* const mine = new T;
  if (at.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) return *mine;  // SYNC: made
  delete mine;
  return *known;
}
// The library's only object of type T.
template <class T>
T& made() {
  static constinit std::atomic<T*> at{nullptr};
  return made(at);
}

}  // namespace nearfield
