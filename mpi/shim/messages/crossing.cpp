#include "mpi/shim/messages/crossing.hpp"

namespace nearfield::mpi {
Crossing::Crossing(std::unique_ptr<Message> near, void* buffer, MPI_Count count, MPI_Datatype type, int tag,
                   MPI_Comm comm)
    : near_(std::move(near)),
      buffer_(buffer),
      count_(count),
      kept_(find_type(type) ? std::nullopt : std::optional<Committed>(std::in_place, type)),
      type_(kept_ && kept_->good() ? kept_->type() : type),
      tag_(tag),
      comm_(comm),
      there_(host.request_null) {
  near_->request.elsewhere = this;
}

// Freed while it waits, or its wait has thrown.
Crossing::~Crossing() {
  the_messenger->abandon(near_->request);
  if (there_ == host.request_null) return;
  host.Cancel(&there_);
  host.Request_free(&there_);
}

int Crossing::begin() {
  met_.store(Met::no, std::memory_order_relaxed);
  taking_back_ = wants_cancel_ = false;
  code_ = MPI_SUCCESS;
  return near_->begin();
}

void Crossing::posted() {
  code_ =
      large(host.Irecv_c, host.Irecv, "MPI_Irecv", comm_, buffer_, count_, type_, MPI_ANY_SOURCE, tag_, comm_, &there_);
  if (code_ != MPI_SUCCESS) there_ = host.request_null;  // then it is met here, or not at all
}

// Whether it has been met there: `no` then, as claim().
messages::Elsewhere::Claim Crossing::look() {
  if (there_ == host.request_null) return Claim::yes;
  int done = 0, cancelled = 0;
  const int code = host.Test(&there_, &done, &status_);
  if (code == MPI_SUCCESS && !done) return Claim::later;
  if (code == MPI_SUCCESS && taking_back_) host.Test_cancelled(&status_, &cancelled);
  there_ = host.request_null;
  if (cancelled) return Claim::yes;
  code_ = code;
  met_.store(Met::there, std::memory_order_release);  // pairs with completed
  return Claim::no;
}

messages::Elsewhere::Claim Crossing::claim() {
  if (there_ != host.request_null && !taking_back_) {
    taking_back_ = true;
    host.Cancel(&there_);
  }
  return look();
}

bool Crossing::completed() {
  if (met_.load(std::memory_order_acquire) != Met::no) return true;
  if (near_->completed()) return true;
  if (++looks_ % looks_at_host) return false;
  the_messenger->take_out_if(near_->request, [&] {
    const Claim found = wants_cancel_ ? claim() : look();
    if (found == Claim::yes && wants_cancel_) met_.store(Met::nowhere, std::memory_order_release);
    return found == Claim::no || (found == Claim::yes && wants_cancel_);
  });
  return met_.load(std::memory_order_relaxed) != Met::no;
}

int Crossing::outcome() {
  switch (met_.load(std::memory_order_acquire)) {
    case Met::no: return near_->outcome();
    case Met::there: return code_;
    default: return MPI_SUCCESS;
  }
}

void Crossing::status(MPI_Status* status) const {
  switch (met_.load(std::memory_order_acquire)) {
    case Met::no: return near_->status(status);
    case Met::nowhere: return set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, true);
    case Met::there: break;
  }
  if (status == MPI_STATUS_IGNORE) return;
  const int error = status->MPI_ERROR;  // whoever completes several says what it is
  *status = status_;
  status->MPI_ERROR = error;
}

void Crossing::cancel() {
  wants_cancel_ = true;
  looks_ = looks_at_host - 1;
  completed();
}

void Crossing::abandon() { near_->abandon(); }

int receive_from_anybody(const layout::Data& data, const Communicator& c, void* buffer, MPI_Count count,
                         MPI_Datatype type, int tag, MPI_Status* status) {
  int found = 0, code = MPI_SUCCESS;
  MPI_Message message;
  auto look = [&] {
    code = host.Improbe(MPI_ANY_SOURCE, tag, c.comm, &found, &message, MPI_STATUS_IGNORE);
    return code != MPI_SUCCESS || found;
  };
  messages::Request request;
  static thread_local unsigned calls;
  bool there = ++calls % looks_at_host == 0 && look();  // others than near ones have their turn
  if (!there) {
    prepare_receive(request, c, MPI_ANY_SOURCE, tag, data);
    the_messenger->start(request);
    unsigned looks = 0;
    try {
      the_messenger->wait_until(
          [&] {
            if (request.complete() || there) return true;
            return ++looks % looks_at_host == 0 && (there = the_messenger->take_out_if(request, look));
          },
          [](int) { return true; },
          [&] {
            if (!there && !request.complete()) there = the_messenger->take_out_if(request, look);
          },
          "receiving from anybody");
    } catch (...) {
      the_messenger->abandon(request);
      throw;
    }
  }
  if (there) {
    if (code != MPI_SUCCESS) return code;
    return blocking_host(
        [&] { return large(host.Mrecv_c, host.Mrecv, "MPI_Mrecv", c.comm, buffer, count, type, &message, status); });
  }
  set_status(status, request.envelope.source, request.envelope.tag, request.received, false);
  return report(c.comm, outcome(request));
}

bool Combined::completed() {
  for (MPI_Request& each : half) {
    if (each == host.request_null) continue;
    int done = 0;
    MPI_Status status{};
    const int code = Test(&each, &done, &status);
    if (code != MPI_SUCCESS) code_ = code;
    if (done && &each == &half[0]) status_ = status;
    if (!done && code == MPI_SUCCESS) return false;
  }
  return true;
}

void Combined::status(MPI_Status* status) const {
  if (status == MPI_STATUS_IGNORE) return;
  const int error = status->MPI_ERROR;
  *status = status_;
  status->MPI_ERROR = error;
}

}  // namespace nearfield::mpi
