// The functions of include/nearfield.h. They check their arguments and turn exceptions into a status and a text.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/api/started_call.hpp"
#include "engine/orders/orders.hpp"

#define NF_EXPORT extern "C" __attribute__((visibility("default")))

namespace nearfield::api {
namespace {

using collectives::Collective;

constexpr std::size_t longest_text = 1024;
// Of this thread's last failure; allocated by the first.
constinit thread_local char* failure_text = nullptr;
constinit thread_local const char* last_algorithm = "";

int fail(nf_status status, const char* text) {
  state().interrupted.store(false, std::memory_order_relaxed);
  if (!failure_text) failure_text = static_cast<char*>(std::malloc(longest_text));
  if (failure_text) {
    std::strncpy(failure_text, text, longest_text - 1);
    failure_text[longest_text - 1] = 0;
  }
  return status;
}

// No exception may leave a function, since the frames above are C's.
template <class Body>
int guarded(Body body) {
  try {
    body();
    return NF_OK;
  } catch (const Failed& failed) {
    return fail(failed.status, failed.what());
  } catch (const team::Died& died) {
    return fail(NF_DIED, died.what());
  } catch (const std::bad_alloc&) {
    return fail(NF_NO_MEMORY, "out of memory");
  } catch (const std::exception& broken) {
    return fail(NF_BROKEN, broken.what());
  }
}

void expect(bool good, const char* what) {
  if (!good) [[unlikely]]
    throw Failed(NF_INVALID, what);
}

ProcessGroup& of(nf_group* group) {
  expect(group, "the group is NULL");
  return *reinterpret_cast<ProcessGroup*>(group);
}

void expect_rank(const ProcessGroup& group, int rank, const char* what) {
  if (rank < 0 || rank >= group.size()) [[unlikely]]
    throw Failed(NF_INVALID, std::string(what) + " " + std::to_string(rank) + " is not a rank of a group of " +
                                 std::to_string(group.size()));
}

void expect_tag(int tag) { expect(tag >= 0, "tags begin with 0"); }

StartedCall** where(nf_request** request) { return reinterpret_cast<StartedCall**>(request); }

// What is given or got by this rank must be there.
void expect_buffers(const ProcessGroup& group, const collectives::Call& call) {
  const collectives::Operation& operation = collectives::operation(call.collective);
  const int rank = group.rank(), size = group.size();
  if (!call.bytes) return;
  expect(call.send || !operation.gives.blocks(rank, size, call.root), "there is nothing to send: the buffer is NULL");
  expect(call.recv || !operation.gets.blocks(rank, size, call.root), "there is no room for the result: it is NULL");
}

void begin(ProcessGroup& group, CollectiveCall& what, const void* send, void* recv, int root, nf_request** request) {
  what.call.send = send;
  what.call.recv = recv;
  what.call.root = root;
  expect_rank(group, root, "the root");
  expect_buffers(group, what.call);
  last_algorithm = group.collective(what, where(request));
}

int reduce(Collective collective, nf_group* group, const void* send, void* recv, std::size_t count, nf_type type,
           nf_op op, int root, nf_request** request) {
  return guarded([&] {
    CollectiveCall what = reduction(collective, count, type, op);
    begin(of(group), what, send, recv, root, request);
  });
}

int move(Collective collective, nf_group* group, const void* send, void* recv, std::size_t count, nf_type type,
         int root, nf_request** request) {
  return guarded([&] {
    CollectiveCall what;
    what.call.collective = collective;
    what.call.bytes = count * bytes_of(type);
    begin(of(group), what, send, recv, root, request);
  });
}

// Frees the call once look() finds that it is done, or throws.
template <class Look>
void finish_if(nf_request** request, nf_message* message, Look look) {
  StartedCall* const call = *where(request);
  try {
    if (!look(*call)) return;
  } catch (...) {
    delete std::exchange(*where(request), nullptr);
    throw;
  }
  const std::unique_ptr<StartedCall> done(std::exchange(*where(request), nullptr));
  done->finish(message);
}

// The exchange of bytes among processes that do not share memory yet.
class Callback final : public team::Bootstrap {
 public:
  Callback(nf_exchange exchange, void* context, int size)
      : exchange_(exchange), context_(context), size_(std::size_t(std::max(size, 1))) {}
  bool allgather(const void* mine, void* all, std::size_t bytes) override {
    return exchange_(context_, mine, all, bytes) == 0;
  }
  std::uint32_t all_and(std::uint32_t bits) override {
    std::vector<std::uint32_t> every(size_);
    if (!allgather(&bits, every.data(), sizeof bits)) return 0;
    for (const std::uint32_t each : every) bits &= each;
    return bits;
  }
  void idle() override { yield(); }

