#include "mpi/shim/process/outcome.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include "engine/base/out_of_memory.hpp"
#include "engine/base/outcome.hpp"
#include "engine/reach/shared_heap.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/process/version.hpp"

namespace nearfield::mpi {
namespace {

// Returns "MPICH 5.0.2" or "Open MPI v5.0.11", and its file.
std::string describe_host() {
  std::string version(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  if (host.Get_library_version(version.data(), &length) != MPI_SUCCESS) length = 0;
  version.resize(std::size_t(length));
  version.resize(std::min(version.find_first_of("\n,"), version.size()));
  std::string text;
  for (const char c : version)
    if (c != '\t' && c != ' ') text += c;
    else if (!text.empty() && text.back() != ' ') text += ' ';
  constexpr std::string_view word = "Version: ";  // MPICH's
  if (const std::size_t at = text.find(word); at != text.npos) text.erase(at, word.size());
  Dl_info about{};
  const bool found = dladdr(reinterpret_cast<void*>(host.Get_library_version), &about) && about.dli_fname;
  return text + " (" + (found ? about.dli_fname : "path unknown") + ")";
}

std::string describe_reach(const Near& near) {
  if (near.ranks == 1) return "nobody";
  std::string text;
  for (std::size_t way = 0; way < reach::mapper_count; ++way)
    if (near.ways >> way & 1) text += std::string(reach::mappers()[way]->name) + ", ";
  return text + "copy buffers";
}

const char* describe_heap() {
  const reach::SharedHeap* const heap = reach::SharedHeap::find();
  return heap && heap->serves() ? "shared" : "the program's own";
}

// Returns why the host serves every call; "": it does not.
std::string why_the_host(const Outcome& outcome) {
  if (!outcome.enabled) return "NEARFIELD=off";
  if (!process_ever()) return outcome.why_none.empty() ? "out of memory" : outcome.why_none;
  if (!outcome.ready) return "it does not accept attributes of communicators";
  if (outcome.size == 1 || outcome.near.ranks > 1 || !outcome.collectively) return {};
  return "no other rank of MPI_COMM_WORLD can share memory with this one: " + outcome.why_none;
}

}  // namespace

void report_outcome(const Outcome& outcome) try {
  const std::string why = why_the_host(outcome);
  if (!why.empty()) early::leave_word(why.c_str());
  else if (outcome.size == 1)
    early::leave_word("MPI_COMM_WORLD has one rank (if you started more, the launcher belongs to another MPI)");
  else early::leave_word(nullptr);
  if (outcome.rank) return;
  const std::string under = describe_host();
  if (!why.empty())
    return log_line(LogLevel::info, "Nearfield %s under %s: ranks: %d; the host serves every call: %s", version(),
                    under.c_str(), outcome.size, why.c_str());
  log_line(LogLevel::info, "Nearfield %s under %s: ranks: %d, on this node: %d; reach: %s; heap: %s; messages: %s",
           version(), under.c_str(), outcome.size, outcome.near.ranks, describe_reach(outcome.near).c_str(),
           describe_heap(), the_messenger ? "served" : "the host's");
} catch (const OutOfMemory&) {  // the line is omitted
}

}  // namespace nearfield::mpi
