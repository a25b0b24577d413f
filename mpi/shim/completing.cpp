// Wait and Test in all their forms, over arrays that may mix our requests with the host's: the host sees a copy of its
// own part, and both sides progress.
#include <sched.h>

#include "mpi/shim/point.hpp"

namespace nearfield::mpi {
namespace {

// After a wait has thrown: nothing of the request is under way any more.
void abandon(UserRequest& user) {
  if (!user.active || user.nowhere || user.common) return;
  the_messenger->abandon(user.request);
  if (user.other) the_messenger->abandon(*user.other);
}

// An array of requests, split. The host's part is copied, and written back after every call that may change it.
class Mixed {
 public:
  Mixed(int count, MPI_Request* requests) : requests_(requests) {
    for (int i = 0; i < count; ++i) {
      if (is_own(requests[i])) {
        ours_.push_back(i);
      } else if (requests[i] != host.request_null) {
        theirs_.push_back(i);
        host_.push_back(requests[i]);
      }
    }
    host_status_.resize(host_.size() + 1);
    which_.resize(host_.size());
    codes_.reserve(std::size_t(count));  // nothing is allocated once requests have been completed
    if (!host_.empty()) note_host_request();
  }
  const std::vector<int>& ours() const { return ours_; }
  const std::vector<int>& theirs() const { return theirs_; }
  MPI_Request* host_requests() { return host_.data(); }
  MPI_Status* host_statuses() { return host_status_.data(); }
  int host_count() const { return int(host_.size()); }
  int* which() { return which_.data(); }
  std::vector<int>& codes() {
    codes_.clear();
    return codes_;
  }
  void write_back() {
    for (std::size_t k = 0; k < host_.size(); ++k) requests_[theirs_[k]] = host_[k];
  }
  UserRequest& at(int i) const { return *own(requests_[i]); }
  bool involves(int member) const {
    for (const int i : ours_) {
      if (is_own(requests_[i]) && !at(i).complete() && at(i).involves(member)) return true;
    }
    return false;
  }
  void abandon_all() {
    for (const int i : ours_) {
      if (!is_own(requests_[i])) continue;
      abandon(at(i));
    }
  }

