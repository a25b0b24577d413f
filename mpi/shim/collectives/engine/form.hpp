// The forms of a collective call: blocking, non-blocking, or persistent. Each holds the host's function for that call.
//
// post() gives a call of any form to a team: a blocking call is run at once, others become a task (team_work.hpp).
#pragma once
#include <cstdlib>
#include <functional>
#include <memory>

#include "engine/base/function_ref.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/collectives/task.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

using collectives::Collective;

struct Blocking {
  FunctionRef<int()> host_call;
  static constexpr Form form = Form::blocking;
  static constexpr bool overlaps = false, plans = false;
  int at_host(Collective collective, Reason reason) const { return to_host(collective, reason, host_call); }
  int done(int code) const { return code; }
};

// The host's function of a call that makes a request, of which a copy can be kept beyond the call.
class CallWithRequest {
 public:
  template <class HostCall>
  CallWithRequest(const HostCall& call)
      : call_(call), at_(&call), copy_([](const void* at) -> Kept { return *static_cast<const HostCall*>(at); }) {}
  using Kept = std::function<int(MPI_Request*)>;
  int operator()(MPI_Request* request) const { return call_(request); }
  Kept kept() const { return copy_(at_); }

 private:
  FunctionRef<int(MPI_Request*)> call_;
  const void* at_;
  Kept (*copy_)(const void*);
};

struct Nonblocking {
  CallWithRequest host_call;
  MPI_Request* request;
  static constexpr Form form = Form::nonblocking;
  static constexpr bool overlaps = true, plans = false;
  int at_host(Collective collective, Reason reason) const {
    note_host_request();
    return to_host(collective, reason, [this] { return host_call(request); });
  }
  // Makes a complete request.
  int done(int code) const {
    if (code == MPI_SUCCESS) *request = common_send();
    return code;
  }
};

// The calls that make persistent requests may wait for all members (MPI 4.1, 6.13).
struct Persistent {
  FunctionRef<int()> host_call;
  MPI_Request* request;
  static constexpr Form form = Form::persistent;
  static constexpr bool overlaps = true, plans = true;
  int at_host(Collective collective, Reason reason) const {
    const int code = to_host(collective, reason, host_call);
    host_testall_fails.store(true, std::memory_order_relaxed);
    if (code == MPI_SUCCESS && request) note_persistent(*request);
    return code;
  }
  int done(int) const { std::abort(); }  // never called: a persistent call gets a task even if it moves nothing
};

// Makes a request for a call on a communicator that has a team or will have one: issued at once, or a persistent one by
// each start. Statistics count it as `counted`. If memory is short the team is broken off, since the others are in the
// call.
int post_task(Communicator& c, const collectives::Call& call, const char* function,
              std::unique_ptr<StagingBuffers> buffers, const Nonblocking& form, const collectives::Call& counted);
int post_task(Communicator& c, const collectives::Call& call, const char* function,
              std::unique_ptr<StagingBuffers> buffers, const Persistent& form, const collectives::Call& counted);

// Serves a call with `buffers`, which have fetch() and store(); keep() returns those that a task needs, nullptr: none.
template <class Buffers, class When>
int post(Communicator& c, const collectives::Call& call, const char* function, Buffers&& buffers, const When& when) {
  if constexpr (When::overlaps) {
    return post_task(c, call, function, buffers.keep(), when, call);
  } else {
    if (buffers.fetch() != MPI_SUCCESS) return give_up(c, function, "the buffer cannot be packed");
    const int code = carry(c, call, function, when.host_call);
    if (code != MPI_SUCCESS || *last_algorithm == by_host) return code;  // the host has stored the result itself
    return report(c.comm, buffers.store());
  }
}

}  // namespace nearfield::mpi
