// Operations of point to point: what benchmarks do, what programs do with several neighbours, and calls that find
// nothing.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/own_work.hpp"
#include "bench/ranks.hpp"

namespace bench {

// One call, with what the program does with its buffers before and after.
using Operation = std::function<void(double* send, double* recv, OwnWork& own)>;

template <class Call>
Operation surrounded(Call call) {
  return [call](double* s, double* r, OwnWork& own) mutable {
    own.write(s);
    call(s, r);
    own.read(s, r);
  };
}

inline constexpr int window = 64;     // messages under way at once, as in other benchmarks of bandwidth
inline constexpr int neighbours = 8;  // of a halo
inline constexpr int looks = 4096;    // calls that find nothing, between posting and cancelling what they look at
inline constexpr int pending = 16;    // requests that Testall and Testany look at

inline bool finds_nothing(const std::string& name) {
  return name == "test" || name == "testall" || name == "testany" || name == "iprobe";
}
inline bool exchanges(const std::string& name) {
  return name == "sendrecv" || name == "exchange" || name == "waitall" || name == "waits" || name == "testloop";
}
inline bool has_neighbours(const std::string& name) { return name == "halo" || name == "waitany"; }
inline bool streams(const std::string& name) {
  return name == "bw" || name == "bibw" || name == "message-rate" || name == "multi-pair";
}
inline bool answers(const std::string& name) {
  return name.ends_with("latency") || name.starts_with("ddt-") || name == "anysource" || name == "probe";
}
inline bool point_to_point(const std::string& name) {
  return finds_nothing(name) || exchanges(name) || has_neighbours(name) || streams(name) || answers(name);
}

// Messages one after the other in a call: half a round trip, a message of a window, but a whole exchange.
inline double messages_in_a_call(const std::string& name) {
  return answers(name) ? 2 : streams(name) ? window : finds_nothing(name) ? looks : 1;
}

// Derived types touch more memory than they have data.
inline std::size_t blocks_of_messages(const std::string& name) {
  return has_neighbours(name) ? std::size_t(neighbours) : name.starts_with("ddt-") ? 4 : 1;
}

// A message is answered once it has been read and the answer written.
inline int ranks_in_turn(const std::string& name) { return answers(name) ? 2 : 1; }

// Ranks in pairs: the first with the one in the middle, and so on. Operations of one pair leave the others out.
inline int partner(const std::string& name) {
  const int half = size / 2;
  const bool one_pair =
      name == "latency" || name == "bw" || name == "bibw" || name == "message-rate" || name.starts_with("ddt-");
  if (one_pair) return rank < 2 && size > 1 ? 1 - rank : -1;
  return rank < half ? rank + half : rank < 2 * half ? rank - half : -1;
}

inline Traffic traffic_of_messages(const std::string& name, std::size_t bytes) {
  if (finds_nothing(name)) return {0, 0};
  if (has_neighbours(name)) return {bytes * neighbours, bytes * neighbours};
  if (exchanges(name)) return {bytes, bytes};
  const int peer = partner(name);
  if (peer < 0) return {0, 0};
  if (name.starts_with("ddt-")) return {bytes * 2, bytes * 2};
  if (streams(name) && name != "bibw") return peer > rank ? Traffic{bytes, 0} : Traffic{0, bytes};
  return {bytes, bytes};
}

// ---------------------------------------------------------------- one message after the other

// `send` and `receive` get a buffer and the peer.
template <class Send, class Receive>
Operation ping_pong(int peer, Send send, Receive receive) {
  return [=](double* s, double* r, OwnWork& own) {
    if (peer < 0) return;
    if (peer > rank) own.write(s), send(s, peer);
    receive(r, peer);
    own.read(s, r);
    if (peer < rank) own.write(s), send(s, peer);
  };
}

inline Operation ping_pong_of(const std::string& name, int count, MPI_Datatype type) {
  const auto send = [=](const void* s, int peer) { MPI_Send(s, count, type, peer, 1, comm); };
  if (name == "anysource")
    return ping_pong(partner(name), send, [=](void* r, int) {
      MPI_Request request;
      MPI_Irecv(r, count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  if (name == "probe")
    return ping_pong(partner(name), send, [=](void* r, int peer) {
      MPI_Status status;
      int found = 0;
      MPI_Probe(peer, 1, comm, &status);
      MPI_Get_count(&status, type, &found);
      MPI_Recv(r, found, type, peer, 1, comm, MPI_STATUS_IGNORE);
    });
  return ping_pong(partner(name), send,
                   [=](void* r, int peer) { MPI_Recv(r, count, type, peer, 1, comm, MPI_STATUS_IGNORE); });
}

// A derived type of `bytes` bytes of data in doubles, which touches at most four times as much memory.
inline MPI_Datatype derived(const std::string& name, std::size_t bytes) {
  const int doubles = int(bytes / 8);
  MPI_Datatype type;
  if (name == "ddt-vector") {
    MPI_Type_vector(std::max(1, doubles / 2), doubles > 1 ? 2 : 1, 4, MPI_DOUBLE, &type);
  } else if (name == "ddt-indexed") {
    std::vector<int> lengths, places;
    for (int k = 0, done = 0; done < doubles; ++k) {
      lengths.push_back(std::min(1 + k % 5, doubles - done));
      places.push_back(done * 2 + k % 2);
      done += lengths.back();
    }
    MPI_Type_indexed(int(lengths.size()), lengths.data(), places.data(), MPI_DOUBLE, &type);
  } else {  // the inner half of a matrix of rows of 64
    const int inner = std::min(32, doubles), rows = std::max(1, doubles / 32);
    const int sizes[] = {rows, 64}, parts[] = {rows, inner}, starts[] = {0, 16};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

// ---------------------------------------------------------------- several at once

// A window of messages in one direction or both, then a word back.
inline void stream(const void* s, void* r, int count, MPI_Datatype type, int peer, bool both) {
  if (peer < 0) return;
  MPI_Request requests[2 * window];
  int n = 0;
  if (both || peer < rank)
    for (int i = 0; i < window; ++i) MPI_Irecv(r, count, type, peer, 2, comm, &requests[n++]);
  if (both || peer > rank)
    for (int i = 0; i < window; ++i) MPI_Isend(s, count, type, peer, 2, comm, &requests[n++]);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  char word = 0;
  if (peer < rank) MPI_Send(&word, 1, MPI_BYTE, peer, 3, comm);
  else MPI_Recv(&word, 1, MPI_BYTE, peer, 3, comm, MPI_STATUS_IGNORE);
}

// Around a ring: to the right, from the left. With two ranks both are the other.
inline Operation exchange_of(const std::string& name, int count, MPI_Datatype type) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  if (name == "sendrecv")
    return surrounded([=](double* s, double* r) {
      MPI_Sendrecv(s, count, type, right, 4, r, count, type, left, 4, comm, MPI_STATUS_IGNORE);
    });
  if (name == "exchange")  // with both neighbours, the same data; what comes from the left is overwritten
    return surrounded([=](double* s, double* r) {
      MPI_Request requests[2];
      MPI_Isend(s, count, type, left, 4, comm, &requests[0]);
      MPI_Isend(s, count, type, right, 5, comm, &requests[1]);
      MPI_Recv(r, count, type, left, 5, comm, MPI_STATUS_IGNORE);
      MPI_Recv(r, count, type, right, 4, comm, MPI_STATUS_IGNORE);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    });
  const auto begin = [=](double* s, double* r, MPI_Request* requests) {
    MPI_Irecv(r, count, type, left, 4, comm, &requests[0]);
    MPI_Isend(s, count, type, right, 4, comm, &requests[1]);
  };
  if (name == "waitall")
    return surrounded([=](double* s, double* r) {
      MPI_Request requests[2];
      begin(s, r, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    });
  if (name == "waits")
    return surrounded([=](double* s, double* r) {
      MPI_Request requests[2];
      begin(s, r, requests);
      for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  return surrounded([=](double* s, double* r) {
    MPI_Request requests[2];
    begin(s, r, requests);
    for (MPI_Request& request : requests)
      for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  });
}

// A halo's k-th message goes to a rank further on, and comes from one as far back; all are the other one of two.
inline int away(int k) { return size > 1 ? 1 + k % (size - 1) : 0; }
inline int to_neighbour(int k) { return (rank + away(k)) % size; }
inline int from_neighbour(int k) { return (rank + size - away(k)) % size; }

inline Operation halo_of(const std::string& name, int count, MPI_Datatype type) {
  int bytes = 1;
  MPI_Type_size(type, &bytes);
  return surrounded(
      [=, any = name == "waitany", stride = std::size_t(count) * std::size_t(bytes)](double* s, double* r) {
        const auto at = [&](double* base, int k) { return reinterpret_cast<char*>(base) + std::size_t(k) * stride; };
        MPI_Request requests[2 * neighbours];
        for (int k = 0; k < neighbours; ++k)
          MPI_Irecv(at(r, k), count, type, from_neighbour(k), 8 + k, comm, &requests[k]);
        for (int k = 0; k < neighbours; ++k)
          MPI_Isend(at(s, k), count, type, to_neighbour(k), 8 + k, comm, &requests[neighbours + k]);
        for (int k = 0, which; any && k < neighbours; ++k) MPI_Waitany(neighbours, requests, &which, MPI_STATUS_IGNORE);
        const int rest = any ? neighbours : 0;
        MPI_Waitall(2 * neighbours - rest, requests + rest, MPI_STATUSES_IGNORE);
      });
}

// ---------------------------------------------------------------- calls that find nothing

inline Operation look_of(const std::string& name) {
  return [name](double*, double* r, OwnWork&) {
    MPI_Request requests[pending];
    MPI_Status status;
    int found = 0, which = 0;
    const int receives = name == "iprobe" ? 0 : name == "test" ? 1 : pending, left = (rank + size - 1) % size;
    for (int k = 0; k < receives; ++k) MPI_Irecv(r, 1, MPI_DOUBLE, left, 32 + k, comm, &requests[k]);
    if (name == "test")
      for (int i = 0; i < looks; ++i) MPI_Test(requests, &found, MPI_STATUS_IGNORE);
    else if (name == "testall")
      for (int i = 0; i < looks; ++i) MPI_Testall(pending, requests, &found, MPI_STATUSES_IGNORE);
    else if (name == "testany")
      for (int i = 0; i < looks; ++i) MPI_Testany(pending, requests, &which, &found, &status);
    else
      for (int i = 0; i < looks; ++i) MPI_Iprobe(left, 32, comm, &found, &status);
    if (found) MPI_Abort(MPI_COMM_WORLD, 5);
    for (int k = 0; k < receives; ++k) MPI_Cancel(&requests[k]);
    MPI_Waitall(receives, requests, MPI_STATUSES_IGNORE);
  };
}

inline Operation message_operation(const std::string& name, int count, MPI_Datatype type) {
  if (finds_nothing(name)) return look_of(name);
  if (has_neighbours(name)) return halo_of(name, count, type);
  if (exchanges(name)) return exchange_of(name, count, type);
  if (name.starts_with("ddt-")) return ping_pong_of(name, 1, derived(name, std::size_t(count)));
  if (answers(name)) return ping_pong_of(name, count, type);
  return surrounded([=, peer = partner(name), both = name == "bibw"](double* s, double* r) {
    stream(s, r, count, type, peer, both);
  });
}

}  // namespace bench
