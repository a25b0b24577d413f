// Wait and Test of arrays that mix our requests with the host's: the host sees a copy of its own part (law 2 of
// docs/architecture.md), and both sides progress (law 3). Called by completing.cpp. Arrays of up to 64 requests need no
// memory; longer ones allocate it before anything is completed, so that a failure changes nothing.
#include <algorithm>
#include <memory>
#include <span>

#include "mpi/shim/p2p/completing.hpp"

namespace nearfield::mpi {
namespace {

// Scratch memory of a call, on the stack for short arrays. All of it is allocated before anything is completed.
template <class T>
class Scratch {
 public:
  explicit Scratch(int count) : long_(count > short_array ? new T[std::size_t(count)] : nullptr) {}
  T* data() { return long_ ? long_.get() : short_; }
  const T* data() const { return long_ ? long_.get() : short_; }
  T& operator[](int i) { return data()[i]; }
  const T& operator[](int i) const { return data()[i]; }

 private:
  static constexpr int short_array = 64;
  std::unique_ptr<T[]> long_;
  T short_[short_array];
};

// An array of requests, split. The host's part is copied, and written back after every call that may change it.
class Mixed {
 public:
  Mixed(int count, MPI_Request* requests)
      : requests_(requests),
        ours_(count),
        theirs_(count),
        which_(count),
        codes_(count),
        host_(count),
        host_status_(count) {
    for (int i = 0; i < count; ++i) {
      if (is_own(requests[i])) {
        ours_[our_count_++] = i;
      } else if (requests[i] != host.request_null) {
        theirs_[host_count_] = i;
        host_[host_count_++] = requests[i];
      }
    }
    note_host_request();
  }
  std::span<const int> ours() const { return {ours_.data(), std::size_t(our_count_)}; }
  std::span<const int> theirs() const { return {theirs_.data(), std::size_t(host_count_)}; }
  MPI_Request* host_requests() { return host_.data(); }
  MPI_Status* host_statuses() { return host_status_.data(); }
  int host_count() const { return host_count_; }
  int* which() { return which_.data(); }
  int* codes() { return codes_.data(); }
  void write_back() {
    for (int k = 0; k < host_count_; ++k) requests_[theirs_[k]] = host_[k];
  }
  UserRequest& at(int i) const { return *own(requests_[i]); }
  bool involves(int member) const {
    for (const int i : ours()) {
      if (is_own(requests_[i]) && !at(i).complete() && at(i).involves(member)) return true;
    }
    return false;
  }
  void abandon_all() {
    for (const int i : ours()) {
      if (!is_own(requests_[i])) continue;
      abandon(at(i));
    }
  }

