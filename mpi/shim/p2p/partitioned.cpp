// Partitioned messages (MPI-4) between ranks of a node; the host serves all others. Each partition is a message of its
// own (engine/messages/partitions.hpp), into the receiver's buffer.
//
// The n-th send that a rank initialises for a partner and a tag belongs to the n-th receive that the partner
// initialises for the rank and that tag. Both count, so both know the context of the pair without communication.
//
// Data that the engine cannot address (types that are not described, memory of devices) is sent as a packed copy, which
// is made when all partitions are ready, and unpacked when all have arrived.
#include <mutex>

#include "engine/messages/partitions.hpp"
#include "mpi/shim/collectives/vector/exchange.hpp"
#include "mpi/shim/p2p/completing.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {
namespace {

// Returns the context of the next pair; the other side's initialisation gets the same.
std::uint64_t next_context(Communicator& c, int partner, int tag, bool sends) {
  static constinit std::mutex counting;
  const std::lock_guard lock(counting);
  const std::uint32_t n = c.partitioned[{partner, tag, sends}]++;
  return mix_context(context_of_partitioned(c), std::uint64_t(tag) << 32 | n);
}

messages::PartitionedPair pair_of(Communicator& c, int partner, int tag, bool sends) {
  return {*the_messenger, c.members[std::size_t(partner)], sends ? c.rank : partner,
          next_context(c, partner, tag, sends), context_of_partitioned(c)};
}

class PartitionedSendActivity final : public Activity {
 public:
  PartitionedSendActivity(const messages::PartitionedPair& pair, TypedData typed, std::unique_ptr<Packed> packed,
                          int partitions, std::uint64_t bytes, std::int64_t step)
      : typed_(std::move(typed)),
        packed_(std::move(packed)),
        send_(pair, {std::uint64_t(partitions), bytes}),
        count_(partitions),
        bytes_(bytes),
        step_(packed_ ? std::int64_t(bytes) : step) {}
  int begin() override {
    code_ = MPI_SUCCESS;
    marked_.store(0, std::memory_order_relaxed);
    send_.start();
    return MPI_SUCCESS;
  }
  int ready(int low, int high) override {
    if (low < 0 || high >= count_ || low > high) return MPI_ERR_ARG;
    for (int i = low; i <= high; ++i) {
      if (!send_.mark(std::uint64_t(i))) return MPI_ERR_ARG;
      if (!packed_) send(i);
      else if (marked_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) send_all();  // SYNC: partitions-marked
    }
    return MPI_SUCCESS;
  }
  bool completed() override { return send_.complete(); }
  int outcome() override {
    const messages::ErrorKind error = send_.outcome();
    return error == messages::ErrorKind::none ? raised_by_host(code_) : code_of_error(error);
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override { send_.abandon(); }
  bool involves(int member) const override { return send_.involves(member); }

 private:
  void send(int i) { send_.send(std::uint64_t(i), {typed_.data.address + i * step_, bytes_, typed_.data.view}); }
  void send_all() {
    code_ = packed_->pack_all();  // the data are sent even after an error, since the receiver waits for them
    for (int i = 0; i < count_; ++i) send(i);
  }
  const TypedData typed_;
  const std::unique_ptr<Packed> packed_;  // the copy, if typed_ describes a packed copy
  messages::PartitionedSend send_;
  const int count_;
  const std::uint64_t bytes_;  // of one partition
  const std::int64_t step_;    // distance of partitions in memory
  std::atomic<int> marked_{0};
  int code_ = MPI_SUCCESS;
};

class PartitionedReceiveActivity final : public Activity {
 public:
  PartitionedReceiveActivity(const messages::PartitionedPair& pair, TypedData typed, std::unique_ptr<Packed> packed,
                             int partitions, std::uint64_t bytes, int tag)
      : typed_(std::move(typed)),
        packed_(std::move(packed)),
        receive_(pair, typed_.data),
        source_(pair.source),
        tag_(tag),
        count_(partitions),
        bytes_(bytes) {}
  int begin() override {
    landed_ = false;
    receive_.start();
    return MPI_SUCCESS;
  }
  int arrived(int partition, bool& there) override {
    if (partition < 0 || partition >= count_) return MPI_ERR_ARG;
    const std::uint64_t begin = std::uint64_t(partition) * bytes_;
    there = packed_ ? receive_.complete() : receive_.arrived(begin, begin + bytes_);
    if (there && packed_) land();
    return MPI_SUCCESS;
  }
  bool completed() override { return receive_.complete(); }
  int outcome() override {
    const messages::ErrorKind error = receive_.outcome();
    const int code = land();
    return error == messages::ErrorKind::none ? raised_by_host(code) : code_of_error(error);
  }
  void status(MPI_Status* status) const override { set_status(status, source_, tag_, receive_.received(), false); }
  void abandon() override { receive_.abandon(); }
  bool involves(int member) const override { return receive_.involves(member); }

