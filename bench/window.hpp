// Windows of each kind, made and used by one of two sets of functions: those that a program reaches, which are
// Nearfield's where it serves them, and the host's own.
//
// The host's own are read from its symbol table before the first call of MPI, since that leads to Nearfield afterwards
// (mpi/preload/preload.cpp). So a plain window is what it is without Nearfield, to the nanosecond, which matters where
// an operation takes some ten; and Nearfield never hears of it.
#pragma once
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bench/buffers.hpp"
#include "bench/ranks.hpp"
#include "mpi/preload/objects.hpp"

namespace bench {

// clang-format off
#define BENCH_WINDOW_FUNCTIONS(F) \
  F(Win_create) F(Win_allocate) F(Win_allocate_shared) F(Win_create_dynamic) F(Win_attach) F(Win_detach) F(Win_free) \
  F(Win_lock_all) F(Win_unlock_all) F(Win_flush) F(Win_lock) F(Win_unlock) F(Win_fence) F(Win_post) F(Win_start) \
  F(Win_complete) F(Win_wait) F(Put) F(Get) F(Accumulate) F(Get_accumulate) F(Fetch_and_op) F(Compare_and_swap)
// clang-format on

struct WindowFunctions {
#define F(name) decltype(&PMPI_##name) name;
  BENCH_WINDOW_FUNCTIONS(F)
#undef F
};

inline const WindowFunctions offered{
#define F(name) MPI_##name,
    BENCH_WINDOW_FUNCTIONS(F)
#undef F
};
inline WindowFunctions hosts_own;

// Before the first call of MPI.
inline void find_hosts_own() {
  hosts_own = offered;
  nearfield::preload::any_object([](const nearfield::preload::Object& object) {
    if (!object.find("PMPI_Win_create") || object.find("nearfield_version")) return false;
#define F(name) \
  if (void* const at = object.address_of("PMPI_" #name)) hosts_own.name = reinterpret_cast<decltype(&PMPI_##name)>(at);
    BENCH_WINDOW_FUNCTIONS(F)
#undef F
    return true;
  });
}

// The same number of bytes on every rank. Making and destroying it is collective.
class Window {
 public:
  // `kind`: create, allocate, shared or dynamic; where the memory is the program's, `as_without_heap` says whose
  // (Array).
  Window(const WindowFunctions& functions, const std::string& kind, std::size_t bytes, bool as_without_heap)
      : does(functions) {
    const auto size_of_it = MPI_Aint(bytes);
    if (kind == "create" || kind == "dynamic") {
      memory_.emplace(bytes / 8, as_without_heap);
      base_ = memory_->data();
    }
    if (kind == "create") does.Win_create(base_, size_of_it, 1, MPI_INFO_NULL, comm, &handle);
    else if (kind == "allocate") does.Win_allocate(size_of_it, 1, MPI_INFO_NULL, comm, &base_, &handle);
    else if (kind == "shared") does.Win_allocate_shared(size_of_it, 1, MPI_INFO_NULL, comm, &base_, &handle);
    else if (kind == "dynamic") make_dynamic(size_of_it);
    else {
      std::fprintf(stderr, "unknown kind of window %s\n", kind.c_str());
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  Window(const Window&) = delete;
  ~Window() {
    MPI_Barrier(comm);  // nobody detaches what others still use
    if (!addresses_.empty()) does.Win_detach(handle, base_);
    does.Win_free(&handle);
  }

  double* base() const { return base_; }
  // The displacement of a byte of `target`'s memory.
  MPI_Aint at(int target, std::size_t offset) const {
    return MPI_Aint(offset) + (addresses_.empty() ? 0 : addresses_[std::size_t(target)]);
  }

  const WindowFunctions& does;
  MPI_Win handle = MPI_WIN_NULL;

 private:
  void make_dynamic(MPI_Aint bytes) {
    does.Win_create_dynamic(MPI_INFO_NULL, comm, &handle);
    does.Win_attach(handle, base_, bytes);
    MPI_Aint own;
    MPI_Get_address(base_, &own);
    addresses_.resize(std::size_t(size));
    MPI_Allgather(&own, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, comm);
  }

  std::optional<Array> memory_;
  double* base_ = nullptr;
  std::vector<MPI_Aint> addresses_;  // of all ranks' memory, where it is attached
};

}  // namespace bench
