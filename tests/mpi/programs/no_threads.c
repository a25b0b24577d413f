/* Preloaded: Nearfield gets no thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  Dl_info caller;
  if (dladdr(__builtin_return_address(0), &caller) && caller.dli_fname && strstr(caller.dli_fname, "libnearfield"))
    return EAGAIN;
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  void* const found = dlsym(RTLD_NEXT, "pthread_create");
  memcpy(&real, &found, sizeof real);
  return real(thread, attributes, body, argument);
}