 private:
  int land() {
    if (!packed_) return MPI_SUCCESS;
    const std::lock_guard lock(landing_);
    if (!std::exchange(landed_, true)) code_ = packed_->unpack_bytes(receive_.received());
    return code_;
  }
  const TypedData typed_;
  const std::unique_ptr<Packed> packed_;  // the copy, if typed_ describes a packed copy
  messages::PartitionedReceive receive_;
  const int source_, tag_, count_;
  const std::uint64_t bytes_;  // of a partition
  std::mutex landing_;
  bool landed_ = false;
  int code_ = MPI_SUCCESS;
};

// To or from MPI_PROC_NULL.
class Nowhere final : public Activity {
 public:
  Nowhere(int partitions, bool sends) : count_(partitions), sends_(sends) {}
  int begin() override { return MPI_SUCCESS; }
  int ready(int low, int high) override {
    if (!sends_) return MPI_ERR_REQUEST;
    return low < 0 || high >= count_ || low > high ? MPI_ERR_ARG : MPI_SUCCESS;
  }
  int arrived(int partition, bool& there) override {
    if (sends_) return MPI_ERR_REQUEST;
    there = true;
    return partition < 0 || partition >= count_ ? MPI_ERR_ARG : MPI_SUCCESS;
  }
  bool completed() override { return true; }
  int outcome() override { return MPI_SUCCESS; }
  void status(MPI_Status* status) const override {
    if (sends_) set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
    else set_proc_null_status(status);
  }
  void abandon() override {}
  bool involves(int) const override { return false; }

