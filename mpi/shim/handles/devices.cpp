// Run-times of accelerators: found when they are loaded, bound once, then used to classify pointers and to copy
// (devices.hpp). Any thread may call; the first to notice a new library binds it, others proceed with the known ones.
#include "mpi/shim/handles/devices.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/made.hpp"
#include "engine/settings/settings.hpp"
#include "engine/team/team.hpp"

namespace nearfield::mpi::devices {

namespace {

// A run-time: its functions are bound once.
struct Runtime {
  const char* library;  // prefix of its file name
  bool (*bind)(void* library);
  bool (*is_device)(const void* address);
  bool (*copy)(void* to, const void* from, std::size_t bytes);
};

constexpr std::size_t runtime_count = 2;

struct DeviceRuntimes {
  struct {
    int (*get_attribute)(void* value, int attribute, std::uintptr_t address);
    int (*memcpy_any)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);
    int (*push_context)(void* context);
    int (*pop_context)(void** context);
    int (*synchronize)(void* stream);
  } cuda = {};
  struct HipAttributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
    char reserved[64];
  };
  struct {
    int (*get_attributes)(HipAttributes* attributes, const void* address);
    int (*memcpy_any)(void* to, const void* from, std::size_t bytes, int direction);
    int (*get_last_error)();
    int type_device;
  } hip = {};
  std::atomic<bool> bound[runtime_count] = {};
  std::mutex mutex;
  void* kept = nullptr;  // handle of the newest library
};

DeviceRuntimes& own() { return made<DeviceRuntimes>(); }

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The driver's interface, which works with every version of the run-time above it, also those linked statically.
namespace cuda {

constexpr int attribute_context = 1, attribute_memory_type = 2, attribute_is_managed = 8, type_device = 2;

bool bind(void* library) {
  auto& [get_attribute, memcpy_any, push_context, pop_context, synchronize] = own().cuda;
  return find(library, "cuPointerGetAttribute", get_attribute) && find(library, "cuMemcpy", memcpy_any) &&
         find(library, "cuCtxPushCurrent_v2", push_context) && find(library, "cuCtxPopCurrent_v2", pop_context) &&
         find(library, "cuStreamSynchronize", synchronize);
}

bool is_device(const void* address) {
  unsigned type = 0, managed = 0;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (own().cuda.get_attribute(&type, attribute_memory_type, at) || type != type_device) return false;
  return own().cuda.get_attribute(&managed, attribute_is_managed, at) || !managed;
}

bool copy(void* to, const void* from, std::size_t bytes) {
  // This thread may have another context, or none.
  void* context = nullptr;
  for (const void* const side : {static_cast<const void*>(to), from})
    if (!context && is_device(side))
      own().cuda.get_attribute(&context, attribute_context, reinterpret_cast<std::uintptr_t>(side));
  const bool pushed = context && own().cuda.push_context(context) == 0;
  bool good =
      own().cuda.memcpy_any(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from), bytes) == 0;
  good = good && own().cuda.synchronize(nullptr) == 0;  // a copy from pageable memory may end later than the call
  if (pushed) own().cuda.pop_context(&context);
  return good;
}

}  // namespace cuda

namespace hip {

constexpr int any_direction = 4;

bool bind(void* library) {
  auto& hip = own().hip;
  int (*get_version)(int*) = nullptr;
  int version = 0;
  if (!find(library, "hipRuntimeGetVersion", get_version) || get_version(&version)) return false;
  hip.type_device = version >= 60'000'000 ? 2 : 1;
  return find(library, "hipPointerGetAttributes", hip.get_attributes) && find(library, "hipMemcpy", hip.memcpy_any) &&
         find(library, "hipGetLastError", hip.get_last_error);
}

bool is_device(const void* address) {
  auto& hip = own().hip;
  DeviceRuntimes::HipAttributes about{};
  if (hip.get_attributes(&about, address)) {
    hip.get_last_error();  // clears our error, which the program must not see
    return false;
  }
  return about.type == hip.type_device && !about.is_managed;
}

bool copy(void* to, const void* from, std::size_t bytes) {
  return own().hip.memcpy_any(to, from, bytes, any_direction) == 0;
}

}  // namespace hip

