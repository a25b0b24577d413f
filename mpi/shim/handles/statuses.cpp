// Finds the host's fields in a status by writing them both ways and comparing (statuses.hpp). Done once, before the
// first message; read-only afterwards.
#include "mpi/shim/handles/statuses.hpp"

#include <initializer_list>

namespace nearfield::mpi {

void set_count_slowly(MPI_Status* status, std::uint64_t bytes, bool cancelled) {
  host.Status_set_elements_x(status, host.byte, MPI_Count(bytes));
  host.Status_set_cancelled(status, cancelled);
}

void set_empty_status(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
  status->MPI_ERROR = MPI_SUCCESS;
}

void find_status_fields() {
  auto by_host = [](unsigned char fill, std::uint64_t bytes, bool cancelled) {
    MPI_Status status;
    std::memset(&status, fill, sizeof status);
    set_count_slowly(&status, bytes, cancelled);
    return status;
  };
  auto same = [](const MPI_Status& a, const MPI_Status& b) { return !std::memcmp(&a, &b, sizeof a); };
  // The fields are right if we write the same bytes as the host, whatever a status held before.
  auto fits = [&](StatusFields fields) {
    for (const unsigned char fill : {0x00, 0xa5, 0xff})
      for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x12345678}, fields.most}) {
        MPI_Status ours;
        std::memset(&ours, fill, sizeof ours);
        fields.set(&ours, bytes);
        if (!same(ours, by_host(fill, bytes, false))) return false;
      }
    return true;
  };
  constexpr int last = int(sizeof(MPI_Status));
  for (int count_at = 0; count_at + 8 <= last; count_at += 4)
    for (int cancelled_at = 0; cancelled_at + 4 <= last; cancelled_at += 4)
      if (const StatusFields fields{count_at, cancelled_at, 0x7fffffff}; fits(fields)) {
        status_fields = fields;
        return;
      }
}

}  // namespace nearfield::mpi