 private:
  MPI_Request* requests_;
  std::vector<int> ours_, theirs_, which_, codes_;
  std::vector<MPI_Request> host_;
  std::vector<MPI_Status> host_status_;
};

// A complete request gives its status; then it goes, or rests if it is persistent. Its error class.
int finish(MPI_Request* request, MPI_Status* status) {
  UserRequest* const user = own(*request);
  if (user->receive_stage) [[unlikely]]
    store(*user);
  set_status(status, *user);
  const int landed = land(*user), trouble = outcome(*user), code = trouble == MPI_SUCCESS ? landed : trouble;
  if (user->common) {
    *request = host.request_null;
    return code;
  }
  user->active = false;
  if (!user->persistent) {
    *request = host.request_null;
    free_request(user);
  }
  return code;
}

// Before a look at the host's requests.
void look_after_ours() {
  if (!the_messenger) return;
  note_host_request();
  the_messenger->poll();
}

void wait_one(const UserRequest& user) {
  if (user.complete()) return;
  the_messenger->wait_until([&] { return user.complete(); }, [&](int m) { return user.involves(m); }, nullptr,
                            "waiting for a request");
}

// Runs body(mixed, communicator of our first); what a wait throws ends all requests of the array.
template <class Body>
int with_both(int count, MPI_Request* requests, const char* function, Body body) {
  return guarded(host.world, function, [&]() -> int {
    Mixed mixed(count, requests);
    const MPI_Comm comm = mixed.at(mixed.ours()[0]).comm;
    try {
      return body(mixed);
    } catch (const team::Broken& broken) {
      mixed.abandon_all();
      return raise(comm, function, broken);
    }
  });
}

// Only the host's requests: `wait`, or `test(flag)` until it sets the flag. Our messages move meanwhile: by this thread
// where they need it all the time or others need the CPU, else by a stand-in when a peer is blocked on us.
template <class Wait, class Test>
int wait_for_host(bool something, Wait wait, Test test) {
  if (!something || !the_messenger) return wait();
  note_host_request();
  int code = MPI_SUCCESS, flag = 0;
  auto done = [&] { return (code = test(flag)) != MPI_SUCCESS || flag; };
  if (the_messenger->busy() || the_messenger->node().policy().crowded) {
    wait_in_host(done);
    return code;
  }
  for (int i = 0; i < 200; ++i)
    if (done()) return code;
  const StandIn stand_in;
  return wait();
}

}  // namespace

int Wait(MPI_Request* request, MPI_Status* status) {
  if (!the_messenger || !request || !is_own(*request)) {
    return wait_for_host(
        request && *request != host.request_null, [&] { return host.Wait(request, status); },
        [&](int& flag) { return host.Test(request, &flag, status); });
  }
  UserRequest& user = *own(*request);
  const MPI_Comm comm = user.comm;
  try {
    wait_one(user);
  } catch (const team::Broken& broken) {
    abandon(user);
    finish(request, status);
    return raise(comm, "MPI_Wait", broken);
  }
  return report(comm, finish(request, status));
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!the_messenger || !request || !is_own(*request)) {
    look_after_ours();
    return host.Test(request, flag, status);
  }
  UserRequest& user = *own(*request);
  if (!user.complete()) {
    the_messenger->poll();
    if (!user.complete()) {
      look_elsewhere();
      *flag = 0;
      return MPI_SUCCESS;
    }
  }
  const MPI_Comm comm = user.comm;
  *flag = 1;
  return report(comm, finish(request, status));
}

namespace {

// All are complete: statuses, errors, and the array as the user gets it back.
int finish_all(Mixed& mixed, MPI_Request* requests, int count, MPI_Status* statuses, int host_code) {
  mixed.write_back();
  bool bad = host_code != MPI_SUCCESS;
  MPI_Comm comm = host.world;
  std::vector<int>& codes = mixed.codes();
  for (const int i : mixed.ours()) {
    UserRequest& user = mixed.at(i);
    const MPI_Comm its = user.comm;
    const int code = finish(&requests[i], nth(statuses, i));
    codes.push_back(code);
    if (code != MPI_SUCCESS && !bad) {
      bad = true;
      comm = its;
    }
  }
  if (statuses != MPI_STATUSES_IGNORE) {
    for (std::size_t k = 0; k < mixed.theirs().size(); ++k) {
      MPI_Status& status = statuses[mixed.theirs()[k]];
      status = mixed.host_statuses()[k];
    }
    for (int i = 0, k = 0, h = 0; i < count; ++i) {
      if (k < int(codes.size()) && mixed.ours()[k] == i) {
        if (bad) statuses[i].MPI_ERROR = codes[k];
        ++k;
      } else if (h < int(mixed.theirs().size()) && mixed.theirs()[h] == i) {
        if (bad && host_code == MPI_SUCCESS) statuses[i].MPI_ERROR = MPI_SUCCESS;
        ++h;
      } else {
        set_empty_status(&statuses[i]);
        if (bad) statuses[i].MPI_ERROR = MPI_SUCCESS;
      }
    }
  }
  if (!bad) return MPI_SUCCESS;
  if (host_code != MPI_SUCCESS && host_code != MPI_ERR_IN_STATUS) return host_code;
  return host_code == MPI_SUCCESS ? raise_code(comm, MPI_ERR_IN_STATUS) : host_code;
}

}  // namespace

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    return wait_for_host(
        count > 0 && requests, [&] { return host.Waitall(count, requests, statuses); },
        [&](int& flag) { return host.Testall(count, requests, &flag, statuses); });
  }
  return with_both(count, requests, "MPI_Waitall", [&](Mixed& mixed) -> int {
    std::size_t next = 0;
    int host_done = mixed.host_count() == 0, host_code = MPI_SUCCESS;
    auto test_host = [&] {
      if (host_done) return;
      host_code = host.Testall(mixed.host_count(), mixed.host_requests(), &host_done, mixed.host_statuses());
      if (host_code != MPI_SUCCESS) host_done = 1;
    };
    auto done = [&] {
      while (next < mixed.ours().size() && mixed.at(mixed.ours()[next]).complete()) ++next;
      return next == mixed.ours().size() && host_done;
    };
    test_host();
    if (!done()) {
      // The host's part is asked for now and then while ours are awaited, and without pause when it is the last.
      int round = 0;
      the_messenger->wait_until(
          [&] {
            if (!host_done && (next == mixed.ours().size() || ++round % 16 == 0)) test_host();
            return done();
          },
          [&](int m) { return mixed.involves(m); }, test_host, "waiting for all of several requests");
    }
    return finish_all(mixed, requests, count, statuses, host_code);
  });
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    look_after_ours();
    return host.Testall(count, requests, flag, statuses);
  }
  return with_both(count, requests, "MPI_Testall", [&](Mixed& mixed) -> int {
    the_messenger->poll();
    bool all = true;
    for (const int i : mixed.ours()) all &= mixed.at(i).complete();
    int host_done = 1, host_code = MPI_SUCCESS;
    if (!all) look_elsewhere();
    if (all && mixed.host_count())
      host_code = host.Testall(mixed.host_count(), mixed.host_requests(), &host_done, mixed.host_statuses());
    *flag = all && (host_done || host_code != MPI_SUCCESS);
    if (!*flag) return MPI_SUCCESS;
    return finish_all(mixed, requests, count, statuses, host_code);
  });
}

