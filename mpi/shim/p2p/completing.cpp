// Wait and Test in all their forms. Waits progress both sides (law 3 of docs/dev/architecture.md).
//
//   requests of   the host   host.WaitX, host.TestX; our messages progress meanwhile, here or in the progress thread
//                 ours       look at the requests and poll; now and then progress the host (progress_others, wait_ours)
//                 both       the same, and the host's requests are tested (host_part.hpp)
#include "engine/base/out_of_memory.hpp"
#include "engine/waiting/wait.hpp"
#include "mpi/shim/communicators/async_creation.hpp"
#include "mpi/shim/p2p/host_part.hpp"

namespace nearfield::mpi {

const PerThread<PollBackoff, threads::at::poll_backoff> poll_backoff;

// MPI_Testall of the MPICH family does not complete the others once one request has failed; MPI_Waitall does.
constexpr bool testall_keeps_failed = abi::testall_keeps_failed;

int test_for_waitall(int count, MPI_Request* requests, int& next, int& flag, MPI_Status* statuses) {
  if (!host_testall_fails.load(std::memory_order_relaxed)) {
    if constexpr (!testall_keeps_failed) return host.Testall(count, requests, &flag, statuses);
    for (flag = 1; next < count; ++next) {
      // the error, if any, is returned by the call that completes the request
      host.Request_get_status(requests[next], &flag, MPI_STATUS_IGNORE);
      if (!flag) return MPI_SUCCESS;
    }
    return host.Waitall(count, requests, statuses);
  }
  for (flag = 1; next < count; ++next) {
    const int code = host.Test(&requests[next], &flag, nth(statuses, next));
    if (code != MPI_SUCCESS || !flag) return code;
  }
  return MPI_SUCCESS;
}

void look_for_deaths(PollBackoff& poll) {
  const std::uint64_t now = waiting::nanoseconds();
  poll.seldom = now - poll.read_clock > waiting::between_inspections / 4;
  poll.read_clock = now;
  if (now - poll.looked < waiting::between_inspections) return;
  poll.looked = now;
  the_messenger->look_for_dead();
}

// Called after a wait has thrown: withdraws the request from the engine.
static void abandon(UserRequest& user) {
  if (!user.active || user.common) return;
  if (user.activity) user.activity->abandon();
  else the_messenger->abandon(user.request);
}

bool end_dead(int count, const MPI_Request* requests, int& code) {
  bool any = false;
  for (int i = 0; i < count; ++i) {
    if (!is_own(requests[i])) continue;
    UserRequest& user = *own(requests[i]);
    if (!user.active || user.complete()) continue;
    for (int m = 0; m < the_messenger->members(); ++m) {
      if (!the_messenger->known_dead(m) || !user.involves(m)) continue;
      if (user.from_anybody()) {
        if (code == MPI_SUCCESS) code = raise_code(user.comm(), pending_class());
        break;
      }
      log_line(LogLevel::error, "%s", the_messenger->death_of(m, "waiting for it").what());
      if (user.activity) user.died = !user.activity->goes_on_without(m);
      else the_messenger->abandon(user.request, messages::ErrorKind::died);
      any = true;
      break;
    }
  }
  return any;
}

int finish_slowly(MPI_Request* request, MPI_Status* status) {
  UserRequest* const user = own(*request);
  const int code = user->died ? died_class() : user->active ? user->activity->outcome() : MPI_SUCCESS;
  set_status(status, *user);
  user->active = false;
  if (!user->persistent) {
    *request = host.request_null;
    free_request(user);
  }
  free_created();
  return code;
}

namespace {

// Progresses our operations before the host tests its own requests.
void look_after_ours() {
  if (!the_runner) return;
  note_host_request();
  poll_ours();
}

// Waits for requests that are all the host's. If messages of ours are under way, or ranks share CPUs, it calls
// `test(flag)` until that sets the flag, and progresses our messages meanwhile. Otherwise it calls `wait`, and a
// progress thread serves peers that are blocked on us. `something`: there is a request to wait for.
template <class Wait, class Test>
int wait_for_host(bool something, Wait wait, Test test) {
  if (!something || !the_runner) return wait();
  note_host_request();
  int code = MPI_SUCCESS, flag = 0;
  auto done = [&] { return (code = test(flag)) != MPI_SUCCESS || flag; };
  if (process_ever()->progress().busy() || wait_policy().oversubscribed) {
    wait_in_host(done);
    return code;
  }
  if (waiting::spin(200, done, [] {})) return code;
  const HostScope scope;
  return wait();
}

bool is_complete(MPI_Request request) { return !is_own(request) || own(request)->complete(); }

// Runs `body`, which waits for some of our requests. If it throws, all of ours that are left are abandoned.
template <class Body>
int with_ours(int count, MPI_Request* requests, const char* function, Body body) {
  auto give_up = [&] {
    MPI_Comm comm = host.world;
    for (int i = count; i-- > 0;) {
      if (!is_own(requests[i])) continue;
      comm = own(requests[i])->comm();
      abandon(*own(requests[i]));
    }
    return comm;
  };
  try {
    return body();
  } catch (const team::Broken& broken) {
    return raise(give_up(), function, broken);
  } catch (const OutOfMemory&) {
    return raise(give_up(), function, "out of memory", MPI_ERR_NO_MEM);
  }
}

// Serves a call on an array of requests: by `of_host()` if all are the host's, else by `body(theirs)`. `theirs`: the
// host's requests; nullptr: all are ours. Null handles may be counted as the host's or as ours.
template <class OfHost, class Body>
int by_owner(int count, MPI_Request* requests, const char* function, OfHost of_host, Body body) {
  if (count <= 0 || !requests || !any_ever()) return of_host();
  int ours = 0, null = 0;
  const MPI_Request none = host.request_null;
  for (int i = 0; i < count; ++i) {
    ours += is_own(requests[i]);
    null += requests[i] == none;
  }
  if (ours == 0) return of_host();
  if (ours + null == count) return body(nullptr);
  return guarded(host.world, function, [&]() -> int {
    HostPart theirs(count, requests);
    return with_ours(count, requests, function, [&] { return body(&theirs); });
  });
}

void attend(UserRequest& user) {
  if (!user.activity && user.request.is_send) the_messenger->attend(user.request);
}

// Waits for one of our requests. If the death of a process leaves an any-source receive under way, returns the error
// code that has been raised; else MPI_SUCCESS. Throws what waits throw, unless the request has ended with that error.
int wait_one(MPI_Request request) {
  UserRequest& user = *own(request);
  const auto involves = [&](int m) { return user.involves(m); };
  for (int code = MPI_SUCCESS;;) try {
      if (!user.activity) [[likely]] {
        if (!user.request.complete()) the_messenger->wait(user.request, involves);
        return MPI_SUCCESS;
      }
      const auto done = [&] {
        if (!wait_policy().oversubscribed) the_runner->poll_patiently(wait_policy());
        return user.complete();
      };
      if (!user.complete()) wait_ours(done, involves, nullptr, "waiting for a request");
      return MPI_SUCCESS;
    } catch (const team::Died&) {
      if (end_dead(1, &request, code) || user.complete()) continue;
      if (code == MPI_SUCCESS) throw;
      return code;
    }
}

// Waits until done(). Requests that need a process that has died end with that error, as in calls that test. Returns an
// error code that has been raised for a request that stays under way, or MPI_SUCCESS.
template <class Done, class Involves>
int wait_for_living(int count, const MPI_Request* requests, Done done, Involves involves, FunctionRef<void()> also,
                    const char* doing) {
  for (int code = MPI_SUCCESS;;) try {
      wait_ours(done, involves, also, doing);
      return MPI_SUCCESS;
    } catch (const team::Died&) {
      if (end_dead(count, requests, code) || done()) continue;
      if (code == MPI_SUCCESS) throw;
      return code;
    }
}

// Returns whether a request that is not complete may need that member.
bool any_involves(int count, const MPI_Request* requests, int member) {
  for (int i = 0; i < count; ++i)
    if (!is_complete(requests[i]) && own(requests[i])->involves(member)) return true;
  return false;
}

constexpr int rounds_without_host = 16;  // of a wait for both while ours are under way

// A call that waits for some of an array. If all are the host's: by `wait` or `test(flag)`, as in wait_for_host().
// Otherwise until `look(theirs, asks, code)` returns true: requests have completed with `code`. `asks`: test theirs.
template <class Wait, class Test, class Look>
int wait_for_array(int count, MPI_Request* requests, const char* function, const char* doing, Wait wait, Test test,
                   Look look) {
  const auto of_host = [&] { return wait_for_host(count > 0 && requests, wait, test); };
  return by_owner(count, requests, function, of_host, [&](HostPart* theirs) {
    return with_ours(count, requests, function, [&]() -> int {
      int code = MPI_SUCCESS, round = 0;
      bool there = look(theirs, true, code);
      const auto done = [&] { return there || (there = look(theirs, ++round % rounds_without_host == 0, code)); };
      const auto polled = [&] {
        poll_ours();
        return done();
      };
      const auto pause = [] { processor::await_loads(); };
      if (there || waiting::spin(wait_policy().oversubscribed ? 1 : 200, polled, pause)) return code;
      const auto involves = [&](int member) { return !there && any_involves(count, requests, member); };
      const auto ask = [&] { there = there || look(theirs, true, code); };
      const FunctionRef<void()> also = theirs ? FunctionRef<void()>(ask) : nullptr;
      const int pending = wait_for_living(count, requests, done, involves, also, doing);
      return pending == MPI_SUCCESS ? code : pending;
    });
  });
}

// A call that tests an array once, by `test` if all requests are the host's, else by `look`.
template <class Test, class Look>
int test_array(int count, MPI_Request* requests, const char* function, Test test, Look look) {
  const auto of_host = [&] { return look_after_ours(), test(); };
  return by_owner(count, requests, function, of_host, [&](HostPart* theirs) {
    int code = MPI_SUCCESS;
    poll_ours();
    if (!look(theirs, true, code) && progress_others(count, requests, code)) look(theirs, true, code);
    return code;
  });
}

}  // namespace

int Wait(MPI_Request* request, MPI_Status* status) {
  if (!request || !is_own(*request)) {
    return wait_for_host(
        request && *request != host.request_null, [&] { return host.Wait(request, status); },
        [&](int& flag) { return host.Test(request, &flag, status); });
  }
  if (*request == sent_at_once.load(std::memory_order_relaxed)) return finish(request, status);
  UserRequest& user = *own(*request);
  const MPI_Comm comm = user.comm();
  try {
    if (const int code = wait_one(*request); code != MPI_SUCCESS) [[unlikely]]
      return code;
  } catch (const team::Broken& broken) {
    abandon(user);
    finish(request, status);
    return raise(comm, "MPI_Wait", broken);
  }
  return report(comm, finish(request, status));
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!request || !is_own(*request)) {
    look_after_ours();
    return host.Test(request, flag, status);
  }
  UserRequest& user = *own(*request);
  if (!user.complete()) {
    poll_ours();
    int code = MPI_SUCCESS;
    if (!ended(*request, code)) {
      *flag = 0;
      return code;
    }
  }
  const MPI_Comm comm = user.comm();
  *flag = 1;
  return report(comm, finish(request, status));
}

