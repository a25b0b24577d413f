// MPI_Alloc_mem, and hints for memory.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/process/hints.hpp"

namespace nearfield::mpi {
namespace {

constexpr MPI_Aint shortest_of_heap = 32 << 10;  // bytes; shorter blocks are the C library's (heap/heap.hpp)

// Returns whether `info` asks for memory of another kind than the system's, such as a device's:
// "system,mpi:alloc_mem,cuda".
bool wants_other_kinds(MPI_Info info) {
  if (info == MPI_INFO_NULL) return false;
  const std::string kinds = hint(info, "mpi_memory_alloc_kinds");
  for (std::string_view rest = kinds; !rest.empty() && rest != " ";) {
    const std::string_view kind = rest.substr(0, rest.find(','));
    const std::string_view name = kind.substr(0, kind.find(':'));
    if (name != "system" && name != "mpi") return true;
    rest.remove_prefix(std::min(kind.size() + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::string hint(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int there = 0;
  if (host.Info_get(info, key, MPI_MAX_INFO_VAL, value, &there) != MPI_SUCCESS || !there) return {};
  return value[0] ? value : " ";
}

Result<std::optional<memory::Wish>> placement_hint(MPI_Info info) {
  if (info == MPI_INFO_NULL) return std::optional<memory::Wish>();
  const std::string words = hint(info, "nearfield_memory");
  if (words.find_first_not_of(' ') == words.npos) return std::optional<memory::Wish>();
  auto wish = memory::parse_wish(words);
  if (!wish) return Error{"hint nearfield_memory: " + wish.error().text};
  return std::optional(std::move(*wish));
}

std::size_t alignment_hint(MPI_Info info) {
  constexpr std::size_t page = 4096, most = std::size_t{1} << 30;
  if (info == MPI_INFO_NULL) return page;
  const std::size_t asked = std::strtoull(hint(info, "mpi_minimum_memory_alignment").c_str(), nullptr, 10);
  return std::has_single_bit(asked) && asked <= most ? std::max(page, asked) : page;
}

// Memory whose placement the program or the user has specified is allocated in our segment. All other memory is
// allocated by the host: its malloc is Nearfield's heap, whose blocks of at least 32 KiB peers can map as well.
int Alloc_mem(MPI_Aint size, MPI_Info info, void* base_pointer) {
  team::Process* const n = process();
  if (!n || size <= 0 || !base_pointer || wants_other_kinds(info)) return host.Alloc_mem(size, info, base_pointer);
  const auto wish = placement_hint(info);
  if (!wish) return raise(host.world, "MPI_Alloc_mem", wish.error().text.c_str(), MPI_ERR_INFO_VALUE);
  const memory::Wish* const own = *wish ? &**wish : nullptr;
  if (!own && !n->placer().wish(memory::Component::alloc_mem))
    return host.Alloc_mem(std::max(size, shortest_of_heap), info, base_pointer);
  const auto offset =
      n->arena().allocate_untouched(std::size_t(size), alignment_hint(info), memory::Component::alloc_mem, own, false);
  if (offset) {
    *static_cast<void**>(base_pointer) = n->segment().base() + *offset;
    return MPI_SUCCESS;
  }
  if (own && own->forced) return raise(host.world, "MPI_Alloc_mem", offset.error().text.c_str(), MPI_ERR_NO_MEM);
  return host.Alloc_mem(size, info, base_pointer);
}

// Works after MPI_Finalize, too: the segment stays until the process ends.
int Free_mem(void* base) {
  team::Process* const n = process_ever();
  if (n && n->segment().contains(base, 1)) {
    n->arena().free(std::size_t(static_cast<std::byte*>(base) - n->segment().base()));
    return MPI_SUCCESS;
  }
  return host.Free_mem(base);
}

}  // namespace nearfield::mpi
