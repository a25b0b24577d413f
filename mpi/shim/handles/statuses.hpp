// Statuses, written as by the host's own functions.
//
// The fields for the count and the mark of a cancelled message are private to the host, and its functions cost two
// calls for every message. So their offsets are found once, by having the host fill in some statuses: if 64 bits for
// the count and 32 for the mark explain every byte that it writes, we write them.
#pragma once
#include <cstring>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Offsets of the host's private fields of a status.
struct StatusFields {
  int count_at = 0, cancelled_at = 0;  // offsets; the mark may be in the count's word
  std::uint64_t most = 0;              // for so many bytes or more, the host's functions are called

  void set(MPI_Status* status, std::uint64_t bytes) const {
    constexpr std::uint32_t not_cancelled = 0;
    auto* const at = reinterpret_cast<unsigned char*>(status);
    std::memcpy(at + cancelled_at, &not_cancelled, sizeof not_cancelled);
    std::memcpy(at + count_at, &bytes, sizeof bytes);
  }
};
inline constinit StatusFields status_fields;
void find_status_fields();  // after the host's initialisation

void set_count_slowly(MPI_Status* status, std::uint64_t bytes, bool cancelled);

inline void set_status(MPI_Status* status, int source, int tag, std::uint64_t bytes, bool cancelled) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  if (bytes < status_fields.most && !cancelled) [[likely]]
    status_fields.set(status, bytes);
  else set_count_slowly(status, bytes, cancelled);
}
inline void set_proc_null_status(MPI_Status* status) { set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false); }
inline void set_sent_status(MPI_Status* status) { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
void set_empty_status(MPI_Status* status);

inline MPI_Status* nth(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

}  // namespace nearfield::mpi