 private:
  const int count_;
  const bool sends_;
};

template <class HostCall>
int host_partitioned_request(MPI_Request* request, HostCall host_call) {
  host_testall_fails.store(true, std::memory_order_relaxed);
  return making_host(true, request, host_call);
}

// Returns the error that hosts raise for wrong arguments.
int wrong_argument(const Communicator& c, int partitions, MPI_Count count, int partner, int tag) {
  if (partitions < 0) return MPI_ERR_ARG;
  if (count < 0) return MPI_ERR_COUNT;
  if (partner != MPI_PROC_NULL && (partner < 0 || partner >= c.size)) return MPI_ERR_RANK;
  if (tag < 0 || tag > largest_tag) return MPI_ERR_TAG;
  return MPI_SUCCESS;
}

template <class HostCall>
int make_partitioned(bool sends, const char* function, void* buffer, int partitions, MPI_Count count, MPI_Datatype type,
                     int partner, int tag, MPI_Comm comm, MPI_Request* request, HostCall host_call) {
  Communicator* const c = channel(comm);
  if (!c || !request) return host_partitioned_request(request, host_call);
  if (const int wrong = wrong_argument(*c, partitions, count, partner, tag); wrong != MPI_SUCCESS)
    return raise_code(comm, wrong);
  // partner on another node
  if (!good_destination(*c, partner, tag)) return host_partitioned_request(request, host_call);
  MPI_Count elements;
  if (__builtin_mul_overflow(count, MPI_Count(partitions), &elements)) return raise_code(comm, MPI_ERR_COUNT);
  TypedData typed(buffer, elements, type);
  MPI_Aint extent = 0;
  if (!typed.good || !find_extent(type, extent)) return host_partitioned_request(request, host_call);
  return guarded(comm, function, [&]() -> int {
    const std::uint64_t bytes = partitions ? typed.data.bytes / std::uint64_t(partitions) : 0;
    std::unique_ptr<Activity> activity;
    if (partner == MPI_PROC_NULL) {
      activity = std::make_unique<Nowhere>(partitions, sends);
    } else {
      auto packed = packed_copy(typed, buffer, elements, type, comm, true);
      const messages::PartitionedPair pair = pair_of(*c, partner, tag, sends);
      if (sends)
        activity = std::make_unique<PartitionedSendActivity>(pair, std::move(typed), std::move(packed), partitions,
                                                             bytes, count * extent);
      else
        activity = std::make_unique<PartitionedReceiveActivity>(pair, std::move(typed), std::move(packed), partitions,
                                                                bytes, tag);
    }
    return report(comm, make_request(comm, std::move(activity), true, request));
  });
}

// Marks partitions of our request as ready.
int mark(MPI_Request handle, const char* function, int low, int high) {
  UserRequest& user = *own(handle);
  if (!user.active || !user.activity) return raise_code(user.comm(), MPI_ERR_REQUEST);
  return guarded(user.comm(), function, [&]() -> int { return report(user.comm(), user.activity->ready(low, high)); });
}

}  // namespace

int Psend_init(const void* b, int partitions, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Info info,
               MPI_Request* r) {
  return make_partitioned(true, "MPI_Psend_init", const_cast<void*>(b), partitions, n, t, dest, tag, c, r,
                          [&] { return at_host<Function::Psend_init>(b, partitions, n, t, dest, tag, c, info, r); });
}

int Precv_init(void* b, int partitions, MPI_Count n, MPI_Datatype t, int source, int tag, MPI_Comm c, MPI_Info info,
               MPI_Request* r) {
  return make_partitioned(false, "MPI_Precv_init", b, partitions, n, t, source, tag, c, r,
                          [&] { return at_host<Function::Precv_init>(b, partitions, n, t, source, tag, c, info, r); });
}

int Pready(int partition, MPI_Request request) {
  if (is_own(request)) return mark(request, "MPI_Pready", partition, partition);
  return at_host<Function::Pready>(partition, request);
}

int Pready_range(int low, int high, MPI_Request request) {
  if (is_own(request)) return mark(request, "MPI_Pready_range", low, high);
  return at_host<Function::Pready_range>(low, high, request);
}

int Pready_list(int length, const int* partitions, MPI_Request request) {
  if (!is_own(request)) return at_host<Function::Pready_list>(length, partitions, request);
  for (int i = 0; i < length; ++i)
    if (const int code = mark(request, "MPI_Pready_list", partitions[i], partitions[i]); code != MPI_SUCCESS)
      return code;
  return MPI_SUCCESS;
}

// For an inactive request all partitions have arrived.
int Parrived(MPI_Request request, int partition, int* flag) {
  poll_ours();
  if (!is_own(request)) return at_host<Function::Parrived>(request, partition, flag);
  UserRequest& user = *own(request);
  if (!user.activity) return raise_code(user.comm(), MPI_ERR_REQUEST);
  if (user.died) return raise_code(user.comm(), died_class());
  bool there = false;
  const int code = guarded(user.comm(), "MPI_Parrived", [&]() -> int {
    const int wrong = user.activity->arrived(partition, there);
    return report(user.comm(), wrong);
  });
  if (code != MPI_SUCCESS) return code;
  *flag = there || !user.active;
  int wrong = MPI_SUCCESS;
  if (!*flag && progress_others(1, &request, wrong)) return raise_code(user.comm(), died_class());
  return wrong;
}

}  // namespace nearfield::mpi
