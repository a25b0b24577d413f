#include "engine/memory/apart.hpp"

#include <chrono>
#include <thread>

namespace nearfield::memory {

bool lock_for_fork(std::mutex& mutex) {
  using namespace std::chrono;
  for (const auto end = steady_clock::now() + seconds(1); !mutex.try_lock(); std::this_thread::yield())
    if (steady_clock::now() > end) return false;
  return true;
}

}  // namespace nearfield::memory
