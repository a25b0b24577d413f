#include "mpi/preload/objects.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "engine/processor/processor.h"

namespace nearfield::preload {

namespace {

Object read_object(const dl_phdr_info& info) {
  Object object;
  object.base = info.dlpi_addr;
  object.path = info.dlpi_name ? info.dlpi_name : "";
  object.headers = info.dlpi_phdr;
  object.header_count = info.dlpi_phnum;
  for (std::size_t i = 0; i < object.header_count; ++i)
    if (object.headers[i].p_type == PT_DYNAMIC)
      object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.base + object.headers[i].p_vaddr);
  if (!object.dynamic) return object;
  // glibc has turned offsets into addresses, except where the section is read-only; musl has not.
  auto at = [&]<class T>(T*& pointer, ElfW(Addr) value) {
    pointer = reinterpret_cast<T*>(value < object.base ? object.base + value : value);
  };
  std::size_t soname = 0;
  for (const ElfW(Dyn)* d = object.dynamic; d->d_tag != DT_NULL; ++d) switch (d->d_tag) {
      case DT_STRTAB: at(object.strings, d->d_un.d_ptr); break;
      case DT_SYMTAB: at(object.symbols, d->d_un.d_ptr); break;
      case DT_GNU_HASH: at(object.gnu_hash, d->d_un.d_ptr); break;
      case DT_HASH: at(object.hash, d->d_un.d_ptr); break;
      case DT_RELA: at(object.relocations[0], d->d_un.d_ptr); break;
      case DT_JMPREL: at(object.relocations[1], d->d_un.d_ptr); break;
      case DT_RELASZ: object.relocation_counts[0] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_PLTRELSZ: object.relocation_counts[1] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_SONAME: soname = d->d_un.d_val; break;
    }
  if (soname && object.strings) object.soname = object.strings + soname;
  return object;
}

bool is_definition(const ElfW(Sym) & symbol) {
  return symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
         ELF64_ST_TYPE(symbol.st_info) != STT_TLS;
}

const ElfW(Phdr) * segment_of(const Object& object, const void* address) {
  const auto offset = reinterpret_cast<ElfW(Addr)>(address) - object.base;
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type == PT_LOAD && offset - header.p_vaddr < header.p_memsz) return &header;
  }
  return nullptr;
}

// Whether the loader has made the page of `address` read-only after it had written to it.
bool sealed(const Object& object, const void* address) {
  const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    const std::uintptr_t begin = object.base + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO && at >= (begin & -page) && at < ((begin + header.p_memsz) & -page)) return true;
  }
  return false;
}

int protection(const Object& object, const void* address) {
  const ElfW(Phdr)* const segment = segment_of(object, address);
  if (!segment) return PROT_READ;
  int bits = PROT_READ;
  if (segment->p_flags & PF_W && !sealed(object, address)) bits |= PROT_WRITE;
  if (segment->p_flags & PF_X) bits |= PROT_EXEC;
  return bits;
}

bool protect(const void* begin, const void* end, int bits) {
  const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(begin) & -page;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(end) + page - 1) & -page;
  return mprotect(reinterpret_cast<void*>(first), last - first, bits) == 0;
}

}  // namespace

bool Object::contains(const void* address) const { return segment_of(*this, address); }

