// Messages whose partitions are marked as ready one by one, by any thread, and arrive one by one.
//
// A message that is short as a whole goes by a board (board.hpp). Otherwise each partition of the sender is a message,
// whose tag is its number, in a context of this pair of requests. The messages of a start follow those of the start
// before, and so do its receives: starts need no numbers, and a sender may be several starts ahead. For each partition
// of the sender the receiver posts a receive into the bytes of its own buffer that belong to it. Only the sender knows
// the number and length of its partitions, and where the board lies; it sends these once, in its advertisement.
//
//   sender                            receiver
//   first start: sends its            first start: posts a receive for that; when it is complete, posts receives
//     advertisement                     0, 1, ... (follow, in any poll of the messenger)
//   partition i is ready: sends       one of its own partitions has arrived when all its bytes have
//     message i
//   later starts: nothing             later starts: posts receives 0, 1, ...
//
// Threads: one starts and completes; any number may mark partitions as ready, or ask what has arrived, meanwhile.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "engine/messages/board.hpp"
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

// Contents of the sender's advertisement.
struct PartitionsOfSender {
  Partitions partitions;
  std::uint64_t board;  // offset in its segment, 0: none
};

// The partner; the envelopes' `source` and `context`; and `family`, one context for all pairs of a communicator: when
// it is closed, so is `context` (closed_contexts.hpp).
struct PartitionedPair {
  Messenger& messenger;
  int member;
  int source;
  std::uint64_t context, family;
};

// What both sides have in common.
class Partitioned {
 public:
  Partitioned(const Partitioned&) = delete;
  std::uint64_t context() const { return pair_.context; }
  // Closes it if it belongs to `family`, and returns whether it does. Under the messenger's lock.
  bool close_with(std::uint64_t family);
  bool involves(int member) const { return member == pair_.member; }

 protected:
  explicit Partitioned(const PartitionedPair& pair);
  ~Partitioned();
  void prepare(Request& request, bool sends, int tag, const layout::Data& data) const;
  bool closed() const { return closed_.load(std::memory_order_acquire); }               // SYNC: partitioned-closed
  bool ended() const { return closed() || given_up_.load(std::memory_order_acquire); }  // SYNC: given-up
  ErrorKind why_ended() const { return closed() ? ErrorKind::closed : ErrorKind::broken; }
  // Returns whether all `count` requests are complete. Those before `seen` are known to be.
  static bool all_complete(const Request* requests, std::uint64_t count, std::atomic<std::uint64_t>& seen);

  const PartitionedPair pair_;
  const Partitions& partitions() const { return advertised_.partitions; }  // the sender's
  PartitionsOfSender advertised_{};
  Request advertisement_;
  BoardView board_;
  std::uint64_t starts_ = 0;
  std::atomic<bool> given_up_{false};  // a wait has thrown

 private:
  Link link_;
  std::atomic<bool> closed_{false};
};

class PartitionedSend : Partitioned, Stalled {
 public:
  // Throws std::bad_alloc.
  PartitionedSend(const PartitionedPair& pair, const Partitions& partitions);
  ~PartitionedSend();
  using Partitioned::involves;

  // pre: it is not under way.
  void start();
  // False: it has been marked already since the start. After true, send() must follow.
  bool mark(std::uint64_t partition);
  // pre: it is marked and not sent yet; `data` is as long as a partition, and stays.
  void send(std::uint64_t partition, const layout::Data& data);
  bool complete() const;
  ErrorKind outcome() const;  // once complete
  void abandon();             // nothing is under way any more

 private:
  // A partition that waits for room in the board.
  struct Waiting {
    std::uint64_t partition;
    layout::Data data;
  };
  bool go_on() override;
  void put(std::uint64_t partition, const layout::Data& data);
  void count_sent(std::uint64_t more);
  std::unique_ptr<Request[]> requests_;
  std::vector<Waiting> stalled_;  // under the messenger's lock
  const std::unique_ptr<std::atomic<std::uint32_t>[]> marked_;
  std::atomic<std::uint64_t> reached_{0};  // number of partitions that have been sent
  std::atomic<bool> all_sent_{false};
  mutable std::atomic<std::uint64_t> seen_{0};
};

class PartitionedReceive : Partitioned, Follower {
 public:
  // Receives into `data`. The message should be as long.
  PartitionedReceive(const PartitionedPair& pair, const layout::Data& data) : Partitioned(pair), data_(data) {}
  ~PartitionedReceive();
  using Partitioned::involves;

  // pre: it is not under way.
  void start();
  // Returns whether bytes [begin, end) of the data are in the user's buffer.
  bool arrived(std::uint64_t begin, std::uint64_t end);
  bool complete();
  ErrorKind outcome();             // once complete
  std::uint64_t received() const;  // bytes, after outcome()
  void abandon();                  // nothing is under way any more

 private:
  void follow(FunctionRef<void(Request&)> start) override;
  bool know_partitions();
  layout::Data part(std::uint64_t begin, std::uint64_t end) const;
  void post(FunctionRef<void(Request&)> start);
  void land();
  void take(std::uint64_t begin, std::uint64_t end);
  bool complete_by_board();

  const layout::Data data_;
  std::unique_ptr<Request[]> requests_;
  std::unique_ptr<std::byte[]> aside_;  // room for the message, if its partitions begin within elements of ours
  std::mutex landing_;
  bool landed_ = false;
  std::unique_ptr<std::atomic<bool>[]> taken_;  // by partition: out of the board, since somebody has asked
  bool any_taken_ = false;
  std::atomic<bool> through_{false};  // all data are out of the board
  bool known_ = false;
  std::atomic<bool> open_{false};    // its receives are posted
  std::atomic<bool> failed_{false};  // for lack of memory
  mutable std::atomic<std::uint64_t> seen_{0};
};

}  // namespace nearfield::messages
