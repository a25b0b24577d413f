// Checks at the start of every point-to-point call: are the arguments right, and do we serve the message? Calls with
// wrong arguments go to the host, which raises the expected error. The communicator alone decides who serves a message,
// so sender and receiver agree (law 1 of docs/dev/architecture.md). Any thread may call.
#pragma once

#include "engine/base/out_of_memory.hpp"
#include "engine/base/yield.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

inline constinit int largest_tag = 32767;

inline int wildcard_source(int source) { return source == MPI_ANY_SOURCE ? messages::any : source; }
inline int wildcard_tag(int tag) { return tag == MPI_ANY_TAG ? messages::any : tag; }

// Return whether the arguments are right and the partner is on this node.
inline bool good_destination(const Communicator& c, int dest, int tag) {
  return tag >= 0 && tag <= largest_tag &&
         ((dest >= 0 && dest < c.size && c.members[std::size_t(dest)] >= 0) || dest == MPI_PROC_NULL);
}
inline bool good_source(const Communicator& c, int source, int tag) {
  return ((tag >= 0 && tag <= largest_tag) || tag == MPI_ANY_TAG) &&
         ((source >= 0 && source < c.size && c.members[std::size_t(source)] >= 0) || source == MPI_ANY_SOURCE ||
          source == MPI_PROC_NULL);
}
// Returns whether the message may come from this node or another (any_source.hpp).
inline bool may_cross(const Communicator& c, int source) { return source == MPI_ANY_SOURCE && spans_nodes(c); }

[[gnu::always_inline]] inline void prepare_send(messages::Request& r, const Communicator& c, int dest, int tag,
                                                SendMode mode, const layout::Data& data) {
  r.is_send = true;
  r.mode = mode == SendMode::synchronous ? messages::Mode::synchronous : messages::Mode::standard;
  r.member = c.members[dest];
  r.envelope = {c.context, c.rank, tag};
  r.data = data;
}

[[gnu::always_inline]] inline void prepare_receive(messages::Request& r, const Communicator& c, int source, int tag,
                                                   const layout::Data& data) {
  r.is_send = false;
  r.member = source == MPI_ANY_SOURCE ? -1 : c.members[source];
  r.envelope = {c.context, wildcard_source(source), wildcard_tag(tag)};
  r.data = data;
}

// Runs a call of the host that may block for a message; call_host() runs one that does not block.
template <class HostCall>
int blocking_host(HostCall call) {
  count_host_message();
  note_host_request();
  const HostScope scope;
  return call();
}

template <class HostCall>
int call_host(HostCall call) {
  count_host_message();
  note_host_request();
  return call();
}

// Counts a persistent request that the host has made.
void note_persistent(MPI_Request request);
// True once the host has made a partitioned request, or a persistent request of a collective. MPI_Testall of MPICH
// (5.0.2) and Intel MPI fails when such a request is complete.
inline constinit std::atomic<bool> host_testall_fails{false};

template <class HostCall>
int making_host(bool persistent, MPI_Request* request, HostCall call) {
  const int code = call_host(call);
  if (persistent && code == MPI_SUCCESS && request) note_persistent(*request);
  return code;
}

// Runs `body`, which waits inside the engine; exceptions become errors of `comm`.
template <class Body>
int guarded(MPI_Comm comm, const char* function, Body body) {
  try {
    return body();
  } catch (const team::Broken& broken) {
    return raise(comm, function, broken);
  } catch (const OutOfMemory&) {
    return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
  }
}

// Waits for a request on the stack, and abandons it if the wait throws. `c`: the communicator if it is a receive.
[[gnu::always_inline]] inline void wait_for(messages::Request& request, const Communicator* c = nullptr) {
  try {
    the_messenger->wait(request, [c](int member) { return !c || may_come_from(*c, member); });
  } catch (...) {
    the_messenger->abandon(request);
    throw;
  }
}

// Buffered sends (buffered.cpp). Returns an error class.
// Uses the buffer attached to `comm` (which the program may have freed), to its session, or to the process.
int send_buffered(MPI_Comm comm, const messages::Envelope& envelope, int member, const layout::Data& data);

bool buffered_are_outstanding();
void forget_buffer(MPI_Comm comm);  // called when the communicator is freed
// Returns the session that a communicator comes from, whose buffer it uses if it has none of its own; 0: none.
using Origin = std::uint64_t;
Origin origin_of(MPI_Comm comm);
Origin origin_of_session(MPI_Session session);
void set_origin(MPI_Comm comm, Origin origin);
Origin origin_of_group(MPI_Group group);  // (sessions.cpp)
void end_origin(Origin origin);
void forget_any_source(MPI_Comm comm);  // called when the program frees the communicator

// State of progress_others(), which is called after a test or probe that found nothing. It progresses the host, and it
// yields, since programs poll in loops: in one of four calls if ranks share our CPU, otherwise in one of a thousand,
// since on Linux 6.18 threads that yield do not run for seconds beside one that never yields. It progresses the host in
// every call while there are windows of the host, and in 4096 calls after the program has used requests of the host;
// otherwise in one of 16 or 128. It counts calls, not time: only programs that compute between their calls need the
// host in each of them.
//
// It also looks for dead processes, as Waiter::inspect does in waits: in one of sixteen calls, or in each if the
// program polls seldom, it reads the clock, and at intervals asks the messenger who has died. Other inspections of
// waits are not needed: suspended bodies inspect themselves, the host's step notices revocation, polls cannot hang.
struct PollBackoff {
  unsigned count = 0, attentive = 0;
  std::uint32_t seen = 0;
  bool seldom = false;
  std::uint64_t read_clock = 0, looked = 0;  // ns
};
extern const PerThread<PollBackoff, threads::at::poll_backoff> poll_backoff;

void look_for_deaths(PollBackoff& poll);

// Returns whether any process is known to have died; then callers check whether they need that process.
inline bool progress_others() {
  run_bodies();                                                       // programs may do nothing but poll
  constexpr unsigned a_while = 4096, seldom = 16, hardly_ever = 128;  // hardly_ever: if the host has nothing under way
  PollBackoff& l = *poll_backoff;
  const std::uint32_t seen = host_requests_seen.load(std::memory_order_relaxed);
  if (seen != l.seen) [[unlikely]]
    l.seen = seen, l.attentive = a_while;
  ++l.count;
  auto& process = *process_ever();
  const bool due = l.count % seldom == 0 && (l.count % hardly_ever == 0 || process.progress().host_needs_us());
  if (l.attentive || due || open_windows.load(std::memory_order_relaxed)) {
    l.attentive -= l.attentive != 0;
    process.progress().step_host();
  }
  if (l.count % (process.policy().oversubscribed ? 4 : 1024) == 0) yield();
  if (!the_messenger) return false;
  if (l.count % seldom == 0 || l.seldom) [[unlikely]]
    look_for_deaths(l);
  return the_messenger->any_dead();
}

// Ends those of the requests that need a dead process, or only what they have under way with it; their outcome is then
// that error. Any-source receives stay under way, but raise their error at once and store it in `code`. Returns whether
// anything has ended.
bool end_dead(int count, const MPI_Request* requests, int& code);
inline bool progress_others(int count, const MPI_Request* requests, int& code) {
  return progress_others() && end_dead(count, requests, code);
}
// Returns whether a request of ours is complete, if need be by a death.
inline bool ended(const MPI_Request& request, int& code) {
  const auto complete = [&] { return own(request)->complete(); };
  return complete() || (progress_others(1, &request, code) && complete());
}

}  // namespace nearfield::mpi
