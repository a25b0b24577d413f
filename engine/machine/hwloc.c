/* hwloc, opened when the first of its functions is called, so that a program which describes machines (topology.cpp) also
   starts where there is none. There hwloc_topology_init fails, and nothing else is called. */
#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>

static void* opened(const char* name) {
  static void* library;
  if (!library) library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL); /* of all versions from 2.0 on */
  return library ? dlsym(library, name) : NULL;
}

/* The first of them: whether the others can be called. */
int hwloc_topology_init(hwloc_topology_t* topology) {
  int (*const function)(hwloc_topology_t*) = (int (*)(hwloc_topology_t*))opened("hwloc_topology_init");
  if (function) return function(topology);
  errno = ENOPKG;
  return -1;
}

#define OPENED(result, name, parameters, arguments)                                     \
  result name parameters {                                                              \
    result(*const function) parameters = (result(*) parameters)opened(#name);           \
    if (!function) abort();                                                             \
    return function arguments;                                                          \
  }
OPENED(int, hwloc_topology_load, (hwloc_topology_t t), (t))
OPENED(void, hwloc_topology_destroy, (hwloc_topology_t t), (t))
OPENED(int, hwloc_topology_set_type_filter, (hwloc_topology_t t, hwloc_obj_type_t type, enum hwloc_type_filter_e filter),
       (t, type, filter))
OPENED(int, hwloc_topology_set_io_types_filter, (hwloc_topology_t t, enum hwloc_type_filter_e filter), (t, filter))
OPENED(int, hwloc_topology_set_synthetic, (hwloc_topology_t t, const char* text), (t, text))
OPENED(int, hwloc_topology_set_xml, (hwloc_topology_t t, const char* path), (t, path))
OPENED(int, hwloc_get_type_depth, (hwloc_topology_t t, hwloc_obj_type_t type), (t, type))
OPENED(unsigned, hwloc_get_nbobjs_by_depth, (hwloc_topology_t t, int depth), (t, depth))
OPENED(hwloc_obj_t, hwloc_get_obj_by_depth, (hwloc_topology_t t, int depth, unsigned index), (t, depth, index))
OPENED(int, hwloc_bitmap_first, (hwloc_const_bitmap_t bitmap), (bitmap))
OPENED(int, hwloc_bitmap_next, (hwloc_const_bitmap_t bitmap, int before), (bitmap, before))
