// Atomic operations on words that the program declares, and a full memory fence. The models of the protocols replace
// both, as they replace Atomic (atomic.hpp).
#pragma once
#include <atomic>

namespace nearfield {

#ifdef NEARFIELD_MODEL
template <class T>
using AtomicRef = testing::ModelAtomicRef<T>;
inline void full_fence() { testing::fence_process(); }
#else
template <class T>
using AtomicRef = std::atomic_ref<T>;
#ifdef __SANITIZE_THREAD__  // ThreadSanitizer does not understand fences
inline void full_fence() {
  std::atomic<int> word{0};
  word.exchange(1, std::memory_order_seq_cst);  // SYNC: full-fence
}
#else
inline void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }  // SYNC: full-fence
#endif
#endif

}  // namespace nearfield
