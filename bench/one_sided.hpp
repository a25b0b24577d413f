// Operations on windows.
//
// What moves data or combines it (put, get, accumulate, get-accumulate, and fetch-and-op and compare-and-swap on a
// word) is completed by MPI_Win_flush each time, within one epoch of MPI_Win_lock_all for all calls. What synchronizes
// (fence, pscw, lock, lock-shared) comes with a put of the bytes, or alone where there are none.
//
// Whom a rank has for its target: "own", the next rank; "one", rank 0, itself included; "apart", rank 0 as well. Places
// are apart wherever MPI demands it; what combines goes to the same place under "one", to one of each rank's own under
// "apart". A window's owner reads what has been put as any other program would, but for put and lock without knowing
// whether it is the newest.
#pragma once
#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/messages.hpp"
#include "bench/own_work.hpp"
#include "bench/window.hpp"

namespace bench {

inline bool on_words(const std::string& name) { return name == "fetch-and-op" || name == "compare-and-swap"; }
inline bool accumulates(const std::string& name) { return name == "accumulate" || name == "get-accumulate"; }
inline bool synchronizes(const std::string& name) {
  return name == "fence" || name == "pscw" || name == "lock" || name == "lock-shared";
}
inline bool one_sided(const std::string& name) {
  return name == "put" || name == "get" || accumulates(name) || on_words(name) || synchronizes(name);
}

// Buffers are all the same to what has nothing in them.
inline bool without_data(const std::string& name, std::size_t bytes) {
  return on_words(name) || (synchronizes(name) && !bytes);
}

// Who accesses whose memory, and where in it.
class Access {
 public:
  Access(const std::string& name, const std::string& target, std::size_t bytes)
      : to_first_(target != "own"),
        gets_(name == "get"),
        in_halves_(name == "fence"),
        // No rank exposes its memory to itself.
        without_self_(name == "pscw" && to_first_),
        in_common_(to_first_ && (gets_ || (target == "one" && (accumulates(name) || on_words(name))))),
        moved_(on_words(name) ? 0 : bytes),
        stride_((std::max<std::size_t>(bytes, 1) + apart - 1) / apart * apart) {}

  int target() const { return to_first_ ? 0 : (rank + 1) % size; }
  bool accesses() const { return !without_self_ || rank; }
  // Whose target this rank is.
  std::vector<int> origins() const {
    if (!to_first_) return {(rank + size - 1) % size};
    std::vector<int> found;
    for (int r = without_self_; r < size && rank == 0; ++r) found.push_back(r);
    return found;
  }

  // Bytes from the beginning of the target's memory. After a fence a rank reads one half while the other is written.
  std::size_t place(unsigned turn) const {
    return own_half(turn) + (in_common_ || !to_first_ ? 0 : std::size_t(rank) * stride_);
  }
  std::size_t own_half(unsigned turn) const { return in_halves_ && turn % 2 ? half() : 0; }
  // Bytes of each rank's memory.
  std::size_t span() const { return half() * (in_halves_ ? 2 : 1); }

  // What this rank writes before a call, and reads after it.
  Traffic traffic() const {
    if (!moved_) return {0, 0};
    const std::size_t of_target = to_first_ && rank ? 0 : in_common_ || !to_first_ ? moved_ : half();
    const std::size_t of_origin = accesses() ? moved_ : 0;
    return gets_ ? Traffic{of_target, of_origin} : Traffic{of_origin, of_target};
  }

 private:
  static constexpr std::size_t apart = 128;  // processors fetch lines in pairs
  std::size_t half() const { return stride_ * std::size_t(to_first_ ? size : 1); }

