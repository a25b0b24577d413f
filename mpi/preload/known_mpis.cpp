#include "mpi/preload/known_mpis.hpp"

#include <cstdlib>
#include <cstring>

#include "mpi/preload/loader.hpp"

namespace nearfield::preload {
namespace {

// The number behind `.so.` is the ABI's: that of the standard, the MPICH family, Open MPI. Development trees have 0.
constexpr const char *standard = "1", *mpich = "12", *open_mpi = "40", *development = "0";

// Returns the number in the name of an MPI library, also a vendor's (libmpi_gnu.so.12); nullptr if it has no such name.
const char* number_of(const char* soname) {
  if (!soname || std::strncmp(soname, "libmpi", 6)) return nullptr;
  for (const char* of_another_language : {"fort", "cxx", "mpifh"})
    if (std::strstr(soname, of_another_language)) return nullptr;
  const char* const number = std::strstr(soname, ".so.");
  return number ? number + 4 : nullptr;
}

// Whether a version is `major` or a later one; `before` is what stands in front of its number.
bool at_least(const char* version, const char* before, int major) {
  const std::size_t at = std::strlen(before);
  return !std::strncmp(version, before, at) && std::atoi(version + at) >= major;
}

}  // namespace

bool known_by_name(const char* soname) {
  const char* const number = number_of(soname);
  for (const char* known : {standard, mpich, open_mpi, development})
    if (number && !std::strcmp(number, known)) return true;
  return false;
}

// The number is not enough, since Open MPI 1.10 has 12 as the MPICH family does.
const char* known_abi(const char* soname, void* (*find)(const char*), const char*& reason) {
  const char* const number = number_of(soname);
  reason = "its name is not that of MPICH, Open MPI, Intel MPI or the standard ABI";
  if (!number) return nullptr;
  auto* get_version = reinterpret_cast<int (*)(char*, int*)>(find("PMPI_Get_library_version"));
  if (!get_version) get_version = reinterpret_cast<int (*)(char*, int*)>(find("MPI_Get_library_version"));
  reason = "it has no MPI_Get_library_version, so it is older than its SONAME says";
  if (!get_version) return nullptr;
  auto& version = loader.library_version;
  int length = 0;
  get_version(version, &length);
  version[sizeof version - 1] = '\0';
  version[std::strcspn(version, "\n")] = '\0';
  reason = version;
  auto fits = [&](const char* release, bool new_enough) {
    return !std::strcmp(number, release) || (!std::strcmp(number, development) && new_enough);
  };
  if (!std::strncmp(soname, "libmpi_abi.", 11)) return fits(standard, find("PMPI_Abi_get_version")) ? "abi" : nullptr;
  if (find("ompi_mpi_comm_world") || !std::strncmp(version, "Open MPI", 8))
    return fits(open_mpi, at_least(version, "Open MPI v", 3)) ? "ompi" : nullptr;
  return fits(mpich, at_least(version, "MPICH Version:", 4)) ? "mpich" : nullptr;
}

}  // namespace nearfield::preload
