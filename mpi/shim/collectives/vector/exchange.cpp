#include "mpi/shim/collectives/vector/exchange.hpp"

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/single/alone.hpp"

namespace nearfield::mpi {

bool find_extent(MPI_Datatype type, MPI_Aint& extent) {
  if (const TypeInfo* info = find_type(type); info && info->dense) {
    extent = info->bytes;
    return true;
  }
  if (const auto layout = find_layout(type); layout && layout->described) {
    extent = layout->view.dense() ? MPI_Aint(layout->size) : MPI_Aint(layout->view.extent);
    return true;
  }
  MPI_Aint low = 0;
  return type != host.type_null && host.Type_get_extent(type, &low, &extent) == MPI_SUCCESS;
}

void count_exchange(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  *last_algorithm = "messages";
  if (counting()) [[unlikely]]
    count_call(collective, bytes, start);
}

Communicator* exchanging(MPI_Comm comm, Reason& reason) {
  Communicator* const c = channel(comm);
  if (c && !spans_nodes(*c)) [[likely]]
    return c;
  // Of one rank all edges are its own, which are copied.
  if (Communicator* const alone = the_messenger ? find_alone(comm) : nullptr) return alone;
  const Communicator* const state = the_messenger ? communicator_of(comm) : nullptr;
  reason = state && !state->messages_on ? Reason::off : Reason::communicator;
  return nullptr;
}

namespace {

// What of a call is under way when it has returned.
class ExchangeActivity final : public Activity {
 public:
  ExchangeActivity(std::unique_ptr<Exchange> exchange, bool plans) : exchange_(std::move(exchange)), plans_(plans) {}
  ~ExchangeActivity() override {
    if (begun_) exchange_->abandon();
  }
  int begin() override {
    try {
      if (plans_) exchange_->renew();
    } catch (const OutOfMemory&) {
      exchange_->refuse();
      return MPI_ERR_NO_MEM;
    }
    try {
      exchange_->start();
    } catch (const OutOfMemory&) {
      return MPI_ERR_NO_MEM;
    }
    begun_ = true;
    settled_ = false;
    return MPI_SUCCESS;
  }
  bool completed() override { return exchange_->complete(); }
  bool finished() const override { return settled_; }
  int outcome() override {
    if (!exchange_->complete()) return MPI_ERR_OTHER;  // given up by who waited for it
    if (!std::exchange(settled_, true)) code_ = exchange_->outcome();
    return code_;
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override { exchange_->abandon(); }
  bool involves(int member) const override { return exchange_->involves(member); }

 private:
  const std::unique_ptr<Exchange> exchange_;
  const bool plans_;
  bool begun_ = false, settled_ = false;
  int code_ = MPI_SUCCESS;
};

}  // namespace

int overlap(MPI_Comm comm, std::unique_ptr<Exchange> exchange, bool plans, MPI_Request* request) {
  return make_request(comm, std::make_unique<ExchangeActivity>(std::move(exchange), plans), plans, request);
}

}  // namespace nearfield::mpi