  bool to_first_, gets_, in_halves_, without_self_, in_common_;
  std::size_t moved_, stride_;
};

// ---------------------------------------------------------------- on a window in an epoch

// Ends the epoch that an operation's calls have in common; the window goes with it.
using Epoch = std::shared_ptr<const Window>;

inline Epoch locked(std::unique_ptr<const Window> window) {
  window->does.Win_lock_all(0, window->handle);
  return {window.release(), [](const Window* w) {
            w->does.Win_unlock_all(w->handle);
            delete w;
          }};
}

inline Epoch fenced(std::unique_ptr<const Window> window) {
  window->does.Win_fence(MPI_MODE_NOPRECEDE, window->handle);
  return {window.release(), [](const Window* w) {
            w->does.Win_fence(MPI_MODE_NOSUCCEED, w->handle);
            delete w;
          }};
}

// `call` gets the functions, the window, the local buffers, the target and the displacement there.
template <class Call>
Operation flushed(Epoch window, const Access& access, Call call) {
  return surrounded(
      [=, target = access.target(), at = window->at(access.target(), access.place(0))](double* s, double* r) mutable {
        call(window->does, window->handle, s, r, target, at);
        window->does.Win_flush(target, window->handle);
      });
}

using Functions = const WindowFunctions&;

inline Operation move_of(const std::string& name, Epoch window, const Access& access, int count, MPI_Datatype type) {
  if (name == "put")
    return flushed(window, access, [=](Functions does, MPI_Win win, double* s, double*, int target, MPI_Aint at) {
      does.Put(s, count, type, target, at, count, type, win);
    });
  if (name == "get")
    return flushed(window, access, [=](Functions does, MPI_Win win, double*, double* r, int target, MPI_Aint at) {
      does.Get(r, count, type, target, at, count, type, win);
    });
  if (name == "accumulate")
    return flushed(window, access, [=](Functions does, MPI_Win win, double* s, double*, int target, MPI_Aint at) {
      does.Accumulate(s, count, type, target, at, count, type, MPI_SUM, win);
    });
  int width;
  MPI_Type_size(type, &width);
  return flushed(window, access,
                 [=, before = std::vector<std::byte>(std::size_t(count * width))](
                     Functions does, MPI_Win win, double* s, double*, int target, MPI_Aint at) mutable {
                   does.Get_accumulate(s, count, type, before.data(), count, type, target, at, count, type, MPI_SUM,
                                       win);
                 });
}

inline Operation word_of(const std::string& name, Epoch window, const Access& access) {
  const int target = access.target();
  const MPI_Aint at = window->at(target, access.place(0));
  if (name == "fetch-and-op")
    return [=, one = 1L, before = 0L](double*, double*, OwnWork&) mutable {
      window->does.Fetch_and_op(&one, &before, MPI_LONG, target, at, MPI_SUM, window->handle);
      window->does.Win_flush(target, window->handle);
    };
  // With what the last attempt has found: where ranks share the word, some fail.
  return [=, expected = 0L](double*, double*, OwnWork&) mutable {
    const long next = expected + 1;
    long found;
    window->does.Compare_and_swap(&next, &expected, &found, MPI_LONG, target, at, window->handle);
    window->does.Win_flush(target, window->handle);
    expected = found == expected ? next : found;
  };
}

// ---------------------------------------------------------------- what synchronizes

inline MPI_Group group_of(const std::vector<int>& ranks) {
  MPI_Group all, found;
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, int(ranks.size()), ranks.data(), &found);
  MPI_Group_free(&all);
  return found;
}

inline Operation fence_of(Epoch window, const Access& access, int bytes) {
  return [=, target = access.target(), turn = 0u](double* s, double* r, OwnWork& own) mutable {
    const WindowFunctions& does = window->does;
    own.write(s);
    if (bytes)
      does.Put(s, bytes, MPI_BYTE, target, window->at(target, access.place(turn)), bytes, MPI_BYTE, window->handle);
    does.Win_fence(0, window->handle);
    own.read(s, r + access.own_half(turn++) / 8);
  };
}

inline Operation pscw_of(Epoch window, const Access& access, int bytes) {
  const auto groups = std::shared_ptr<MPI_Group[]>(
      new MPI_Group[2]{group_of(access.origins()), group_of({access.target()})}, [](MPI_Group* both) {
        MPI_Group_free(&both[0]), MPI_Group_free(&both[1]);
        delete[] both;
      });
  return surrounded([=, exposes = !access.origins().empty(), accesses = access.accesses(), target = access.target(),
                     at = window->at(access.target(), access.place(0))](double* s, double*) {
    const WindowFunctions& does = window->does;
    if (exposes) does.Win_post(groups[0], 0, window->handle);
    if (accesses) {
      does.Win_start(groups[1], 0, window->handle);
      if (bytes) does.Put(s, bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, window->handle);
      does.Win_complete(window->handle);
    }
    if (exposes) does.Win_wait(window->handle);
  });
}

inline Operation lock_of(Epoch window, const Access& access, int bytes, int kind) {
  return surrounded(
      [=, target = access.target(), at = window->at(access.target(), access.place(0))](double* s, double*) {
        const WindowFunctions& does = window->does;
        does.Win_lock(kind, target, 0, window->handle);
        if (bytes) does.Put(s, bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, window->handle);
        does.Win_unlock(target, window->handle);
      });
}

// `count` elements of `type`; those of what synchronizes are bytes. Takes the window.
inline Operation window_operation(const std::string& name, std::unique_ptr<const Window> window, const Access& access,
                                  int count, MPI_Datatype type) {
  if (name == "fence") return fence_of(fenced(std::move(window)), access, count);
  if (name == "pscw") return pscw_of(std::move(window), access, count);
  if (synchronizes(name))
    return lock_of(std::move(window), access, count, name == "lock" ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED);
  const Epoch epoch = locked(std::move(window));
  return on_words(name) ? word_of(name, epoch, access) : move_of(name, epoch, access, count, type);
}

}  // namespace bench
