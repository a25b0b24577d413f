// libnearfield.so, the library that is preloaded. It depends on no MPI and does nothing until an MPI function is called
// or looked up, so it is safe in launchers, shells and every other process. Then it finds the MPI that would have been
// called without it, loads the shim that was built for that ABI, and binds every slot of trampolines.S:
//
//   MPI_X    jumps to the next MPI_X after ours in the loader's order if that is a profiling tool's (which calls
//            PMPI_X); otherwise to the same function as PMPI_X
//   PMPI_X   jumps to the shim's function, or to the MPI's own if the shim has none
//
// Some calls would bypass both slots (addresses from dlsym, RTLD_DEEPBIND). So we write our addresses into the host's
// symbol table in memory, and into the words of objects that had been bound to the host before.
//
// Nothing of the C++ library is used, and of the C library only what glibc 2.28 and musl have.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "engine/base/early_settings.hpp"
#include "engine/base/log_line.hpp"
#include "engine/base/outcome.hpp"
#include "engine/processor/processor.h"
#include "mpi/numbers.hpp"
#include "mpi/preload/known_mpis.hpp"
#include "mpi/preload/loader.hpp"
#include "mpi/preload/objects.hpp"
#include "mpi/preload/yielding.hpp"

#define EACH(symbol, name)                                                       \
  extern "C" __attribute__((visibility("hidden"))) void* nearfield_slot_##name;  \
  extern "C" __attribute__((visibility("hidden"))) void* nearfield_pslot_##name; \
  extern "C" __attribute__((visibility("hidden"))) void nearfield_entry_##name();
#include "mpi/functions.def"

