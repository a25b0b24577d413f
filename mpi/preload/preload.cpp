// libnearfield.so: what is preloaded. It depends on no MPI and does nothing until an MPI function is called, so it is
// safe in launchers, shells and every other process. The first call finds the MPI that is mapped, by its SONAME,
// loads the shim that was built for that ABI and binds every slot of trampolines.S: to the shim's function, or to the
// host's own where there is no shim.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#define F(name) extern "C" __attribute__((visibility("hidden"))) void* nearfield_slot_##name;
#include "blocking.def"
#include "extensions.def"
#include "functions.def"
#undef F

namespace {

struct Slot {
  const char* name;  // after MPI
  void** target;
};
constexpr Slot slots[] = {
#define F(name) {"_" #name, &nearfield_slot_##name},
#include "blocking.def"
#include "functions.def"
#undef F
#define F(name) {"X_" #name, &nearfield_slot_##name},
#include "extensions.def"
#undef F
};

const char* (*last_algorithm)() = [] { return "host"; };

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "nearfield: %s\n", line);
}

bool informative() {
  const char* level = std::getenv("NEARFIELD_LOG");
  return level && (!std::strcmp(level, "info") || !std::strcmp(level, "debug"));
}

struct Host {
  std::string path, abi;
};

// libmpi.so.12 and libmpich.so.12 (also vendors' libmpi_gnu.so.12): the MPICH ABI. libmpi.so.40: Open MPI.
const char* abi_of(const char* soname) {
  if (!std::strncmp(soname, "libmpi_abi.so.", 14)) return "abi";
  if (!std::strcmp(soname, "libmpi.so.40")) return "ompi";
  const char* version = std::strstr(soname, ".so.12");
  if (!std::strncmp(soname, "libmpi", 6) && version && !version[6] && !std::strstr(soname, "fort") &&
      !std::strstr(soname, "cxx") && !std::strstr(soname, "mpifh"))
    return "mpich";
  return nullptr;
}

Host find_host() {
  Host host;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (!info->dlpi_name || !*info->dlpi_name) return 0;
        void* handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) return 0;
        link_map* map = nullptr;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map) {
          const char* strings = nullptr;
          std::size_t soname = 0;
          for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
            if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
            if (d->d_tag == DT_SONAME) soname = d->d_un.d_val;
          }
          // The dynamic section of the vDSO is read-only, so its addresses are still offsets.
          if (reinterpret_cast<std::uintptr_t>(strings) < map->l_addr) strings += map->l_addr;
          if (strings && soname) {
            if (const char* abi = abi_of(strings + soname)) *static_cast<Host*>(found) = {info->dlpi_name, abi};
          }
        }
        dlclose(handle);
        return static_cast<Host*>(found)->abi.empty() ? 0 : 1;
      },
      &host);
  return host;
}

std::string library_directory() {
  if (const char* set = std::getenv("NEARFIELD_LIBDIR"); set && *set) return set;
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&find_host), &self) || !self.dli_fname) return ".";
  const std::string path = self.dli_fname;
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

[[noreturn]] void missing() {
  say("the program called an MPI function that neither its MPI library nor Nearfield offers");
  std::abort();
}

void bind() {
  const Host host = find_host();
  if (host.abi.empty()) {
    say("an MPI function was called, but no MPI library that Nearfield knows is loaded (MPICH, Open MPI, Intel MPI or "
        "one with the standard ABI); run the program without Nearfield");
    std::abort();
  }
  void* library = dlopen(host.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const std::string file = library_directory() + "/libnearfield-" + host.abi + ".so";
  void* shim = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* (*function)(const char*) = nullptr;
  if (shim) {
    auto attach = reinterpret_cast<int (*)(void*)>(dlsym(shim, "nearfield_shim_attach"));
    if (attach && attach(library)) {
      function = reinterpret_cast<void* (*)(const char*)>(dlsym(shim, "nearfield_shim_function"));
      last_algorithm = reinterpret_cast<const char* (*)()>(dlsym(shim, "nearfield_shim_last_algorithm"));
    }
  } else if (informative()) {
    say("%s cannot be loaded (%s); the host MPI serves every call", file.c_str(), dlerror());
  }
  for (const Slot& slot : slots) {
    void* target = function ? function(slot.name + (*slot.name == '_')) : nullptr;
    for (const char* prefix : {"PMPI", "MPI"}) {
      if (!target) target = dlsym(library, (std::string(prefix) + slot.name).c_str());
    }
    if (!target) target = reinterpret_cast<void*>(&missing);
    __atomic_store_n(slot.target, target, __ATOMIC_RELEASE);
  }
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"))) void nearfield_bind() {
  static std::once_flag once;
  std::call_once(once, bind);
}

// Version of the library, e.g. "0.1.0".
__attribute__((visibility("default"))) const char* nearfield_version() { return NEARFIELD_VERSION; }

// What served this thread's last intercepted collective: an algorithm's name, or "host".
__attribute__((visibility("default"))) const char* nearfield_last_algorithm() { return last_algorithm(); }
}
