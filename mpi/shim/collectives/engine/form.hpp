// When a collective call returns: when all is done, at once with a request for what is under way, or at once with a
// request that is started again and again. Each holds the host's function for it.
#pragma once
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "engine/base/function_ref.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

using collectives::Collective;

template <class HostCall>
struct Blocking {
  HostCall host_call;
  static constexpr bool overlaps = false, plans = false;
  Admission admit(MPI_Comm comm, const Reduction* reduction = nullptr) const { return mpi::admit(comm, reduction); }
  int at_host(Collective collective, Reason reason) const { return to_host(collective, reason, host_call); }
  int done(int code) const { return code; }
};

// Whether what is under way goes on while this rank blocks in a call of the host: equal on all ranks of a node.
inline bool goes_on_in_host() { return the_stand_in; }

template <class HostCall>
struct Nonblocking {
  HostCall host_call;
  MPI_Request* request;
  static constexpr bool overlaps = true, plans = false;
  Admission admit(MPI_Comm comm, const Reduction* reduction = nullptr) const {
    if (!request) return {};
    if (!goes_on_in_host()) return {nullptr, Reason::off};
    if (Communicator* const c = communicator_of(comm); c && c->young && !revoked(comm)) [[unlikely]]
      if (by_host_for_youth(*c, reduction)) return {nullptr, Reason::young};
    if (Communicator* const state = created(comm)) [[likely]]
      return {state, Reason::communicator};
    const Communicator* const state = communicator_of(comm);
    return {nullptr, state && !state->enabled ? Reason::off : Reason::communicator};
  }
  int at_host(Collective collective, Reason reason) const {
    return overlapping_host(collective, reason, [&] { return host_call(request); });
  }
  // With a request that is complete.
  int done(int code) const {
    if (code == MPI_SUCCESS) *request = common_send();
    return code;
  }
};

// The calls that plan may wait for all members (MPI 4.1, 6.13).
template <class HostCall>
struct Persistent {
  HostCall host_call;
  MPI_Request* request;
  static constexpr bool overlaps = true, plans = true;
  Admission admit(MPI_Comm comm, const Reduction* = nullptr) const {
    grow_up(comm);
    const Admission admitted = request ? mpi::admit(comm) : Admission{};
    if (!goes_on_in_host()) return {nullptr, Reason::off};
    return admitted.communicator && admitted.communicator->team ? admitted : Admission{nullptr, admitted.reason};
  }
  int done(int) const { std::abort(); }  // a plan is made also of what moves nothing
  int at_host(Collective collective, Reason reason) const {
    const int code = to_host(collective, reason, host_call);
    if (code == MPI_SUCCESS && request) note_persistent(*request);
    return code;
  }
};

// The host's function of a call that is not worth code of its own: so forms that differ in it alone share theirs.
using AnyHostCall = FunctionRef<int()>;
using CallOfHost = std::function<int(MPI_Request*)>;
// The same of one that takes a request, of which a copy can be kept beyond the call.
class AnyOverlappingCall {
 public:
  template <class HostCall>
  AnyOverlappingCall(const HostCall& call)
      : call_(call), at_(&call), copy_([](const void* at) { return CallOfHost(*static_cast<const HostCall*>(at)); }) {}
  int operator()(MPI_Request* request) const { return call_(request); }
  CallOfHost kept() const { return copy_(at_); }

 private:
  FunctionRef<int(MPI_Request*)> call_;
  const void* at_;
  CallOfHost (*copy_)(const void*);
};
template <class HostCall>
CallOfHost kept_call(const HostCall& call) {
  if constexpr (std::is_same_v<HostCall, AnyOverlappingCall>) return call.kept();
  else return call;
}

template <class HostCall>
Blocking(HostCall) -> Blocking<HostCall>;
template <class HostCall>
Nonblocking(HostCall, MPI_Request*) -> Nonblocking<AnyOverlappingCall>;
template <class HostCall>
Persistent(HostCall, MPI_Request*) -> Persistent<AnyHostCall>;

// What an operation that is under way needs beside its call: buffers that stand for those of the program.
struct StagingBuffers {
  virtual ~StagingBuffers() = default;
  virtual int fetch() = 0;  // before it begins. An error class
  virtual int store() = 0;  // once it is complete. An error class
};

// Issues `call` on a communicator that has a team, and makes a request for it, or plans it. What it lacks memory for
// breaks off the communicator, since the others are in it.
// It is counted as `counted`.
int overlap(Communicator& c, MPI_Comm comm, const collectives::Call& call, const char* function,
            std::unique_ptr<StagingBuffers> kept, MPI_Request* request, const collectives::Call& counted);
// The same of one that is begun by each start. None: the members cannot have it, all alike; nothing has been made.
std::optional<int> plan(Communicator& c, MPI_Comm comm, const collectives::Call& call, const char* function,
                        std::unique_ptr<StagingBuffers> kept, MPI_Request* request, const collectives::Call& counted);

// Makes a request for a call of a communicator that is yet to have its team: it is issued to that, or to the host by
// `host_call` where there will be none.
int defer(Communicator& c, MPI_Comm comm, const collectives::Call& call, const char* function,
          std::unique_ptr<StagingBuffers> kept, MPI_Request* request, const collectives::Call& counted,
          CallOfHost host_call);

// Begins `call`, or plans it.
template <class When>
int begin(Communicator& c, MPI_Comm comm, const collectives::Call& call, const char* function,
          std::unique_ptr<StagingBuffers> kept, const When& when, const collectives::Call* counted = nullptr) {
  if constexpr (When::plans) {
    const auto code = plan(c, comm, call, function, std::move(kept), when.request, counted ? *counted : call);
    return code ? *code : when.at_host(call.collective, Reason::memory);
  } else {
    // What only some see at once is still not issued by anybody (law 1): a type says nothing of the others' types.
    if (call.bytes == 0 && !collectives::operation(call.collective).moves_nothing() && !checks(c) && !broken_off(c))
      return when.done(MPI_SUCCESS);
    const collectives::Call& told = counted ? *counted : call;
    if (is_being_created(c)) [[unlikely]]
      return defer(c, comm, call, function, std::move(kept), when.request, told, kept_call(when.host_call));
    return overlap(c, comm, call, function, std::move(kept), when.request, told);
  }
}

}  // namespace nearfield::mpi
