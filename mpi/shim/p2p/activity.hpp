// Messages behind requests that are not plain: persistent ones, to or from nobody, of data that is not dense, on
// devices, and combined sends and receives. What they need (layouts, stages, packed copies) lives as long as their
// request. A Message is one thread's at a time, as its request; what moves it is under the messenger's lock.
#pragma once
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

class Message final : public Activity {
 public:
  explicit Message(MPI_Comm comm) : comm_(comm) {}
  int begin() override;
  // A receive as begin() leaves it, but for its start.
  void prepare();
  bool completed() override { return request.complete() && (!other || other->complete()); }
  bool finished() const override { return request.complete() && (!other || other->complete()); }
  int outcome() override;
  void status(MPI_Status* status) const override;
  void cancel() override;
  void abandon() override;
  bool involves(int member) const override {
    return request.member == member || request.member < 0 || (other && other->member == member);
  }
  // Receives that nobody has matched are forgotten: whoever frees one does not need it.
  bool owed() const override { return request.is_send || !request.posted || other; }
  // Each start begins with what `request` says now.
  void keep();
  messages::Request request;  // its status is the status of all
  bool proc_null = false;     // to or from MPI_PROC_NULL: complete at once
  bool fetches = false;       // persistent: what lies on a device is fetched at each start
  SendMode mode{};
  std::unique_ptr<messages::Request> other;  // the send of a combined send and receive
  std::shared_ptr<const TypeLayout> layout, other_layout;
  std::unique_ptr<devices::Stage> send_stage, receive_stage;
  std::unique_ptr<std::byte[]> copy;             // of the data of a replacing send
  std::unique_ptr<Packed> packed, other_packed;  // where the type is not described: a packed copy

 private:
  const MPI_Comm comm_;
  bool landed_ = false;        // what this start has brought is where the program looks for it ...
  int landing_ = MPI_SUCCESS;  // ... or the class of what went wrong with that
  messages::Envelope envelope_{};
  int member_ = -1;
  layout::Data data_;
};

}  // namespace nearfield::mpi
