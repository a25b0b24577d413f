#include "mpi/shim/calls/called.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/hang_report/reporter.hpp"
#include "engine/hang_report/sites.hpp"
#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/calls/script.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/traits.hpp"

namespace nearfield::mpi::calls {

const PerThread<Calls, threads::at::calls> calls_of_thread;

namespace {

constinit std::atomic<bool> reporting{false};
constinit bool world_is_here = false;  // all ranks of the world are on this node; set before `reporting`
constinit std::atomic<unsigned> posts_taken{0};

// ---------------------------------------------------------------- what arguments mean

const FunctionTraits& roles_of(const CallFrame& call) { return traits_of(call.function); }

// Returns whether the call receives a message as well as sends one.
bool receives_too(const FunctionTraits& r) { return r.sends.partner >= 0 && r.receives.partner >= 0; }

hang_report::AwaitedKind kind_of(const FunctionTraits& r, bool receiving) {
  if (r.communicator < 0) return hang_report::AwaitedKind::none;
  if (r.partner() < 0) return hang_report::AwaitedKind::collective;
  if (r.sends.partner >= 0 && !receiving) return hang_report::AwaitedKind::send;
  return r.receives.type < 0 ? hang_report::AwaitedKind::probe : hang_report::AwaitedKind::receive;
}

template <class Handle>
Handle handle(const CallFrame& call, int at) {
  return from_word<Handle>(call.argument[at]);
}

// ---------------------------------------------------------------- what a call waits for

// Finds the communicator in this thread's cache alone, since the host must not be asked about an invalid handle.
const Communicator* known(MPI_Comm comm) {
  for (const CachedCommunicator& cached : *communicator_cache)
    // SYNC: communicator-epoch
    if (cached.comm == comm && cached.state && cached.epoch == communicator_epoch.load(std::memory_order_acquire))
      return cached.state;
  return nullptr;
}

void set_communicator(hang_report::Item& item, MPI_Comm comm, bool named) {
  const Communicator* const c = known(comm);
  if (c) item.context = c->context, item.size = c->size;
  if (comm == host.world) std::strcpy(item.communicator, "MPI_COMM_WORLD");
  else if (comm == host.self) std::strcpy(item.communicator, "MPI_COMM_SELF");
  else if (named && c) {
    char text[MPI_MAX_OBJECT_NAME + 1] = {};
    int length = 0;
    if (host.Comm_get_name(comm, text, &length) == MPI_SUCCESS)
      std::snprintf(item.communicator, sizeof item.communicator, "%s", text);
  }
}

void set_partner(hang_report::Item& item, MPI_Comm comm, std::uint64_t peer, std::uint64_t tag) {
  item.peer = wildcard_source(int(peer));
  item.tag = wildcard_tag(int(tag));
  if (item.peer == messages::any) item.peer = item.member = hang_report::Item::any;
  if (item.tag == messages::any) item.tag = hang_report::Item::any;
  const Communicator* const c = known(comm);
  if (!c || item.peer < 0 || item.peer >= c->size) return;
  const Side side = c->side.load(std::memory_order_acquire);  // SYNC: members-resolved
  int member = -1;
  if (side == Side::unknown && comm == host.world && world_is_here) member = item.peer;
  if (std::size_t(item.peer) < c->members.size() && (side == Side::near || side == Side::both))
    member = c->members[std::size_t(item.peer)];
  if (member >= 0) item.member = member;  // otherwise the partner is on another node
}

// `sized`: count and type are known to be valid, so the item gets a length. `named`: it gets the communicator's name.
hang_report::Item describe(const CallFrame& call, bool sized, bool named, bool receiving = false) {
  const FunctionTraits& r = roles_of(call);
  hang_report::Item item;
  item.function = std::uint16_t(call.function);
  item.kind = kind_of(r, receiving);
  if (r.communicator < 0) return item;
  const auto comm = handle<MPI_Comm>(call, r.communicator);
  set_communicator(item, comm, named);
  const bool collective = r.partner() < 0;
  const SideRoles& side = collective ? r.own_side() : r.sends.partner >= 0 && !receiving ? r.sends : r.receives;
  if (!collective) set_partner(item, comm, call.argument[side.partner], call.argument[side.tag]);
  // Lengths may differ among the ranks of a collective if receivers have a count for each sender.
  item.alike = !collective || !(r.neighbors || (r.receives.lists && !r.sends.lists));
  if (r.root >= 0) {
    const int root = int(call.argument[r.root]);
    item.root = root == MPI_ROOT        ? hang_report::Item::itself
                : root == MPI_PROC_NULL ? hang_report::Item::no_root
                                        : root;
  }
  const bool one_count = side.count >= 0 && !side.lists && !(collective && r.sends.lists);
  const bool in_place = collective && side.buffer >= 0 && r.sends.type != r.receives.type &&
                        handle<const void*>(call, side.buffer) == MPI_IN_PLACE;
  if (sized && one_count && !in_place) {
    MPI_Count size = 0;
    const auto of = handle<MPI_Datatype>(call, side.type);
    if (of != host.type_null && host.Type_size_x(of, &size) == MPI_SUCCESS)
      item.bytes = std::uint64_t(size) * call.argument[side.count];
  }
  return item;
}

hang_report::Item describe(const messages::Request& request, MPI_Comm comm, bool named) {
  hang_report::Item item;
  item.kind = request.is_send ? hang_report::AwaitedKind::send : hang_report::AwaitedKind::receive;
  item.function = std::uint16_t(request.is_send ? Function::Isend : Function::Irecv);
  set_communicator(item, comm, named);
  item.context = request.envelope.context;
  item.member = request.member < 0 ? hang_report::Item::any : int(request.member);
  item.tag = request.envelope.tag == messages::any ? hang_report::Item::any : request.envelope.tag;
  item.bytes = request.data.bytes;
  return item;
}

void add(hang_report::CallState& state, const hang_report::Item& item) {
  if (state.items < hang_report::most_items) state.item[state.items++] = item;
  ++state.pending;
}

void describe_requests(hang_report::CallState& state, const CallFrame& call, bool named) {
  const FunctionTraits& r = roles_of(call);
  const auto* const requests = handle<const MPI_Request*>(call, r.requests);
  const int count = r.request_count < 0 ? 1 : int(call.argument[r.request_count]);
  for (int i = 0; requests && i < count; ++i) {
    if (!is_own(requests[i])) continue;
    const UserRequest& user = *own(requests[i]);
    if (!user.active || user.common) continue;
    if (!user.activity) {
      if (!user.request.complete()) add(state, describe(user.request, user.comm(), named));
    } else if (!user.activity->finished()) {
      hang_report::Item item = user.activity->item;
      set_communicator(item, user.comm(), named);
      add(state, item);
    }
  }
}

// Shorten texts: a path keeps its end, a symbol its beginning.
template <std::size_t room>
void put_end(char (&into)[room], const std::string& text) {
  const bool all = text.size() < room;
  std::snprintf(into, room, "%s%s", all ? "" : "...", text.c_str() + (all ? 0 : text.size() - (room - 4)));
}
template <std::size_t room>
void put_beginning(char (&into)[room], const std::string& text) {
  const bool all = text.size() < room;
  std::snprintf(into, room, "%.*s%s", int(all ? room : room - 4), text.c_str(), all ? "" : "...");
}

// The post on the process's board that this thread has taken, until the thread ends.
struct Place {
  void take(Calls& calls) {
    auto& taken = posts_taken;
    board_ = &process_ever()->header().board;
    unsigned before = taken.load(std::memory_order_relaxed);
    do {
      number_ = unsigned(std::countr_one(before));
      if (number_ >= hang_report::posts) {
        board_->unseen.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    } while (!taken.compare_exchange_weak(before, before | 1u << number_, std::memory_order_relaxed));
    post = &board_->post[number_];
    calls.word = &post->call;
  }
  Place() = default;
  Place(const Place&) = delete;
  ~Place() {
    if (board_ && !post) board_->unseen.fetch_sub(1, std::memory_order_relaxed);
    if (!post) return;
    post->call.store(0, std::memory_order_relaxed);
    posts_taken.fetch_and(~(1u << number_), std::memory_order_relaxed);
  }

  hang_report::CallPost* post = nullptr;
  std::atomic<std::uint64_t> unseen{0};  // the word of a thread that has no post

 private:
  hang_report::CallBoard* board_ = nullptr;
  unsigned number_ = 0;
};
const PerThread<Place> place_of_thread;

hang_report::CallPost* fill_in(hang_report::CallState& state, bool fully) {
  const CallFrame* const call = calls_of_thread->innermost();
  if (!call || !calls_of_thread->word) return nullptr;
  state.call = calls_of_thread->word->load(std::memory_order_relaxed);
  const FunctionTraits& r = roles_of(*call);
  if (r.requests >= 0) {
    describe_requests(state, *call, fully);
  } else {
    add(state, describe(*call, true, fully));
    if (receives_too(r)) add(state, describe(*call, true, fully, true));
  }
  if (the_messenger)
    if (const auto lost = the_messenger->oldest_unexpected()) {
      state.lost = 1;
      state.lost_member = lost->member;
      state.lost_tag = lost->envelope.tag;
      state.lost_context = lost->envelope.context;
    }
  if (fully) {
    const hang_report::Site site = hang_report::site_of(calls_of_thread->call[0].site);
    put_end(state.object, site.object);
    state.offset = site.offset;
    put_beginning(state.symbol, site.symbol);
    put_end(state.script, script_line());
    state.has_site = true;
  }
  return place_of_thread->post;
}

}  // namespace

void take_post(Calls& calls) {
  calls.word = &place_of_thread->unseen;
  if (reporting.load(std::memory_order_acquire)) place_of_thread->take(calls);  // SYNC: hang-reporting
}

unsigned nest(Calls& calls, void* const* slot) {
  const unsigned noted = std::min(calls.depth, Calls::most);
  unsigned depth = noted;  // number of calls still under way
  while (depth && !(calls.call[depth - 1].slot > slot && *calls.call[depth - 1].slot == calls.call[depth - 1].site))
    --depth;
  if (depth == 0) {
    return_to({});
    if (calls.word)
      calls.word->store(calls.word->load(std::memory_order_relaxed) & ~std::uint64_t{1}, std::memory_order_relaxed);
    return 0;
  }
  if (depth < noted) {
    return_to(calls.call[depth].inside);
    calls.word->store(calls.call[depth].before, std::memory_order_relaxed);
  } else {
    depth = calls.depth;
  }
  if (depth < Calls::most) {
    calls.call[depth].before = calls.word->load(std::memory_order_relaxed);
    calls.call[depth].inside = *inside;
  }
  return depth;
}

hang_report::Item item_of_call() {
  const CallFrame* const call = calls_of_thread->innermost();
  return call ? describe(*call, false, false) : hang_report::Item{};
}

void note_host() {
  const CallFrame* const call = calls_of_thread->innermost();
  if (!call || !place_of_thread->post) return;
  hang_report::CallState state;
  state.call = place_of_thread->post->call.load(std::memory_order_relaxed);
  state.in_host = 1;
  if (roles_of(*call).communicator >= 0) add(state, describe(*call, false, false));
  place_of_thread->post->publish(state);
}

// A call that blocks in the host (its number is above own_functions) describes itself again, since the nested call has
// overwritten its description.
void go_on(Calls& calls, std::uint64_t word) {
  calls.word->store(word, std::memory_order_relaxed);
  if (std::uint16_t(calls.innermost()->function) > own_functions) note_host();
}

const char* name(unsigned function) {
  return function < std::size(function_names) ? function_names[function] : "an MPI function that is not known here";
}

void begin_hang_reports(team::Team* base) {
  team::Process& process = *process_ever();
  int rank = 0;
  host.Comm_rank(host.world, &rank);
  process.header().board.rank.store(rank + 1, std::memory_order_relaxed);
  std::vector<hang_report::NodeProcess> members;
  auto add_member = [&](const reach::Peer* peer, team::ProcessHeader& header) {
    members.push_back({peer, &header, &header.board});
  };
  for (reach::Peer* const peer : base ? base->peers() : std::span<reach::Peer* const>())
    add_member(peer, peer ? team::header_at(peer->segment.base()) : process.header());
  if (!base) add_member(nullptr, process.header());
  int size = 1;
  host.Comm_size(host.world, &size);
  world_is_here = std::size_t(size) == members.size();
  process.report_hangs_to(*new hang_report::HangReporter(std::move(members), process.settings().stall_seconds,
                                                         {name, fill_in}, process.contention()));
  reporting.store(true, std::memory_order_release);  // SYNC: hang-reporting
  Calls& calls = *calls_of_thread;
  const CallFrame* const call = calls.innermost();  // MPI_Init
  take_post(calls);
  if (call) calls.word->store(hang_report::next_call(0, unsigned(call->function)), std::memory_order_relaxed);
}

}  // namespace nearfield::mpi::calls