namespace {

// The first of ours that is active and complete; -1: none. `active`: whether any request is.
int first_complete(const Mixed& mixed, bool& active) {
  for (const int i : mixed.ours()) {
    const UserRequest& user = mixed.at(i);
    if (!user.active) continue;
    active = true;
    if (user.complete()) return i;
  }
  return -1;
}

// One look at all: *index is the one that is complete. False: none is, yet.
bool test_any(Mixed& mixed, MPI_Request* requests, int* index, MPI_Status* status, int& code, bool ask_host) {
  bool active = false;
  const int ours = first_complete(mixed, active);
  if (ours >= 0) {
    *index = ours;
    const MPI_Comm comm = mixed.at(ours).comm;
    code = finish(&requests[ours], status);
    if (code != MPI_SUCCESS) raise_code(comm, code);
    return true;
  }
  if (mixed.host_count() && (ask_host || !active)) {
    int flag = 0, which = MPI_UNDEFINED;
    code = host.Testany(mixed.host_count(), mixed.host_requests(), &which, &flag, status);
    mixed.write_back();
    if (code != MPI_SUCCESS || (flag && which != MPI_UNDEFINED)) {
      *index = which == MPI_UNDEFINED ? which : mixed.theirs()[which];
      return true;
    }
    if (!flag) active = true;
  }
  if (active) return false;
  *index = MPI_UNDEFINED;
  set_empty_status(status);
  code = MPI_SUCCESS;
  return true;
}

}  // namespace

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    return wait_for_host(
        count > 0 && requests, [&] { return host.Waitany(count, requests, index, status); },
        [&](int& flag) { return host.Testany(count, requests, index, &flag, status); });
  }
  return with_both(count, requests, "MPI_Waitany", [&](Mixed& mixed) -> int {
    int code = MPI_SUCCESS, round = 0;
    bool found = test_any(mixed, requests, index, status, code, true);
    if (!found)
      the_messenger->wait_until(
          [&] { return found || (found = test_any(mixed, requests, index, status, code, ++round % 16 == 0)); },
          [&](int m) { return !found && mixed.involves(m); },
          [&] { found = found || test_any(mixed, requests, index, status, code, true); },
          "waiting for any of several requests");
    return code;
  });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    look_after_ours();
    return host.Testany(count, requests, index, flag, status);
  }
  return with_both(count, requests, "MPI_Testany", [&](Mixed& mixed) -> int {
    the_messenger->poll();
    int code = MPI_SUCCESS;
    *index = MPI_UNDEFINED;
    *flag = test_any(mixed, requests, index, status, code, true);
    if (!*flag) look_elsewhere();
    return code;
  });
}

