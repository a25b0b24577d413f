// The type of words that processes share. Models of the protocols run the engine with another one, which asks an
// explorer before each access (tests/engine/model).
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
