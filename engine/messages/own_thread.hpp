// How threads of ours begin.
#pragma once
#include <pthread.h>
#include <signal.h>

#include "engine/waiting/progress.hpp"

namespace nearfield::messages {

// Runs (object->*body)() in a thread of ours. Signals are for the program's own threads. False: none can be had.
template <auto body, class Object>
bool start_own_thread(pthread_t& thread, Object* object) {
  auto run = [](void* context) -> void* {
    waiting::own_thread = true;
    (static_cast<Object*>(context)->*body)();
    return nullptr;
  };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool good = pthread_create(&thread, nullptr, run, object) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return good;
}

}  // namespace nearfield::messages