 private:
  const nf_exchange exchange_;
  void* const context_;
  const std::size_t size_;
};

}  // namespace
}  // namespace nearfield::api

using namespace nearfield;
using namespace nearfield::api;

// ---------------------------------------------------------------- groups

NF_EXPORT int nf_join(int rank, int size, nf_exchange exchange, void* context, nf_group** group) {
  return guarded([&] {
    expect(exchange && group, "the exchange or the place for the group is NULL");
    Callback bootstrap(exchange, context, size);
    *group = reinterpret_cast<nf_group*>(ProcessGroup::join(rank, size, bootstrap).release());
  });
}

NF_EXPORT int nf_close(nf_group* group) {
  return guarded([&] {
    if (!group) return;
    if (state().forked.load(std::memory_order_relaxed))
      throw Failed(NF_INVALID, "the group belongs to the parent process");
    expect(!of(group).busy(), "calls with a request are outstanding: wait for them first");
    const std::lock_guard lock(state().joining);
    delete &of(group);
  });
}

NF_EXPORT int nf_rank(const nf_group* group) { return reinterpret_cast<const ProcessGroup*>(group)->rank(); }
NF_EXPORT int nf_size(const nf_group* group) { return reinterpret_cast<const ProcessGroup*>(group)->size(); }

namespace {
// Of a time that may be as long as that.
std::uint64_t in_nanoseconds(double seconds) {
  expect(seconds >= 0, "a time in seconds is 0 or more");
  return std::uint64_t(std::min(seconds, 1e9) * 1e9);
}
}  // namespace

NF_EXPORT int nf_set_timeout(nf_group* group, double seconds) {
  return guarded([&] { of(group).set_timeout(in_nanoseconds(seconds)); });
}

NF_EXPORT const char* nf_version(void) { return NEARFIELD_VERSION; }
NF_EXPORT const char* nf_error_text(void) { return failure_text ? failure_text : ""; }
NF_EXPORT const char* nf_status_name(int status) {
  static constexpr const char* names[] = {"no error",      "invalid argument", "unsupported", "unavailable",
                                          "out of memory", "timeout",          "died",        "broken",
                                          "truncated",     "interrupted"};
  return unsigned(status) < std::size(names) ? names[status] : "unknown";
}

NF_EXPORT const char* nf_last_algorithm(void) { return last_algorithm; }

NF_EXPORT int nf_set_look(void (*look)(void*, int*), void* context) {
  state().look_context.store(context, std::memory_order_relaxed);
  state().look.store(look, std::memory_order_relaxed);
  return NF_OK;
}

// ---------------------------------------------------------------- memory

NF_EXPORT int nf_alloc(size_t bytes, void** memory) {
  return guarded([&] {
    expect(memory, "the place for the address is NULL");
    const std::lock_guard lock(state().joining);
    team::Process& own = process();
    const auto offset = own.arena().allocate_untouched(std::max<std::size_t>(bytes, 1), 64,
                                                       memory::Component::alloc_mem, nullptr, false);
    if (!offset) throw Failed(NF_NO_MEMORY, offset.error().text);
    *memory = own.segment().base() + *offset;
  });
}

NF_EXPORT int nf_free(void* memory) {
  return guarded([&] {
    if (!memory) return;
    const std::lock_guard lock(state().joining);
    team::Process* const own = state().process;
    expect(own && own->segment().contains(memory, 1), "the memory is not nf_alloc's");
    own->arena().free(std::size_t(static_cast<std::byte*>(memory) - own->segment().base()));
  });
}

// ---------------------------------------------------------------- collectives