namespace {

// Finishes a request that is ours and complete, or null.
void finish_next(MPI_Request* request, Outcomes& outcomes) {
  if (*request == sent_at_once.load(std::memory_order_relaxed)) {
    finish(request, outcomes.status());
    return outcomes.add(MPI_SUCCESS, {});
  }
  if (*request == host.request_null) {
    set_empty_status(outcomes.status());
    return outcomes.add(MPI_SUCCESS, {});
  }
  const MPI_Comm comm = own(*request)->comm();
  outcomes.add(finish(request, outcomes.status()), comm);
}

// pre: all are complete.
int finish_all(int count, MPI_Request* requests, MPI_Status* statuses, HostPart* theirs, bool waited) {
  Outcomes outcomes(statuses, waited || theirs);
  for (int i = 0; i < count; ++i)
    if (theirs && theirs->is_next(i)) theirs->finish_next(outcomes);
    else finish_next(&requests[i], outcomes);
  return outcomes.report(theirs ? theirs->code() : MPI_SUCCESS);
}

int wait_for_both(int count, MPI_Request* requests, MPI_Status* statuses, HostPart& theirs) {
  int next = 0, round = 0;
  const auto ours = [&] {
    while (next < count && is_complete(requests[next])) ++next;
    return next == count;
  };
  // The host's part is tested now and then while ours are awaited, and always once ours are complete.
  const auto done = [&] {
    const bool all = ours();
    if (all || ++round % rounds_without_host == 0) theirs.test_for_waitall();
    return all && theirs.done();
  };
  theirs.test_for_waitall();
  const int pending = wait_for_living(
      count, requests, done, [&](int member) { return any_involves(count, requests, member); },
      [&] { theirs.test_for_waitall(); }, "waiting for all of several requests");
  return pending == MPI_SUCCESS ? finish_all(count, requests, statuses, &theirs, true) : pending;
}

int wait_for_ours(int count, MPI_Request* requests, MPI_Status* statuses) {
  return with_ours(count, requests, "MPI_Waitall", [&]() -> int {
    Outcomes outcomes(statuses, true);
    const MPI_Request none = host.request_null, sent = sent_at_once.load(std::memory_order_relaxed);
    for (int i = 0; i < count; ++i)
      if (requests[i] != sent && requests[i] != none) attend(*own(requests[i]));
    for (int i = 0; i < count; ++i) {
      if (requests[i] != sent && requests[i] != none)
        if (const int code = wait_one(requests[i]); code != MPI_SUCCESS) [[unlikely]]
          return code;
      finish_next(&requests[i], outcomes);
    }
    return outcomes.report();
  });
}

// Completes all requests, or none.
int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* statuses, HostPart* theirs) {
  int next = 0, code = MPI_SUCCESS;
  const auto ours = [&] {
    while (next < count && is_complete(requests[next])) ++next;
    return next == count;
  };
  bool all = ours();
  if (!all || theirs) {
    poll_ours();
    all = ours();
  }
  if (!all && progress_others(count, requests, code)) all = ours();
  *flag = all && (!theirs || theirs->test_all());
  return *flag ? finish_all(count, requests, statuses, theirs, false) : code;
}

