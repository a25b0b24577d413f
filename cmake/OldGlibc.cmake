# nearfield_old_glibc(TARGET LIBRARIES...): TARGET loads from glibc 2.28 on, whatever it is built with (old_glibc.c says
# how). LIBRARIES are those that it needs out of what was apart from libc.so.6 until 2.34.
function(nearfield_old_glibc target)
  set(names dlopen dlsym dlclose dlerror dladdr dladdr1 dlinfo pthread_create pthread_join pthread_detach pthread_once
            __pthread_key_create pthread_key_create pthread_getspecific pthread_setspecific pthread_mutex_trylock
            pthread_sigmask pthread_kill fstat fstat64 stat stat64 lstat __libc_single_threaded arc4random
            __register_atfork _dl_find_object)
  add_library(${target}-old-glibc OBJECT ${CMAKE_SOURCE_DIR}/cmake/old_glibc.c)
  target_compile_options(${target}-old-glibc PRIVATE -O2 -ffunction-sections -fdata-sections -fno-sanitize=all)
  if("libm.so.6" IN_LIST ARGN)
    list(APPEND names log exp pow)
    target_compile_definitions(${target}-old-glibc PRIVATE NEARFIELD_OLD_MATH)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    list(APPEND names __libc_start_main)
    target_compile_definitions(${target}-old-glibc PRIVATE NEARFIELD_OLD_START)
  endif()
  list(TRANSFORM names PREPEND "-Wl,--wrap=")
  list(TRANSFORM ARGN PREPEND "-l:" OUTPUT_VARIABLE libraries)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}-old-glibc>)
  target_link_options(${target} PRIVATE ${names} -Wl,--gc-sections -Wl,--no-as-needed ${libraries} -Wl,--as-needed)
endfunction()