ElfW(Sym) * Object::find(const char* name) const {
  if (!symbols || !strings) return nullptr;
  auto matches = [&](const ElfW(Sym) & symbol) {
    return is_definition(symbol) && !std::strcmp(strings + symbol.st_name, name);
  };
  if (gnu_hash) {
    std::uint32_t wanted = 5381;
    for (const char* c = name; *c; ++c) wanted = wanted * 33 + static_cast<unsigned char>(*c);
    const std::uint32_t buckets = gnu_hash[0], first_hashed = gnu_hash[1], bloom_words = gnu_hash[2];
    const auto* const bloom = reinterpret_cast<const ElfW(Addr)*>(gnu_hash + 4);
    const std::uint32_t* const bucket = gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
    const std::uint32_t* const chain = bucket + buckets;
    if (!buckets || !bloom_words) return nullptr;
    constexpr unsigned bits = 8 * sizeof(ElfW(Addr));
    const ElfW(Addr) word = bloom[wanted / bits % bloom_words];
    if (!(word >> wanted % bits & word >> (wanted >> gnu_hash[3]) % bits & 1)) return nullptr;
    std::uint32_t i = bucket[wanted % buckets];
    if (i < first_hashed) return nullptr;
    for (;; ++i) {
      const std::uint32_t present = chain[i - first_hashed];
      if ((present | 1) == (wanted | 1) && matches(symbols[i])) return &symbols[i];
      if (present & 1) return nullptr;
    }
  }
  if (hash)
    for (std::uint32_t i = 0; i < hash[1]; ++i)
      if (matches(symbols[i])) return &symbols[i];
  return nullptr;
}

void* Object::address_of(const char* name) const {
  const ElfW(Sym)* const symbol = find(name);
  return symbol ? reinterpret_cast<void*>(base + symbol->st_value) : nullptr;
}

bool each_object(Visit* visit, void* context) {
  struct {
    Visit* visit;
    void* context;
  } both{visit, context};
  return dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        const auto* const given = static_cast<decltype(&both)>(argument);
        const Object object = read_object(*info);
        return int(object && given->visit(object, given->context));
      },
      &both);
}

Object object_of(const void* address) {
  Object found;
  if (address) any_object([&](const Object& object) { return object.contains(address) && (found = object, true); });
  return found;
}

void Scope::begin_with(const Object& first) {
  count = 0;
  if (first) objects[count++] = first;
  for (std::size_t i = 0; i < count; ++i) {
    for (const ElfW(Dyn)* d = objects[i].dynamic; d->d_tag != DT_NULL && count < most; ++d) {
      if (d->d_tag != DT_NEEDED) continue;
      const char* const needed = objects[i].strings + d->d_un.d_val;
      any_object([&](const Object& object) {
        // Other objects name one without SONAME by its path.
        if (std::strcmp(object.soname ? object.soname : object.path, needed)) return false;
        for (std::size_t k = 0; k < count; ++k)
          if (objects[k] == object) return true;
        objects[count++] = object;
        return true;
      });
    }
  }
}

Object Scope::defining(const char* name, const Object& except) const {
  for (std::size_t i = 0; i < count; ++i)
    if (!(objects[i] == except) && objects[i].find(name)) return objects[i];
  return {};
}

bool rebind(const Object& object, Change* change, void* context) {
  bool complete = true;
  for (int kind = 0; kind < 2; ++kind) {
    for (std::size_t i = 0; object.relocations[kind] && i < object.relocation_counts[kind]; ++i) {
      const ElfW(Rela)& relocation = object.relocations[kind][i];
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != NEARFIELD_RELOCATED_CALL && type != NEARFIELD_RELOCATED_DATA && type != NEARFIELD_RELOCATED_WORD)
        continue;
      auto* const word = reinterpret_cast<void**>(object.base + relocation.r_offset);
      void* const wanted = change(*word, context);
      if (!wanted) continue;
      const ElfW(Phdr)* const segment = segment_of(object, word);
      if (!segment || !(segment->p_flags & PF_W)) continue;
      if (!open_for_writing(object, word, word + 1)) {
        complete = false;
        continue;
      }
      __atomic_store_n(word, wanted, __ATOMIC_RELAXED);
      close_again(object, word, word + 1);
    }
  }
  return complete;
}

bool open_for_writing(const Object& object, const void* begin, const void* end) {
  const int before = protection(object, begin);
  // Code keeps its permission to run: others may be running on the same page.
  return before & PROT_WRITE || protect(begin, end, before | PROT_WRITE);
}

void close_again(const Object& object, const void* begin, const void* end) {
  const int before = protection(object, begin);
  if (!(before & PROT_WRITE)) protect(begin, end, before);
}

}  // namespace nearfield::preload