NF_EXPORT int nf_barrier(nf_group* group, nf_request** request) {
  return move(Collective::barrier, group, nullptr, nullptr, 0, NF_BYTE, 0, request);
}
NF_EXPORT int nf_broadcast(nf_group* group, void* buffer, size_t count, nf_type type, int root, nf_request** request) {
  return move(Collective::bcast, group, buffer, buffer, count, type, root, request);
}
NF_EXPORT int nf_allreduce(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_op op,
                           nf_request** request) {
  return reduce(Collective::allreduce, group, send, recv, count, type, op, 0, request);
}
NF_EXPORT int nf_reduce(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_op op, int root,
                        nf_request** request) {
  return reduce(Collective::reduce, group, send, recv, count, type, op, root, request);
}
NF_EXPORT int nf_reduce_scatter(nf_group* group, const void* send, void* recv, size_t count, nf_type type, nf_op op,
                                nf_request** request) {
  return reduce(Collective::reduce_scatter_block, group, send, recv, count, type, op, 0, request);
}
NF_EXPORT int nf_allgather(nf_group* group, const void* send, void* recv, size_t count, nf_type type,
                           nf_request** request) {
  return move(Collective::allgather, group, send, recv, count, type, 0, request);
}
NF_EXPORT int nf_gather(nf_group* group, const void* send, void* recv, size_t count, nf_type type, int root,
                        nf_request** request) {
  return move(Collective::gather, group, send, recv, count, type, root, request);
}
NF_EXPORT int nf_scatter(nf_group* group, const void* send, void* recv, size_t count, nf_type type, int root,
                         nf_request** request) {
  return move(Collective::scatter, group, send, recv, count, type, root, request);
}
NF_EXPORT int nf_alltoall(nf_group* group, const void* send, void* recv, size_t count, nf_type type,
                          nf_request** request) {
  return move(Collective::alltoall, group, send, recv, count, type, 0, request);
}

NF_EXPORT int nf_alltoallv(nf_group* group, const void* send, const size_t* send_bytes, const size_t* send_at,
                           void* recv, const size_t* recv_bytes, const size_t* recv_at, nf_request** request) {
  return guarded([&] {
    ProcessGroup& all = of(group);
    expect(send_bytes && send_at && recv_bytes && recv_at, "an array of lengths or places is NULL");
    auto* const from = static_cast<std::byte*>(const_cast<void*>(send));
    auto* const to = static_cast<std::byte*>(recv);
    all.exchange(
        [&](messages::Edges& edges) {
          const int p = all.size(), me = all.rank();
          for (int i = 0; i < p; ++i) {
            const int target = (me + i) % p, source = (me + p - i) % p;
            edges.sends.push_back({target, 0, {from + send_at[target], send_bytes[target], {}}});
            edges.receives.push_back({source, 0, {to + recv_at[source], recv_bytes[source], {}}});
          }
        },
        where(request));
  });
}

// ---------------------------------------------------------------- messages

NF_EXPORT int nf_send(nf_group* group, const void* data, size_t bytes, int target, int tag, nf_request** request) {
  return guarded([&] {
    expect_rank(of(group), target, "the target");
    expect_tag(tag);
    expect(data || !bytes, "the data is NULL");
    of(group).send(data, bytes, target, tag, where(request));
  });
}

NF_EXPORT int nf_receive(nf_group* group, void* room, size_t bytes, int source, int tag, nf_message* message,
                         nf_request** request) {
  return guarded([&] {
    if (source != NF_ANY) expect_rank(of(group), source, "the source");
    if (tag != NF_ANY) expect_tag(tag);
    expect(room || !bytes, "the room is NULL");
    of(group).receive(room, bytes, source, tag, message, where(request));
  });
}

// ---------------------------------------------------------------- requests

NF_EXPORT int nf_wait(nf_request** request, double seconds, nf_message* message) {
  return guarded([&] {
    expect(request, "the place of the request is NULL");
    const std::uint64_t limit = in_nanoseconds(seconds);
    if (!*request) return;
    finish_if(request, message, [limit](StartedCall& call) {
      call.wait(limit);
      return true;
    });
  });
}

NF_EXPORT int nf_test(nf_request** request, double seconds, int* done, nf_message* message) {
  return guarded([&] {
    expect(request && done, "the place of the request or of the answer is NULL");
    const std::uint64_t limit = in_nanoseconds(seconds);
    *done = 1;
    if (!*request) return;
    finish_if(request, message, [&](StartedCall& call) { return (*done = call.test(limit)) != 0; });
  });
}
