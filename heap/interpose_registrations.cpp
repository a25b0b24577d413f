// Functions that tie memory to the kernel or to a device, or mark it for children. Each calls the function that it
// replaces first, and notes the range if that has succeeded (kept.hpp). A program that looks such a function up by the
// handle of its library bypasses ours. Then only the kernel's count of pinned pages shows the registration, if the
// kernel counts its pages there (docs/admin.md).
#include <sys/mman.h>

#include <cerrno>

#include "heap/heap.hpp"
#include "heap/kept.hpp"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

namespace {

using nearfield::heap::keep;
using nearfield::heap::keep_no_more;
using nearfield::heap::Kept;

// The function behind ours: in the scope of the program, or of the object that calls, where that is loaded privately,
// as plugins for InfiniBand are. `caller`: an address in that object.
template <class Function>
Function* next(Function* own, const char* name, const void* caller) {
  Function* function;
  nearfield::heap::find_next(function, name);
  Dl_info about;
  if (!function && dladdr(caller, &about))
    if (void* const object = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      void* const found = dlsym(object, name);
      std::memcpy(&function, &found, sizeof found);
      dlclose(object);
    }
  return function == own ? nullptr : function;
}

template <class Function, class... Arguments>
int forward(int without, Function* own, const char* name, const void* caller, Arguments... arguments) {
  Function* const function = next(own, name, caller);
  return function ? int(function(arguments...)) : without;
}

template <class... More>
void* register_region(void* own(void*, void*, std::size_t, More...), const char* name, const void* caller, void* domain,
                      void* at, std::size_t bytes, More... more) {
  auto* const function = next(own, name, caller);
  void* const region = function ? function(domain, at, bytes, more...) : nullptr;
  if (region) keep(at, bytes, Kept::counted, region);
  return region;
}

// Several buffers at once (io_uring), all by the key of their ring.
struct Buffer {  // struct iovec
  void* at;
  std::size_t bytes;
};

}  // namespace

extern "C" {

// ---------------------------------------------------------------- the C library's

EXPORT int mlock(const void* at, std::size_t bytes) __THROW {
  const int result = int(syscall(SYS_mlock, at, bytes));
  if (result == 0) keep(at, bytes, Kept::locked);
  return result;
}

EXPORT int mlock2(const void* at, std::size_t bytes, unsigned flags) __THROW {
  const int result = int(syscall(SYS_mlock2, at, bytes, flags));
  if (result == 0) keep(at, bytes, Kept::locked);
  return result;
}

EXPORT int munlock(const void* at, std::size_t bytes) __THROW {
  const int result = int(syscall(SYS_munlock, at, bytes));
  if (result == 0) keep_no_more(at, bytes, Kept::locked);
  return result;
}

EXPORT int mlockall(int flags) __THROW {
  const int result = int(syscall(SYS_mlockall, flags));
  if (result == 0) nearfield::heap::keep_all(true);
  return result;
}

EXPORT int munlockall() __THROW {
  const int result = int(syscall(SYS_munlockall));
  if (result == 0) nearfield::heap::keep_all(false);
  return result;
}

// ---------------------------------------------------------------- RDMA: ibv_mr* (libibverbs)

EXPORT void* ibv_reg_mr(void* domain, void* at, std::size_t bytes, int access) {
  return register_region(ibv_reg_mr, "ibv_reg_mr", CALLER, domain, at, bytes, access);
}

EXPORT void* ibv_reg_mr_iova(void* domain, void* at, std::size_t bytes, std::uint64_t iova, int access) {
  return register_region(ibv_reg_mr_iova, "ibv_reg_mr_iova", CALLER, domain, at, bytes, iova, access);
}

EXPORT void* ibv_reg_mr_iova2(void* domain, void* at, std::size_t bytes, std::uint64_t iova, unsigned access) {
  return register_region(ibv_reg_mr_iova2, "ibv_reg_mr_iova2", CALLER, domain, at, bytes, iova, access);
}

EXPORT int ibv_dereg_mr(void* region) {
  const int result = forward(ENOSYS, ibv_dereg_mr, "ibv_dereg_mr", CALLER, region);
  if (result == 0) keep_no_more(region);
  return result;
}

// ---------------------------------------------------------------- io_uring (liburing)

EXPORT int io_uring_register_buffers(void* ring, const Buffer* buffers, unsigned count) {
  const int result =
      forward(-ENOSYS, io_uring_register_buffers, "io_uring_register_buffers", CALLER, ring, buffers, count);
  for (unsigned i = 0; result >= 0 && i < count; ++i) keep(buffers[i].at, buffers[i].bytes, Kept::counted, ring);
  return result;
}

EXPORT int io_uring_unregister_buffers(void* ring) {
  const int result = forward(-ENOSYS, io_uring_unregister_buffers, "io_uring_unregister_buffers", CALLER, ring);
  if (result >= 0) keep_no_more(ring);
  return result;
}

EXPORT void io_uring_queue_exit(void* ring) {
  if (auto* const function = next(io_uring_queue_exit, "io_uring_queue_exit", CALLER)) function(ring);
  keep_no_more(ring);
}

// ---------------------------------------------------------------- CUDA and HIP

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED, cudaErrorNotSupported, hipErrorNotSupported

#define REGISTERS(name)                                                               \
  EXPORT int name(void* at, std::size_t bytes, unsigned flags) {                      \
    const int result = forward(not_supported, name, #name, CALLER, at, bytes, flags); \
    if (result == 0) keep(at, bytes, Kept::registered, at);                           \
    return result;                                                                    \
  }
#define UNREGISTERS(name)                                               \
  EXPORT int name(void* at) {                                           \
    const int result = forward(not_supported, name, #name, CALLER, at); \
    if (result == 0) keep_no_more(at);                                  \
    return result;                                                      \
  }
REGISTERS(cudaHostRegister)
REGISTERS(cuMemHostRegister)
REGISTERS(cuMemHostRegister_v2)
REGISTERS(hipHostRegister)
UNREGISTERS(cudaHostUnregister)
UNREGISTERS(cuMemHostUnregister)
UNREGISTERS(hipHostUnregister)
}
