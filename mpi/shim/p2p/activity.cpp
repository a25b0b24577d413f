// Starts and ends such messages. The first call of outcome() after a start stores the received data.
#include "mpi/shim/p2p/activity.hpp"

#include <utility>

namespace nearfield::mpi {

void Message::keep() {
  envelope_ = request.envelope;
  member_ = request.member;
  data_ = request.data;
  request.complete_at_once();
}

void Message::prepare() {
  landed_ = false;
  request.envelope = envelope_;
  request.member = member_;
  request.data = data_;
}

int Message::begin() {
  landed_ = false;
  if (proc_null) return MPI_SUCCESS;
  if (packed && request.is_send)
    if (const int code = packed->pack_all(); code != MPI_SUCCESS) return raised_by_host(code);
  prepare();
  if (request.is_send && mode == SendMode::buffered) {
    const int code = send_buffered(comm_, envelope_, member_, data_);
    if (code == MPI_SUCCESS) request.complete_at_once();
    return code;
  }
  the_messenger->start(request);
  return MPI_SUCCESS;
}

int Message::outcome() {
  if (proc_null) return MPI_SUCCESS;
  if (!std::exchange(landed_, true)) {
    landing_ = MPI_SUCCESS;
    if (packed && !request.is_send && request.error != messages::ErrorKind::died)
      landing_ = raised_by_host(packed->unpack_bytes(request.received));
  }
  int error = mpi::outcome(request);
  if (other && error == MPI_SUCCESS) error = mpi::outcome(*other);
  return error == MPI_SUCCESS ? landing_ : error;
}

void Message::status(MPI_Status* status) const {
  if (proc_null) set_proc_null_status(status);
  else set_status(status, request);
}

void Message::cancel() {
  if (!proc_null && !other) the_messenger->cancel(request);
}

void Message::abandon() {
  if (proc_null) return;
  the_messenger->abandon(request);
  if (other) the_messenger->abandon(*other);
}

bool Message::goes_on_without(int member) {
  for (messages::Request* const each : {&request, other.get()})
    if (each && needs(*each, member)) the_messenger->abandon(*each, messages::ErrorKind::died);
  return true;
}

}  // namespace nearfield::mpi
