// Wait and Test in all their forms. Arrays of our requests alone, which nearly all are, are handled here; arrays of the
// host's alone are passed on; mixed.cpp has the others. Waits progress both sides (law 3 of docs/architecture.md).
//
//   whose are they?   the host's   host.WaitX, host.TestX; ours move meanwhile, here or in the progress thread
//                     ours         looks; polls ours; the host's turn now and then (progress_others, wait_ours)
//                     both         a copy of the host's part is tested, ours are looked at (mixed.cpp)
#include "mpi/shim/p2p/completing.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/waiting/wait.hpp"
#include "mpi/shim/communicators/async_creation.hpp"

namespace nearfield::mpi {

const PerThread<PollBackoff, threads::at::poll_backoff> poll_backoff;

void abandon(UserRequest& user) {
  if (!user.active || user.common) return;
  if (user.activity) user.activity->abandon();
  else the_messenger->abandon(user.request);
}

// MPI_Testall of the MPICH family does not complete the others once one request has failed; MPI_Waitall does.
constexpr bool testall_keeps_failed = abi::testall_keeps_failed;

int test_for_waitall(int count, MPI_Request* requests, int& next, int& flag, MPI_Status* statuses) {
  if (!host_partitioned.load(std::memory_order_relaxed)) {
    if constexpr (!testall_keeps_failed) return host.Testall(count, requests, &flag, statuses);
    for (flag = 1; next < count; ++next) {
      // the call that completes it returns the error
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
      abandon(user);
      if (user.activity) user.died = true;
      else user.request.error = messages::ErrorKind::died;
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

// Waits for requests of the host alone, by `wait`, or by `test(flag)` until it sets the flag. Our messages progress
// meanwhile: by this thread if any are under way or others need the CPU, otherwise by a progress thread when a peer is
// blocked on us.
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

// Dispatches a call on an array by the owner of its requests. Null handles belong to either.
template <class OfHost, class OfBoth, class OfOurs>
int by_owner(int count, const MPI_Request* requests, OfHost of_host, OfBoth of_both, OfOurs of_ours) {
  if (count <= 0 || !requests || !any_ever()) return of_host();
  int ours = 0, null = 0;
  const MPI_Request none = host.request_null;
  for (int i = 0; i < count; ++i) {
    ours += is_own(requests[i]);
    null += requests[i] == none;
  }
  if (ours == 0) return of_host();
  return ours + null == count ? of_ours() : of_both();
}

bool is_complete(MPI_Request request) { return request == host.request_null || own(request)->complete(); }

// Runs `body`, which waits for some of our requests; an exception abandons all that are left.
template <class Body>
int with_ours(int count, MPI_Request* requests, const char* function, Body body) {
  auto give_up = [&] {
    MPI_Comm comm = host.world;
    for (int i = count; i-- > 0;) {
      if (requests[i] == host.request_null) continue;
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

void attend(UserRequest& user) {
  if (!user.activity && user.request.is_send) the_messenger->attend(user.request);
}

// The code that has been raised for one that stays. Throws what waits throw, unless the request has ended by that
// error.
int wait_one(MPI_Request request) {
  UserRequest& user = *own(request);
  const auto involves = [&](int m) { return user.involves(m); };
  int code = MPI_SUCCESS;
  try {
    if (!user.activity) [[likely]] {
      if (!user.request.complete()) the_messenger->wait(user.request, involves);
      return code;
    }
    std::optional<fibers::Runner::Patience> patience;
    if (the_runner->busy() && !wait_policy().oversubscribed) patience.emplace(*the_runner);
    if (!user.complete()) wait_ours([&] { return user.complete(); }, involves, nullptr, "waiting for a request");
  } catch (const team::Died&) {
    if (!end_dead(1, &request, code) && code == MPI_SUCCESS) throw;
  }
  return code;
}

// Waits until `look(code)` returns true, which means that requests have been completed with that code.
template <class Look>
int wait_for_some(int count, MPI_Request* requests, const char* function, const char* doing, Look look) {
  return with_ours(count, requests, function, [&]() -> int {
    int code = MPI_SUCCESS;
    if (look(code)) return code;
    const auto polled = [&] {
      poll_ours();
      return look(code);
    };
    const auto pause = [] { processor::await_loads(); };
    if (waiting::spin(wait_policy().oversubscribed ? 1 : 200, polled, pause)) return code;
    bool there = false;
    auto involves = [&](int member) {
      for (int i = 0; i < count && !there; ++i)
        if (!is_complete(requests[i]) && own(requests[i])->involves(member)) return true;
      return false;
    };
    const auto done = [&] { return there || (there = look(code)); };
    const int pending = wait_for_living(count, requests, done, involves, nullptr, doing);
    return pending == MPI_SUCCESS ? code : pending;
  });
}

// A call that waits for some of an array: in the host by `wait`, or by `test(flag)`; else `of_both`, or `look(code)`.
template <class Wait, class Test, class OfBoth, class Look>
int wait_for_array(int count, MPI_Request* requests, const char* function, const char* doing, Wait wait, Test test,
                   OfBoth of_both, Look look) {
  return by_owner(
      count, requests, [&] { return wait_for_host(count > 0 && requests, wait, test); }, of_both,
      [&] { return wait_for_some(count, requests, function, doing, look); });
}

// The same for one that tests once.
template <class Test, class OfBoth, class Look>
int test_array(int count, const MPI_Request* requests, Test test, OfBoth of_both, Look look) {
  return by_owner(
      count, requests, [&] { return look_after_ours(), test(); }, of_both,
      [&] { return look_once(count, requests, look); });
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
    if (!user.complete() && !progress_others(1, request, code)) {
      *flag = 0;
      return code;
    }
  }
  const MPI_Comm comm = user.comm();
  *flag = 1;
  return report(comm, finish(request, status));
}

namespace {

// Finishes the next request of the array, which is complete or null.
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

}  // namespace

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  int next = 0;
  return by_owner(
      count, requests,
      [&] {
        return wait_for_host(
            count > 0 && requests, [&] { return host.Waitall(count, requests, statuses); },
            [&](int& flag) { return test_for_waitall(count, requests, next, flag, statuses); });
      },
      [&] { return waitall_mixed(count, requests, statuses); },
      [&] {
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
      });
}

namespace {

// Completes all requests, or none.
int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  int next = 0;
  auto all = [&] {
    while (next < count && is_complete(requests[next])) ++next;
    return next == count;
  };
  *flag = all();
  if (!*flag) {
    poll_ours();
    *flag = all();
  }
  int code = MPI_SUCCESS;
  if (!*flag && progress_others(count, requests, code)) *flag = all();
  if (!*flag) return code;
  Outcomes outcomes(statuses);
  for (int i = 0; i < count; ++i) finish_next(&requests[i], outcomes);
  return outcomes.report();
}

// The most frequent test in loops, in one pass: true if all are ours and under way, and nothing has progressed.
bool none_has_moved(int count, const MPI_Request* requests) {
  if (count <= 0 || !requests || !any_ever()) return false;
  for (int i = 0; i < count; ++i)
    if (!is_own(requests[i]) || own(requests[i])->complete()) return false;
  return !poll_ours() && !progress_others();
}

// Tests all once; *index is the one that is complete. False: none is yet.
bool test_any(int count, MPI_Request* requests, int* index, MPI_Status* status, int& code) {
  bool active = false;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == host.request_null) continue;
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
  *index = MPI_UNDEFINED;
  if (active) return false;
  set_empty_status(status);
  return true;
}

// Completes all that are complete. False: none is yet.
bool test_some(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses, int& code) {
  bool active = false;
  Outcomes outcomes(statuses);
  for (int i = 0; i < count; ++i) {
    if (requests[i] == host.request_null) continue;
    const UserRequest& user = *own(requests[i]);
    if (!user.complete()) {
      active = true;
    } else if (user.active) {
      indices[outcomes.count()] = i;
      const MPI_Comm comm = user.comm();
      outcomes.add(finish(&requests[i], outcomes.status()), comm);
    }
  }
  *out = outcomes.count();
  if (*out == 0 && active) return false;
  if (*out == 0) *out = MPI_UNDEFINED;
  code = outcomes.report();
  return true;
}

}  // namespace

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return by_owner(
      count, requests, [&] { return look_after_ours(), host.Testall(count, requests, flag, statuses); },
      [&] { return testall_mixed(count, requests, flag, statuses); },
      [&] { return test_all(count, requests, flag, statuses); });
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return wait_for_array(
      count, requests, "MPI_Waitany", "waiting for any of several requests",
      [&] { return host.Waitany(count, requests, index, status); },
      [&](int& flag) { return host.Testany(count, requests, index, &flag, status); },
      [&] { return waitany_mixed(count, requests, index, status); },
      [&](int& code) { return test_any(count, requests, index, status, code); });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (none_has_moved(count, requests)) {
    *index = MPI_UNDEFINED;
    *flag = 0;
    return MPI_SUCCESS;
  }
  return test_array(
      count, requests, [&] { return host.Testany(count, requests, index, flag, status); },
      [&] { return testany_mixed(count, requests, index, flag, status); },
      [&](int& code) { return *flag = test_any(count, requests, index, status, code); });
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
      [&] { return waitsome_mixed(count, requests, out, indices, statuses); },
      [&](int& code) { return test_some(count, requests, out, indices, statuses, code); });
}

int Testsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  if (none_has_moved(count, requests)) {
    *out = 0;
    return MPI_SUCCESS;
  }
  return test_array(
      count, requests, [&] { return host.Testsome(count, requests, out, indices, statuses); },
      [&] { return testsome_mixed(count, requests, out, indices, statuses); },
      [&](int& code) { return test_some(count, requests, out, indices, statuses, code); });
}

}  // namespace nearfield::mpi
