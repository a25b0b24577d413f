// What engine/base/atomic_ref.hpp is in models.
#pragma once
#include "tests/engine/model/atomic.hpp"

namespace nearfield::testing {

void fence_process();

template <class T>
class ModelAtomicRef {
 public:
  explicit ModelAtomicRef(T& word) : word_(reinterpret_cast<ModelAtomic<T>&>(word)) {}
  T load(std::memory_order order) const { return word_.load(order); }
  T exchange(T value, std::memory_order order) const { return word_.exchange(value, order); }
  T fetch_add(T value, std::memory_order order) const { return word_.fetch_add(value, order); }
  T fetch_and(T value, std::memory_order order) const {
    return change(order, [=](T was) { return T(was & value); });
  }
  T fetch_or(T value, std::memory_order order) const {
    return change(order, [=](T was) { return T(was | value); });
  }
  T fetch_xor(T value, std::memory_order order) const {
    return change(order, [=](T was) { return T(was ^ value); });
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order, std::memory_order other) const {
    return word_.compare_exchange_strong(expected, value, order, other);
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order, std::memory_order other) const {
    return word_.compare_exchange_weak(expected, value, order, other);
  }

 private:
  template <class Change>
  T change(std::memory_order order, Change becomes) const {
    T was = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(was, becomes(was), order, std::memory_order_relaxed)) continue;
    return was;
  }
  ModelAtomic<T>& word_;
};

}  // namespace nearfield::testing