namespace {

// All that are complete. False: none is, yet.
bool test_some(Mixed& mixed, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses, int& code) {
  bool active = false, bad = false;
  MPI_Comm comm = host.world;
  int n = 0;
  std::vector<int>& codes = mixed.codes();
  for (const int i : mixed.ours()) {
    if (!is_own(requests[i])) continue;
    UserRequest& user = mixed.at(i);
    if (!user.active) continue;
    active = true;
    if (!user.complete()) continue;
    const MPI_Comm its = user.comm;
    const int each = finish(&requests[i], nth(statuses, n));
    if (each != MPI_SUCCESS && !bad) {
      bad = true;
      comm = its;
    }
    codes.push_back(each);
    indices[n++] = i;
  }
  code = MPI_SUCCESS;
  if (mixed.host_count()) {
    const int* const which = mixed.which();
    int some = 0;
    code = host.Testsome(mixed.host_count(), mixed.host_requests(), &some, mixed.which(), mixed.host_statuses());
    mixed.write_back();
    if (some != MPI_UNDEFINED) {
      active = true;
      for (int k = 0; k < some; ++k) {
        if (statuses != MPI_STATUSES_IGNORE) {
          statuses[n] = mixed.host_statuses()[k];
          codes.push_back(code == MPI_ERR_IN_STATUS ? statuses[n].MPI_ERROR : MPI_SUCCESS);
        }
        indices[n++] = mixed.theirs()[which[k]];
      }
    }
  }
  if (!active) {
    *out = MPI_UNDEFINED;
    return true;
  }
  *out = n;
  if (n == 0) return code != MPI_SUCCESS;
  if ((bad || code == MPI_ERR_IN_STATUS) && statuses != MPI_STATUSES_IGNORE)
    for (int k = 0; k < n && k < int(codes.size()); ++k) statuses[k].MPI_ERROR = codes[k];
  if (bad && code == MPI_SUCCESS) code = raise_code(comm, MPI_ERR_IN_STATUS);
  return true;
}

}  // namespace

int Waitsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    return wait_for_host(
        count > 0 && requests, [&] { return host.Waitsome(count, requests, out, indices, statuses); },
        [&](int& flag) {
          const int code = host.Testsome(count, requests, out, indices, statuses);
          flag = *out != 0;
          return code;
        });
  }
  return with_both(count, requests, "MPI_Waitsome", [&](Mixed& mixed) -> int {
    int code = MPI_SUCCESS;
    bool found = test_some(mixed, requests, out, indices, statuses, code);
    if (!found)
      the_messenger->wait_until(
          [&] { return found || (found = test_some(mixed, requests, out, indices, statuses, code)); },
          [&](int m) { return !found && mixed.involves(m); }, nullptr, "waiting for some of several requests");
    return code;
  });
}

int Testsome(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  if (count <= 0 || !requests || none_of_ours(count, requests)) {
    look_after_ours();
    return host.Testsome(count, requests, out, indices, statuses);
  }
  return with_both(count, requests, "MPI_Testsome", [&](Mixed& mixed) -> int {
    the_messenger->poll();
    int code = MPI_SUCCESS;
    if (!test_some(mixed, requests, out, indices, statuses, code)) look_elsewhere();
    return code;
  });
}

}  // namespace nearfield::mpi