constexpr Runtime runtimes[runtime_count] = {{"libcuda.so", cuda::bind, cuda::is_device, cuda::copy},
                                             {"libamdhip64.so", hip::bind, hip::is_device, hip::copy}};

std::string_view base_name(const std::string& path) {
  return std::string_view(path).substr(path.find_last_of('/') + 1);
}

std::atomic<bool>& bound(const Runtime& runtime) { return own().bound[&runtime - runtimes]; }

bool move(void* to, const void* from, std::size_t bytes) {
  for (const Runtime& runtime : runtimes) {
    if (!bound(runtime).load(std::memory_order_acquire)) continue;  // SYNC: runtime-bound
    if (runtime.is_device(to) || runtime.is_device(from)) return runtime.copy(to, from, bytes);
  }
  std::memcpy(to, from, bytes);
  return true;
}

}  // namespace

void look_again() {
  const std::unique_lock lock(own().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* about, std::size_t, void* into) {
        if (about->dlpi_name && *about->dlpi_name)
          static_cast<std::vector<std::string>*>(into)->emplace_back(about->dlpi_name);
        return 0;
      },
      &names);
  for (const Runtime& runtime : runtimes) {
    if (bound(runtime).load(std::memory_order_relaxed)) continue;
    for (const std::string& name : names) {
      if (!base_name(name).starts_with(runtime.library)) continue;
      void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      if (!library || !runtime.bind(library)) continue;
      bound(runtime).store(true, std::memory_order_release);  // SYNC: runtime-bound
      loaded.store(true, std::memory_order_relaxed);
      log_line(LogLevel::info, "%s is loaded: buffers in device memory are copied through CPU memory", name.c_str());
      break;
    }
  }
  // Keeps a handle of the last library in the loader's list; later libraries are appended to that list.
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    void* const library = dlopen(name->c_str(), RTLD_LAZY | RTLD_NOLOAD);
    link_map* map = nullptr;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) || !map) continue;
    newest.store(map, std::memory_order_release);  // SYNC: newest-library
    void* const before = std::exchange(own().kept, library);
    if (before) dlclose(before);
    return;
  }
}

bool is_device(const void* address) {
  return std::ranges::any_of(runtimes, [&](const Runtime& runtime) {
    return bound(runtime).load(std::memory_order_acquire) && runtime.is_device(address);  // SYNC: runtime-bound
  });
}

bool is_device(const layout::Data& data) {
  constexpr std::uint64_t looked_at = 64;  // runs of bytes; those of one type may lie in different memories
  if (data.bytes == 0) return false;
  if (data.dense()) return is_device(data.address);
  for (std::uint64_t i = 0; i < std::min(data.view.run_count, looked_at); ++i)
    if (is_device(data.address + data.view.runs[i].offset)) return true;
  return false;
}

bool gather(void* to, const layout::Data& from, std::uint64_t position, std::uint64_t bytes) {
  if (from.dense()) return devices::move(to, from.address + position, bytes);
  auto* at = static_cast<std::byte*>(to);
  for (layout::Cursor cursor(from, position); bytes;) {
    const std::uint64_t piece = std::min(bytes, cursor.left());
    if (!piece || !devices::move(at, cursor.at(), piece)) return false;
    cursor.advance(piece);
    at += piece;
    bytes -= piece;
  }
  return true;
}

bool scatter(const layout::Data& to, std::uint64_t position, const void* from, std::uint64_t bytes) {
  if (to.dense()) return devices::move(to.address + position, from, bytes);
  const auto* at = static_cast<const std::byte*>(from);
  for (layout::Cursor cursor(to, position); bytes;) {
    const std::uint64_t piece = std::min(bytes, cursor.left());
    if (!piece || !devices::move(cursor.at(), at, piece)) return false;
    cursor.advance(piece);
    at += piece;
    bytes -= piece;
  }
  return true;
}

}  // namespace nearfield::mpi::devices
