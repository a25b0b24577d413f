// Where the host keeps what it hides of a status (statuses.hpp).
#pragma once
#include <mpi.h>

#include <cstdint>
#include <cstring>

namespace nearfield::mpi {

struct StatusFields {
  int count_at = 0, cancelled_at = 0;  // offsets; the mark may be in the count's word
  std::uint64_t most = 0;              // bytes; for more the host's functions are called. 0: always

  void set(MPI_Status* status, std::uint64_t bytes) const {
    constexpr std::uint32_t not_cancelled = 0;
    auto* const at = reinterpret_cast<unsigned char*>(status);
    std::memcpy(at + cancelled_at, &not_cancelled, sizeof not_cancelled);
    std::memcpy(at + count_at, &bytes, sizeof bytes);
  }
};

}  // namespace nearfield::mpi
