// Messages of requests that are not plain: persistent requests, MPI_PROC_NULL, data with gaps or in device memory, and
// combined sends and receives. Their layouts and packed copies live as long as the request. One thread uses a Message
// at a time, as MPI demands of its request; the messenger progresses it under the messenger's lock.
#pragma once
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

class Message final : public Activity {
 public:
  explicit Message(MPI_Comm comm) : comm_(comm) {}
  int begin() override;
  // Prepares a receive as begin() does, without starting it.
  void prepare();
  bool completed() override { return request.complete() && (!other || other->complete()); }
  bool finished() const override { return request.complete() && (!other || other->complete()); }
  int outcome() override;
  void status(MPI_Status* status) const override;
  void cancel() override;
  void abandon() override;
  bool goes_on_without(int member) override;
  // A receive from anybody counts; UserRequest knows who may send to it.
  bool involves(int member) const override { return needs(request, member) || (other && needs(*other, member)); }
  bool from_anybody() const override { return !request.is_send && request.member < 0 && !other; }
  // Unmatched receives are not owed: a program that frees one does not need it.
  bool owed() const override { return request.is_send || !request.posted || other; }
  // Keeps the fields of `request` for all starts.
  void keep();
  messages::Request request;  // of a combined send and receive, the receive, whose status the program gets
  bool proc_null = false;     // to or from MPI_PROC_NULL, so complete at once
  SendMode mode{};
  std::unique_ptr<messages::Request> other;  // the send of a combined send and receive
  std::shared_ptr<const TypeLayout> layout, other_layout;
  std::unique_ptr<std::byte[]> copy;             // of the sent data of MPI_Sendrecv_replace
  std::unique_ptr<Packed> packed, other_packed;  // copies of what the messenger cannot address

 private:
  static bool needs(const messages::Request& half, int member) {
    return !half.complete() && (half.member == member || half.member < 0);
  }
  const MPI_Comm comm_;
  bool landed_ = false;        // the data of this start have been stored ...
  int landing_ = MPI_SUCCESS;  // ... with this error class
  messages::Envelope envelope_{};
  int member_ = -1;
  layout::Data data_;
};

}  // namespace nearfield::mpi