 private:
  MPI_Request* requests_;
  int our_count_ = 0, host_count_ = 0;
  Scratch<int> ours_, theirs_, which_, codes_;
  Scratch<MPI_Request> host_;
  Scratch<MPI_Status> host_status_;
};

// Runs body(mixed); an exception of a wait abandons all our requests of the array.
template <class Body>
int with_both(int count, MPI_Request* requests, const char* function, Body body) {
  return guarded(host.world, function, [&]() -> int {
    Mixed mixed(count, requests);
    const MPI_Comm comm = mixed.at(mixed.ours()[0]).comm();
    try {
      return body(mixed);
    } catch (const team::Broken& broken) {
      mixed.abandon_all();
      return raise(comm, function, broken);
    }
  });
}

// pre: all are complete. Fills in statuses, errors and the user's array.
int finish_all(Mixed& mixed, MPI_Request* requests, int count, MPI_Status* statuses, int host_code) {
  mixed.write_back();
  bool bad = host_code != MPI_SUCCESS;
  MPI_Comm comm = host.world;
  int* const codes = mixed.codes();
  const int of_ours = int(mixed.ours().size());
  for (int k = 0; k < of_ours; ++k) {
    const int i = mixed.ours()[std::size_t(k)];
    const MPI_Comm its = mixed.at(i).comm();
    const int code = codes[k] = finish(&requests[i], nth(statuses, i));
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
      if (k < of_ours && mixed.ours()[std::size_t(k)] == i) {
        statuses[i].MPI_ERROR = codes[k];
        ++k;
      } else if (h < mixed.host_count() && mixed.theirs()[std::size_t(h)] == i) {
        if (host_code == MPI_SUCCESS) statuses[i].MPI_ERROR = MPI_SUCCESS;
        ++h;
      } else {
        set_empty_status(&statuses[i]);
        statuses[i].MPI_ERROR = MPI_SUCCESS;
      }
    }
  }
  if (!bad) return MPI_SUCCESS;
  if (host_code != MPI_SUCCESS && host_code != MPI_ERR_IN_STATUS) return host_code;
  return host_code == MPI_SUCCESS ? raise_code(comm, MPI_ERR_IN_STATUS) : host_code;
}

// Returns the first of ours that is active and complete; -1: none. `active`: set if one is active.
int first_complete(const Mixed& mixed, bool& active) {
  for (const int i : mixed.ours()) {
    const UserRequest& user = mixed.at(i);
    if (!user.active) continue;
    active = true;
    if (user.complete()) return i;
  }
  return -1;
}

// Tests all once; *index is the one that is complete. False: none is yet.
bool test_any(Mixed& mixed, MPI_Request* requests, int* index, MPI_Status* status, int& code, bool ask_host) {
  bool active = false;
  const int ours = first_complete(mixed, active);
  if (ours >= 0) {
    *index = ours;
    const MPI_Comm comm = mixed.at(ours).comm();
    code = finish(&requests[ours], status);
    if (code != MPI_SUCCESS) raise_code(comm, code);
    return true;
  }
  if (mixed.host_count() && (ask_host || !active)) {
    int flag = 0, which = MPI_UNDEFINED;
    code = host.Testany(mixed.host_count(), mixed.host_requests(), &which, &flag, status);
    mixed.write_back();
    if (code != MPI_SUCCESS || (flag && which != MPI_UNDEFINED)) {
      *index = which == MPI_UNDEFINED ? which : mixed.theirs()[std::size_t(which)];
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

// Completes all that are complete. False: none is yet.
bool test_some(Mixed& mixed, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses, int& code) {
  bool active = false, bad = false;
  MPI_Comm comm = host.world;
  int n = 0;
  int* const codes = mixed.codes();
  for (const int i : mixed.ours()) {
    if (!is_own(requests[i])) continue;
    UserRequest& user = mixed.at(i);
    if (!user.active) continue;
    active = true;
    if (!user.complete()) continue;
    const MPI_Comm its = user.comm();
    const int each = finish(&requests[i], nth(statuses, n));
    if (each != MPI_SUCCESS && !bad) {
      bad = true;
      comm = its;
    }
    codes[n] = each;
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
          codes[n] = code == MPI_ERR_IN_STATUS ? statuses[n].MPI_ERROR : MPI_SUCCESS;
        }
        indices[n++] = mixed.theirs()[std::size_t(which[k])];
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
    for (int k = 0; k < n; ++k) statuses[k].MPI_ERROR = codes[k];
  if (bad && code == MPI_SUCCESS) code = raise_code(comm, MPI_ERR_IN_STATUS);
  return true;
}

}  // namespace

int waitall_mixed(int count, MPI_Request* requests, MPI_Status* statuses) {
  return with_both(count, requests, "MPI_Waitall", [&](Mixed& mixed) -> int {
    std::size_t next = 0;
    int host_done = mixed.host_count() == 0, host_code = MPI_SUCCESS, host_next = 0;
    auto test_host = [&] {
      if (host_done) return;
      host_code =
          test_for_waitall(mixed.host_count(), mixed.host_requests(), host_next, host_done, mixed.host_statuses());
      if (host_code != MPI_SUCCESS) host_done = 1;
    };
    auto done = [&] {
      while (next < mixed.ours().size() && mixed.at(mixed.ours()[next]).complete()) ++next;
      return next == mixed.ours().size() && host_done;
    };
    test_host();
    if (!done()) {
      // The host's part is tested now and then while ours are awaited, and always once ours are complete.
      int round = 0;
      const int pending = wait_for_living(
          count, requests,
          [&] {
            if (!host_done && (next == mixed.ours().size() || ++round % 16 == 0)) test_host();
            return done();
          },
          [&](int m) { return mixed.involves(m); }, test_host, "waiting for all of several requests");
      if (pending != MPI_SUCCESS) return pending;
    }
    return finish_all(mixed, requests, count, statuses, host_code);
  });
}

int testall_mixed(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return with_both(count, requests, "MPI_Testall", [&](Mixed& mixed) -> int {
    poll_ours();
    const auto ours_are_complete = [&] {
      return std::ranges::all_of(mixed.ours(), [&](int i) { return mixed.at(i).complete(); });
    };
    bool all = ours_are_complete();
    int host_done = 1, host_code = MPI_SUCCESS, code = MPI_SUCCESS;
    if (!all && progress_others(count, requests, code)) all = ours_are_complete();
    if (all && mixed.host_count())
      host_code = host.Testall(mixed.host_count(), mixed.host_requests(), &host_done, mixed.host_statuses());
    *flag = all && (host_done || host_code != MPI_SUCCESS);
    if (!*flag) return code;
    return finish_all(mixed, requests, count, statuses, host_code);
  });
}

int waitany_mixed(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return with_both(count, requests, "MPI_Waitany", [&](Mixed& mixed) -> int {
    int code = MPI_SUCCESS, pending = MPI_SUCCESS, round = 0;
    bool found = test_any(mixed, requests, index, status, code, true);
    if (!found)
      pending = wait_for_living(
          count, requests,
          [&] { return found || (found = test_any(mixed, requests, index, status, code, ++round % 16 == 0)); },
          [&](int m) { return !found && mixed.involves(m); },
          [&] { found = found || test_any(mixed, requests, index, status, code, true); },
          "waiting for any of several requests");
    return pending == MPI_SUCCESS ? code : pending;
  });
}

int testany_mixed(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return with_both(count, requests, "MPI_Testany", [&](Mixed& mixed) -> int {
    *index = MPI_UNDEFINED;
    return look_once(count, requests,
                     [&](int& code) { return *flag = test_any(mixed, requests, index, status, code, true); });
  });
}

int waitsome_mixed(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  return with_both(count, requests, "MPI_Waitsome", [&](Mixed& mixed) -> int {
    int code = MPI_SUCCESS, pending = MPI_SUCCESS;
    bool found = test_some(mixed, requests, out, indices, statuses, code);
    if (!found)
      pending = wait_for_living(
          count, requests, [&] { return found || (found = test_some(mixed, requests, out, indices, statuses, code)); },
          [&](int m) { return !found && mixed.involves(m); }, nullptr, "waiting for some of several requests");
    return pending == MPI_SUCCESS ? code : pending;
  });
}

int testsome_mixed(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses) {
  return with_both(count, requests, "MPI_Testsome", [&](Mixed& mixed) -> int {
    return look_once(count, requests,
                     [&](int& code) { return test_some(mixed, requests, out, indices, statuses, code); });
  });
}

}  // namespace nearfield::mpi