namespace nearfield::preload {

constinit Loader loader;

void* Redirections::of(void* address) const {
  const Redirection* const end = all + count;
  if (!count || address < all->from || address > end[-1].from) return nullptr;  // nearly every word of every object
  const Redirection* const at =
      std::lower_bound(all, end, address, [](const Redirection& r, void* a) { return r.from < a; });
  return at != end && at->from == address ? at->to : nullptr;
}

static bool says(Level level) {
  const char* text = std::getenv(early::log.variable);
  if (!text || !*text) text = early::log.fallback;
  const int wanted = early::log_level(text);
  return wanted < 0 || int(level) <= wanted;
}

void say(Level level, const char* format, ...) {
  if (!says(level)) return;
  char line[2048];
  const early::Speaker who = early::speaker(-1);
  const std::size_t prefix = early::begin_line(line, who);
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
  va_end(arguments);
  std::size_t end = prefix + std::min<std::size_t>(std::size_t(std::max(length, 0)), sizeof line - prefix - 2);
  line[end++] = '\n';
  early::write_line(line, end, who, std::getenv(early::log_file.variable), loader.log_has_complained);
}

namespace {

struct FunctionSlot {
  const char* pmpi_name;  // the name of MPI_X begins one character later
  void **mpi, **pmpi;
  void (*entry)();  // our PMPI_X
  const char* mpi_name() const { return pmpi_name + 1; }
};
// The slots of function number n (mpi/numbers.hpp) are at index n - 1.
constexpr FunctionSlot slots[] = {
#define EACH(symbol, name) {"P" #symbol, &nearfield_slot_##name, &nearfield_pslot_##name, &nearfield_entry_##name},
#include "mpi/functions.def"
};
static_assert(std::size(slots) + 1 == std::size_t(mpi::Function::count));

const Object& ourselves() {
  if (!loader.self) loader.self = object_of(slots);
  return loader.self;
}

extern "C" [[gnu::weak]] void* glibc_dlvsym(void* handle, const char* name, const char* version);
asm(".symver glibc_dlvsym, dlvsym@GLIBC_" NEARFIELD_FIRST_GLIBC);

using Dlsym = void*(void*, const char*);

// The next dlsym behind ours. Sanitizers call it before they are ready themselves, so nothing may be called on the way
// that they intercept. By its name alone we would find our own; musl, which has no versions, has no sanitizers.
Dlsym* find_dlsym() {
  if (glibc_dlvsym) {
    auto* const plain = reinterpret_cast<Dlsym*>(glibc_dlvsym(RTLD_NEXT, "dlsym", "GLIBC_" NEARFIELD_FIRST_GLIBC));
    return reinterpret_cast<Dlsym*>(plain(RTLD_NEXT, "dlsym"));
  }
  bool behind = false;
  Dlsym* next = nullptr;
  any_object([&](const Object& object) {
    if (behind) next = reinterpret_cast<Dlsym*>(object.address_of("dlsym"));
    behind |= object.contains(slots);
    return next != nullptr;
  });
  return next;
}

Dlsym* loaders_dlsym() {
  Dlsym* known = __atomic_load_n(&loader.loaders_dlsym, __ATOMIC_RELAXED);
  if (!known) __atomic_store_n(&loader.loaders_dlsym, known = find_dlsym(), __ATOMIC_RELAXED);
  return known;
}

// Finds the function that the program would have called without us.
void* next_definition(const char* name) { return loaders_dlsym()(RTLD_NEXT, name); }

// Replaces dlsym if the process has no MPI, since a program that asks for one must not find our functions.
void* next_of(void*, const char* name) { return next_definition(name); }

// Finds the MPI that a caller would reach without us: the next one in the loader's order, else the one that the caller
// is linked with (a program may have loaded it privately), else any that is mapped. An MPI is an object that defines
// PMPI_Init. Only if there is none, MPI_Init counts, since profiling tools define that too.
Object find_mpi(const Scope& of_caller) {
  const Object& self = ourselves();
  for (const char* name : {"PMPI_Init", "MPI_Init"}) {
    if (const Object next = object_of(next_definition(name))) return next;
    if (const Object linked = of_caller.defining(name, self)) return linked;
    Object any;
    any_object([&](const Object& object) {
      if (object == self || !object.find(name)) return false;
      const bool known = known_by_name(object.soname);
      if (!any || known) any = object;
      return known;
    });
    if (any) return any;
  }
  return {};
}

[[noreturn]] void missing() {
  say(Level::error, "the program called an MPI function that neither its MPI library nor Nearfield offers");
  std::abort();
}

using Function = void*(unsigned number);

// Finds a symbol of the MPI for the shim. To look into its own table first takes a third of dlsym's time.
void* symbol_of_mpi(const char* name) {
  void* const own = loader.mpi.address_of(name);
  return own ? own : loaders_dlsym()(loader.mpi_handle, name);
}

// Loads the shim. Returns its function that gives MPI functions by number; nullptr: the MPI serves every call itself.
Function* attach_shim(const char* abi) {
  char file[4096];
  const char* const set = std::getenv(early::libraries.variable);
  const char* const own = ourselves().path;
  const char* const slash = std::strrchr(own, '/');
  const char* const directory = set && *set ? set : slash ? own : ".";
  const int length = directory == own ? int(slash - own) : int(std::strlen(directory));
  std::snprintf(file, sizeof file, "%.*s/libnearfield-%s.so", length, directory, abi);
  void* const shim = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!shim) {
    const char* const why = dlerror();
    char reason[4096 + 512];
    std::snprintf(reason, sizeof reason, "%s cannot be loaded (%s)", file, why ? why : "no reason given");
    say(Level::info, "%s; the host MPI serves every call", reason);
    early::leave_word(reason);
    return nullptr;
  }
  const auto version = reinterpret_cast<const char* (*)()>(loaders_dlsym()(shim, "nearfield_shim_version"));
  if (!version || std::strcmp(version(), NEARFIELD_VERSION)) {
    char reason[4096 + 256];
    std::snprintf(reason, sizeof reason, "libnearfield.so has version %s, but %s has version %s", NEARFIELD_VERSION,
                  file, version ? version() : "unknown");
    say(Level::warn, "%s; the host MPI serves every call", reason);
    early::leave_word(reason);
    return nullptr;
  }
  using Attach = int (*)(void* (*)(const char*), std::uint64_t);
  const auto attach = reinterpret_cast<Attach>(loaders_dlsym()(shim, "nearfield_shim_bind"));
  if (!attach) {
    say(Level::warn, "%s and libnearfield.so are of different builds; the host MPI serves every call", file);
    early::leave_word("libnearfield.so and its shim are of different builds");
  }
  if (!attach || !attach(symbol_of_mpi, mpi::numbering)) return nullptr;
  loader.last_algorithm = reinterpret_cast<const char* (*)()>(loaders_dlsym()(shim, "nearfield_shim_last_algorithm"));
  loader.mend_attribute =
      reinterpret_cast<decltype(loader.mend_attribute)>(loaders_dlsym()(shim, "nearfield_shim_fortran_attribute"));
  if (auto* const serve = loaders_dlsym()(shim, "nearfield_shim_serve_yields"))
    serve_yields(reinterpret_cast<bool (*(*)(bool* (*)()))()>(serve)(in_host));
  loader.variant = abi;
  return reinterpret_cast<Function*>(loaders_dlsym()(shim, "nearfield_shim_function"));
}

// Redirects to us what dlsym finds in the host, and the words of objects that the loader has bound to the host.
void redirect(const Object& host, Redirections& redirections) {
  ElfW(Sym) * entries[Redirections::most];
  std::size_t count = 0;
  for (const FunctionSlot& slot : slots) {
    void* const to = reinterpret_cast<void*>(slot.entry);
    for (const char* name : {slot.mpi_name(), slot.pmpi_name}) {
      ElfW(Sym)* const entry = host.find(name);
      if (!entry || *slot.pmpi == host.address_of(name)) continue;
      redirections.all[redirections.count++] = {host.address_of(name), to};
      entries[count++] = entry;
    }
  }
  if (!count) return;
  const auto [first, last] = std::minmax_element(entries, entries + count);
  bool complete = open_for_writing(host, *first, *last + 1);
  if (complete) {
    for (std::size_t i = 0; i < count; ++i)
      __atomic_store_n(&entries[i]->st_value, ElfW(Addr)(redirections.all[i].to) - host.base, __ATOMIC_RELAXED);
    close_again(host, *first, *last + 1);
  }
  std::sort(redirections.all, redirections.all + redirections.count,
            [](const Redirection& a, const Redirection& b) { return a.from < b.from; });
  any_object([&](const Object& object) {
    if (object == host || object == ourselves()) return false;
    complete &= rebind(
        object, [](void* present, void* all) { return static_cast<Redirections*>(all)->of(present); }, &redirections);
    return false;
  });
  if (!complete)
    say(Level::warn,
        "the MPI library's symbols cannot be redirected (mprotect is denied): programs that look MPI "
        "functions up by dlsym need NEARFIELD=off");
}

// Returns the MPI_X of a profiling tool that the caller would reach before `mpi`; nullptr if there is none.
void* tool_in_front_of(const Object& mpi, const Scope& of_caller, const char* mpi_name) {
  Object tool;
  void* const next = next_definition(mpi_name);
  if (next) tool = next == mpi.address_of(mpi_name) ? mpi : object_of(next);
  else tool = of_caller.defining(mpi_name, ourselves());
  // An object with PMPI_Init is another MPI, which defines a function that `mpi` lacks.
  if (!tool || tool == mpi || tool.find("PMPI_Init")) return nullptr;
  return next ? next : tool.address_of(mpi_name);
}

void bind(const Scope& of_caller) {
  const Object mpi = find_mpi(of_caller);
  if (!mpi) {
    say(Level::error, "an MPI function was called, but no MPI library is loaded; run the program without Nearfield");
    std::abort();
  }
  // The handle is kept, so that the library stays where it is.
  void* const handle = dlopen(*mpi.path ? mpi.path : nullptr, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) {
    say(Level::error, "%s is mapped but cannot be opened: %s", mpi.path, dlerror());
    std::abort();
  }
  loader.mpi = mpi;
  loader.mpi_handle = handle;
  const char* reason = nullptr;
  const char* const abi = known_abi(mpi.soname, symbol_of_mpi, reason);
  if (!abi) {
    say(Level::warn, "%s serves every call itself, without Nearfield: %s", mpi.path, reason);
    char word[1024];
    std::snprintf(word, sizeof word, "%.600s is not known: %.300s", mpi.path, reason);
    early::leave_word(word);
  }
  Function* const function = abi ? attach_shim(abi) : nullptr;
  for (const FunctionSlot& slot : slots) {
    void* const own_mpi = mpi.address_of(slot.mpi_name());
    void* served = function ? function(unsigned(&slot - slots) + 1) : nullptr;
    if (!served) served = loaders_dlsym()(handle, slot.pmpi_name);
    if (!served) served = loaders_dlsym()(handle, slot.mpi_name());
    if (!served || ourselves().contains(served)) served = reinterpret_cast<void*>(&missing);
    void* first = tool_in_front_of(mpi, of_caller, slot.mpi_name());
    if (!first) first = !function && own_mpi ? own_mpi : served;
    __atomic_store_n(slot.pmpi, served, __ATOMIC_RELEASE);
    __atomic_store_n(slot.mpi, first, __ATOMIC_RELEASE);
  }
  if (function) redirect(mpi, loader.redirections);
}

bool is_bound() { return __atomic_load_n(&loader.bound, __ATOMIC_ACQUIRE); }  // pairs with bind_once

// Binds all slots at the first call. `asked`: an MPI function was called. Otherwise one was looked up, and perhaps is
// never called: then only an MPI that we know is bound. Returns false if there is no MPI at all.
bool bind_once(const void* caller, bool asked) {
  void* const self = __builtin_thread_pointer();
  if (is_bound() || __atomic_load_n(&loader.binder, __ATOMIC_RELAXED) == self) return true;
  pthread_mutex_lock(&loader.binding);
  bool there = true;
  if (!is_bound()) {
    __atomic_store_n(&loader.binder, self, __ATOMIC_RELAXED);
    loader.scope_of_caller.begin_with(object_of(caller));
    const Object mpi = asked ? Object{} : find_mpi(loader.scope_of_caller);
    if (asked || known_by_name(mpi.soname)) {
      bind(loader.scope_of_caller);
      __atomic_store_n(&loader.bound, true, __ATOMIC_RELEASE);  // pairs with is_bound
    }
    there = asked || mpi;
    __atomic_store_n(&loader.binder, nullptr, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&loader.binding);
  return there;
}

using GetAttribute = void(int* win, int* key, std::intptr_t* value, int* is_there, int* error);

// Calls the Fortran binding `name`, whose address `next` keeps, and corrects its value for windows that we serve.
void get_attribute(const char* name, GetAttribute*& next, const void* caller, int* win, int* key, std::intptr_t* value,
                   int* is_there, int* error) {
  GetAttribute* bindings = __atomic_load_n(&next, __ATOMIC_RELAXED);
  if (!bindings) {
    bindings = reinterpret_cast<GetAttribute*>(next_definition(name));
    if (!bindings) {  // loaded privately
      Scope scope = {};
      scope.begin_with(object_of(caller));
      if (const Object of_caller = scope.defining(name, ourselves()))
        bindings = reinterpret_cast<GetAttribute*>(of_caller.address_of(name));
    }
    if (!bindings) missing();
    __atomic_store_n(&next, bindings, __ATOMIC_RELAXED);
  }
  bindings(win, key, value, is_there, error);
  if (loader.mend_attribute && *is_there) loader.mend_attribute(*win, *key, value);
}

bool we_serve(const char* name) {
  // Compares the prefix without a call of the C library: find_dlsym says why.
  if (*name == 'P') ++name;
  if (name[0] != 'M' || name[1] != 'P' || name[2] != 'I' || name[3] != '_') return false;
  return std::any_of(std::begin(slots), std::end(slots),
                     [&](const FunctionSlot& slot) { return !std::strcmp(slot.mpi_name(), name); });
}

}  // namespace
}  // namespace nearfield::preload