// The most frequent test in loops, in one pass: true if all are ours and under way, and nothing has progressed.
bool none_has_moved(int count, const MPI_Request* requests) {
  if (count <= 0 || !requests || !any_ever()) return false;
  for (int i = 0; i < count; ++i)
    if (!is_own(requests[i]) || own(requests[i])->complete()) return false;
  return !poll_ours() && !progress_others();
}

// Tests all once, and finishes the first that is complete; *index is its position. False: none is complete yet.
bool test_any(int count, MPI_Request* requests, int* index, MPI_Status* status, HostPart* theirs, bool asks,
              int& code) {
  bool active = false;
  for (int i = 0; i < count; ++i) {
    if (!is_own(requests[i])) continue;
    const UserRequest& user = *own(requests[i]);
    if (!user.complete()) {
      active = true;
    } else if (user.active) {
      *index = i;
      const MPI_Comm comm = user.comm();
      code = report(comm, finish(&requests[i], status));
      return true;
    }
  }
  if (theirs && (asks || !active) && theirs->test_any(index, status, code, active)) return true;
  *index = MPI_UNDEFINED;
  if (active) return false;
  set_empty_status(status);
  return true;
}

// Finishes all that are complete. False: none is complete yet.
bool test_some(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses, HostPart* theirs,
               bool asks, int& code) {
  bool active = false;
  Outcomes outcomes(statuses);
  for (int i = 0; i < count; ++i) {
    if (!is_own(requests[i])) continue;
    UserRequest& user = *own(requests[i]);
    if (!user.complete()) {
      active = true;
    } else if (user.active) {
      indices[outcomes.count()] = i;
      const MPI_Comm comm = user.comm();
      outcomes.add(finish(&requests[i], outcomes.status()), comm);
    }
  }
  int of_host = MPI_SUCCESS;
  if (theirs && (asks || outcomes.count() || !active)) of_host = theirs->test_some(indices, outcomes, active);
  *out = outcomes.count();
  if (*out == 0 && active && of_host == MPI_SUCCESS) return false;
  if (*out == 0 && !active) *out = MPI_UNDEFINED;
  code = outcomes.report(of_host);
  return true;
}

}  // namespace

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  int next = 0;
  const auto of_host = [&] {
    return wait_for_host(
        count > 0 && requests, [&] { return host.Waitall(count, requests, statuses); },
        [&](int& flag) { return test_for_waitall(count, requests, next, flag, statuses); });
  };
  return by_owner(count, requests, "MPI_Waitall", of_host, [&](HostPart* theirs) {
    return theirs ? wait_for_both(count, requests, statuses, *theirs) : wait_for_ours(count, requests, statuses);
  });
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const auto of_host = [&] { return look_after_ours(), host.Testall(count, requests, flag, statuses); };
  return by_owner(count, requests, "MPI_Testall", of_host,
                  [&](HostPart* theirs) { return test_all(count, requests, flag, statuses, theirs); });
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return wait_for_array(
      count, requests, "MPI_Waitany", "waiting for any of several requests",
      [&] { return host.Waitany(count, requests, index, status); },
      [&](int& flag) { return host.Testany(count, requests, index, &flag, status); },
      [&](HostPart* theirs, bool asks, int& code) {
        return test_any(count, requests, index, status, theirs, asks, code);
      });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (none_has_moved(count, requests)) {
    *index = MPI_UNDEFINED;
    *flag = 0;
    return MPI_SUCCESS;
  }
  return test_array(
      count, requests, "MPI_Testany", [&] { return host.Testany(count, requests, index, flag, status); },
      [&](HostPart* theirs, bool asks, int& code) {
        return *flag = test_any(count, requests, index, status, theirs, asks, code);
      });
}

int Waitsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  return wait_for_array(
      count, requests, "MPI_Waitsome", "waiting for some of several requests",
      [&] { return host.Waitsome(count, requests, out, indices, statuses); },
      [&](int& flag) {
        const int code = host.Testsome(count, requests, out, indices, statuses);
        flag = *out != 0;
        return code;
      },
      [&](HostPart* theirs, bool asks, int& code) {
        return test_some(count, requests, out, indices, statuses, theirs, asks, code);
      });
}

int Testsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  if (none_has_moved(count, requests)) {
    *out = 0;
    return MPI_SUCCESS;
  }
  return test_array(
      count, requests, "MPI_Testsome", [&] { return host.Testsome(count, requests, out, indices, statuses); },
      [&](HostPart* theirs, bool asks, int& code) {
        return test_some(count, requests, out, indices, statuses, theirs, asks, code);
      });
}

}  // namespace nearfield::mpi
