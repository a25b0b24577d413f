// The objects that are mapped into this process. Their headers in memory tell what they are, what they define, and
// where the loader has stored addresses of functions for them. Nothing here allocates memory or calls the loader,
// except to list the objects (dl_iterate_phdr), so that it may be used inside dlsym.
#pragma once
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace nearfield::preload {

struct Object {
  ElfW(Addr) base = 0;
  const char* path = nullptr;    // "" for the program
  const char* soname = nullptr;  // nullptr where it has none
  const ElfW(Phdr) * headers = nullptr;
  std::size_t header_count = 0;
  const ElfW(Dyn) * dynamic = nullptr;  // nullptr: nothing was found
  const char* strings = nullptr;
  ElfW(Sym) * symbols = nullptr;
  const std::uint32_t *gnu_hash = nullptr, *hash = nullptr;
  const ElfW(Rela) * relocations[2] = {};  // of DT_RELA, and of DT_JMPREL (calls)
  std::size_t relocation_counts[2] = {};

  explicit operator bool() const { return dynamic; }
  bool operator==(const Object& other) const { return dynamic == other.dynamic; }
  bool contains(const void* address) const;

  // Returns the symbol of that name if the object defines it, otherwise nullptr.
  ElfW(Sym) * find(const char* name) const;
  void* address_of(const char* name) const;
};

// Calls `visit` with every object in the order of loading until it returns true. Returns whether a call did.
using Visit = bool(const Object& object, void* context);
bool each_object(Visit* visit, void* context);

template <class Function>
bool any_object(Function visit) {
  return each_object([](const Object& object, void* context) { return (*static_cast<Function*>(context))(object); },
                     &visit);
}

Object object_of(const void* address);

// An object and what it depends on, breadth first: where the loader looks for its symbols after the program's own.
struct Scope {
  static constexpr std::size_t most = 256;
  Object objects[most];
  std::size_t count = 0;

  void begin_with(const Object& first);
  // Returns the first object other than `except` that defines `name`.
  Object defining(const char* name, const Object& except) const;
};

// Calls `change` with every word in which the loader may have stored an address of a function for `object`. If it
// returns a value, that replaces the word. Returns false if some memory could not be made writable.
using Change = void*(void* present, void* context);
bool rebind(const Object& object, Change* change, void* context);

// Makes memory of `object` writable, or returns false with errno set. close_again() restores the access.
bool open_for_writing(const Object& object, const void* begin, const void* end);
void close_again(const Object& object, const void* begin, const void* end);

}  // namespace nearfield::preload