extern "C" {

__attribute__((visibility("hidden"))) void nearfield_bind(const void* caller) {
  nearfield::preload::bind_once(caller, true);
}

// Our dlsym and dlopen call these, which return the loader's own functions. An object opened with RTLD_DEEPBIND finds
// its MPI before it finds us. So the MPI is redirected before; if the object brings the MPI, then at the next dlsym.
__attribute__((visibility("hidden"))) void* nearfield_before_dlopen(const char*, int mode, const void* caller) {
  using namespace nearfield::preload;
  if (mode & RTLD_DEEPBIND) {
    bind_once(caller, false);
    __atomic_store_n(&loader.deep_objects, true, __ATOMIC_RELAXED);
  }
  return next_definition("dlopen");
}

__attribute__((visibility("hidden"))) void* nearfield_before_dlsym(void*, const char* name, const void* caller) {
  using namespace nearfield::preload;
  const bool ours = name && we_serve(name);
  if (!ours && !__atomic_load_n(&loader.deep_objects, __ATOMIC_RELAXED))
    return reinterpret_cast<void*>(loaders_dlsym());
  __atomic_store_n(&loader.deep_objects, false, __ATOMIC_RELAXED);
  const bool there = bind_once(caller, false);
  return reinterpret_cast<void*>(there || !ours ? loaders_dlsym() : &next_of);
}

// Open MPI's Fortran bindings read attributes of windows past MPI_Win_get_attr, so theirs are led through here.
#define WIN_GET_ATTR(number, symbol)                                                                                  \
  __attribute__((visibility("default"))) void symbol(int* win, int* key, std::intptr_t* value, int* is, int* error) { \
    static_assert(number < nearfield::preload::Loader::getters);                                                      \
    nearfield::preload::get_attribute(#symbol, nearfield::preload::loader.get_attribute[number],                      \
                                      __builtin_return_address(0), win, key, value, is, error);                       \
  }
WIN_GET_ATTR(0, mpi_win_get_attr)
WIN_GET_ATTR(1, mpi_win_get_attr_)
WIN_GET_ATTR(2, mpi_win_get_attr__)
WIN_GET_ATTR(3, MPI_WIN_GET_ATTR)
WIN_GET_ATTR(4, pmpi_win_get_attr)
WIN_GET_ATTR(5, pmpi_win_get_attr_)
WIN_GET_ATTR(6, pmpi_win_get_attr__)
WIN_GET_ATTR(7, PMPI_WIN_GET_ATTR)
WIN_GET_ATTR(8, ompi_win_get_attr_f)

// Version of the library, e.g. "0.2.0".
__attribute__((visibility("default"))) const char* nearfield_version() { return NEARFIELD_VERSION; }

// Returns the ABI of this process's MPI: "mpich", "ompi" or "abi"; nullptr if there is no MPI, or it serves every call
// itself. Binds the MPI, as the first call of an MPI function does.
__attribute__((visibility("default"))) const char* nearfield_variant() {
  using namespace nearfield::preload;
  const void* const caller = __builtin_return_address(0);
  if (!bind_once(caller, false)) return nullptr;
  bind_once(caller, true);
  return loader.variant;
}

// Returns what served this thread's last intercepted collective: an algorithm's name, or "host".
__attribute__((visibility("default"))) const char* nearfield_last_algorithm() {
  const auto of_shim = nearfield::preload::loader.last_algorithm;
  return of_shim ? of_shim() : "host";
}
}
