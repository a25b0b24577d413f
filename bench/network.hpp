// `worker network`: what the host MPI needs from node to node, the figures `net_...` of a machine (engine/machine).
//
//   node 0      node 1          node h      node h+1      h: half the nodes; all pairs at the same time, since
//     r0 <--------- lane 0 ------> r0                       that is how collectives find the network
//     r1 <--------- lane 1 ------> r1
//
// Times are of the slowest pair in the quickest of some batches, since an interruption is not distance. Bytes and
// messages come from the difference between more and fewer of them, in which latency, handshakes and answers cancel.
// Ranks that share CPUs yield while they wait, and those that take no part sleep.
#pragma once
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "bench/ranks.hpp"
#include "tools/json.hpp"

namespace bench {

class NetworkBench {
 public:
  NetworkBench() {
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_);
    MPI_Comm_rank(node_, &local_);
    MPI_Comm_size(node_, &lanes_);
    MPI_Allreduce(MPI_IN_PLACE, &lanes_, 1, MPI_INT, MPI_MIN, comm);
    MPI_Comm_split(comm, local_, 0, &lane_);
    MPI_Comm_rank(lane_, &me_);
    MPI_Comm_size(lane_, &nodes_);
    MPI_Bcast(&nodes_, 1, MPI_INT, 0, comm);  // as lane 0 has them
    const int half = nodes_ / 2;
    first_ = me_ < half;
    partner_ = first_ ? me_ + half : me_ - half;
    paired_ = local_ < lanes_ && me_ < 2 * half;
    out_.resize(std::size_t(times_more * fewer_bytes));
    in_.resize(out_.size());
  }
  ~NetworkBench() {
    MPI_Comm_free(&lane_);
    MPI_Comm_free(&node_);
  }

  // Prints the figures, on one rank of each node. False: there is one node only.
  bool run() {
    if (nodes_ < 2) return false;
    const double latency = quickest(1, [&] { round_trips(); }) / (2 * trips);
    const auto bytes = [&](long count) { send_bytes(count); };
    const auto messages = [&](long count) { send_messages(count); };
    const double byte = slope(1, fewer_bytes, bytes), message = slope(1, fewer_messages, messages);
    const bool all = lanes_ > 1;
    const double node_byte = all ? slope(lanes_, fewer_bytes, bytes) / lanes_ : byte;
    const double node_message = all ? slope(lanes_, fewer_messages, messages) / lanes_ : message;
    if (local_ == 0)
      nearfield::print({{"nodes", nodes_},
                        {"lanes", lanes_},
                        {"net_latency", nearfield::rounded(latency, 0)},
                        {"net_message", nearfield::rounded(message, 1)},
                        {"net_byte", nearfield::rounded(byte, 5)},
                        {"net_node_message", nearfield::rounded(node_message, 1)},
                        {"net_node_byte", nearfield::rounded(node_byte, 5)}});
    return true;
  }

 private:
  static constexpr int batches = 10, trips = 15;
  static constexpr long fewer_bytes = 256 << 10, fewer_messages = 64, times_more = 4;

  static void wait(MPI_Request* requests, int count) {
    for (int done = 0; !done; done || sched_yield()) MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
  }
  static void settle(MPI_Request request) {
    for (int done = 0; !done; done || usleep(100)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }

  // Nanoseconds of `work` in so many lanes at once: the slowest rank's.
  double timed(int lanes, const std::function<void()>& work) {
    MPI_Request meeting;
    MPI_Ibarrier(comm, &meeting);
    const bool works = paired_ && local_ < lanes;
    if (works) wait(&meeting, 1);
    else settle(meeting);
    const double start = MPI_Wtime();
    if (works) work();
    double mine = works ? (MPI_Wtime() - start) * 1e9 : 0, slowest = 0;
    MPI_Iallreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm, &meeting);
    settle(meeting);
    return slowest;
  }

  // The first batch makes connections.
  double quickest(int lanes, const std::function<void()>& work) {
    timed(lanes, work);
    double least = timed(lanes, work);
    for (int batch = 1; batch < batches; ++batch) least = std::min(least, timed(lanes, work));
    return least;
  }

  // Nanoseconds for each one more; of each of all where the clock sees no more.
  double slope(int lanes, long fewer, const std::function<void(long)>& work) {
    const long more = times_more * fewer;
    const double some = quickest(lanes, [&] { work(fewer); }), most = quickest(lanes, [&] { work(more); });
    return most > some ? (most - some) / double(more - fewer) : most / double(more);
  }

  void send(int bytes) {
    MPI_Request request;
    MPI_Isend(out_.data(), bytes, MPI_BYTE, partner_, 0, lane_, &request);
    wait(&request, 1);
  }
  void receive(int bytes) {
    MPI_Request request;
    MPI_Irecv(in_.data(), bytes, MPI_BYTE, partner_, 0, lane_, &request);
    wait(&request, 1);
  }
  void round_trips() {
    for (int i = 0; i < trips; ++i) {
      if (first_) send(8);
      receive(8);
      if (!first_) send(8);
    }
  }
  void send_bytes(long count) {
    if (first_) send(int(count));
    receive(first_ ? 8 : int(count));
    if (!first_) send(8);
  }
  // One right after the other, and an answer to the last.
  void send_messages(long count) {
    std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
    for (long i = 0; i < count; ++i) {
      MPI_Request& request = requests[std::size_t(i)];
      if (first_) MPI_Isend(out_.data(), 8, MPI_BYTE, partner_, 0, lane_, &request);
      else MPI_Irecv(in_.data() + 8 * i, 8, MPI_BYTE, partner_, 0, lane_, &request);
    }
    wait(requests.data(), int(count));
    if (first_) receive(8);
    else send(8);
  }

  MPI_Comm node_, lane_;
  int local_, lanes_, me_, nodes_, partner_;
  bool first_, paired_;
  std::vector<char> out_, in_;
};

}  // namespace bench
