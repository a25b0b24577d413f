#include "mpi/shim/handles/in_use.hpp"

#include <atomic>
#include <map>
#include <mutex>

#include "engine/base/made.hpp"
#include "mpi/shim/handles/layouts.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

template <class Kind>
struct UsesOfHandles {
  struct Uses {
    unsigned count = 0;
    unsigned freed = 0;  // how often the program has freed it; MPI_Type_get_contents may have returned it several times
  };
  std::atomic<bool> any{false};  // without any use no lock is taken
  std::mutex mutex;
  std::map<typename Kind::Handle, Uses> uses;
};

namespace {

UsesOfHandles<Operator>& uses_of(Operator) { return made<UsesOfHandles<Operator>>(); }
UsesOfHandles<Datatype>& uses_of(Datatype) { return made<UsesOfHandles<Datatype>>(); }

int host_free(MPI_Op* op, Operator) { return host.Op_free(op); }
int host_free(MPI_Datatype* type, Datatype) {
  if (type) forget_sightings(*type);
  types_gone();
  return host.Type_free(type);
}

// Notes that a handle in use has been freed. Returns whether the host's free has to wait.
template <class Kind>
bool put_off(const typename Kind::Handle* handle) {
  UsesOfHandles<Kind>& all = uses_of(Kind{});
  if (!handle || !all.any.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(all.mutex);
  const auto found = all.uses.find(*handle);
  if (found == all.uses.end()) return false;
  ++found->second.freed;
  return true;
}

}  // namespace

template <class Kind>
InUse<Kind>::InUse(typename Kind::Handle handle) : handle_(handle) {
  UsesOfHandles<Kind>& all = uses_of(Kind{});
  const std::lock_guard lock(all.mutex);
  ++all.uses[handle].count;
  all.any.store(true, std::memory_order_relaxed);
}

template <class Kind>
InUse<Kind>::~InUse() {
  UsesOfHandles<Kind>& all = uses_of(Kind{});
  unsigned freed = 0;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.uses.find(handle_);
    if (--found->second.count) return;
    freed = found->second.freed;
    all.uses.erase(found);
  }
  for (; freed; --freed) {
    auto handle = handle_;
    host_free(&handle, Kind{});
  }
}

template class InUse<Operator>;
template class InUse<Datatype>;

int Op_free(MPI_Op* op) {
  if (!put_off<Operator>(op)) return host_free(op, Operator{});
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

int Type_free(MPI_Datatype* type) {
  if (!put_off<Datatype>(type)) return host_free(type, Datatype{});
  *type = host.type_null;
  return MPI_SUCCESS;
}

}  // namespace nearfield::mpi
