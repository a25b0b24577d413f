// The type of words that processes share. Tests that model the protocols (tests/engine/model) replace it by a type that
// asks their scheduler, the explorer, before each access.
#pragma once
#include <atomic>

namespace nearfield {

#ifdef NEARFIELD_MODEL
template <class T>
using Atomic = testing::ModelAtomic<T>;
#else
template <class T>
using Atomic = std::atomic<T>;
#endif

}  // namespace nearfield
