#include "mpi/shim/calls/called.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/roll/roll.hpp"
#include "engine/roll/sites.hpp"
#include "mpi/shim/calls/calling.hpp"
#include "mpi/shim/calls/script.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi::calls {

const PerThread<Calls, threads::at::calls> calls_of_thread;

namespace {

std::atomic<bool> rolling{false};
bool world_is_here = false;  // its ranks are the roll's members; before `rolling`

// ---------------------------------------------------------------- what arguments mean

// Types of arguments apart, where hosts have one type for several.
namespace tag {
struct Comm;
struct Datatype;
struct Request;
struct Other;
}  // namespace tag

enum class Sort : std::uint8_t { other, from, into, number, type, comm, request };
template <class T>
constexpr Sort sort = std::is_integral_v<T> ? Sort::number : Sort::other;
template <>
constexpr Sort sort<const void*> = Sort::from;
template <>
constexpr Sort sort<void*> = Sort::into;
template <>
constexpr Sort sort<tag::Datatype> = Sort::type;
template <>
constexpr Sort sort<tag::Comm> = Sort::comm;
template <>
constexpr Sort sort<tag::Request*> = Sort::request;

// Where in a function's arguments is what; -1: it has no such thing.
struct Meaning {
  roll::Kind kind = roll::Kind::none;
  std::int16_t comm = -1, type = -1, peer = -1, tag = -1, root = -1, buffer = -1;
  std::int16_t receive_type = -1, receive_peer = -1, receive_tag = -1;  // of a send and receive in one
  std::int16_t requests = -1;                                           // completes those, as many as argument 0 says
  bool one_request = false;
  bool alike = true;  // bytes are the same on all ranks
};

constexpr bool scatters(const char* name) {
  const char* const begins[] = {"Scatter", "Iscatter"};
  for (const char* begin : begins) {
    const char* at = name;
    while (*begin && *begin == *at) ++begin, ++at;
    if (!*begin && (*at != 'v')) return true;
  }
  return false;
}

// Ranks may give as much as they like.
constexpr bool differs(std::string_view name) {
  return name.find("atherv") != name.npos || name.find("eighbor") != name.npos;
}

template <class... Types>
constexpr Meaning meaning_of(const char* name, int (*)(Types...)) {
  constexpr int n = sizeof...(Types);
  const Sort sorts[n + 1] = {sort<Types>..., Sort::other};
  Meaning m;
  if (n > 0 && sorts[0] == Sort::request) {
    m.requests = 0, m.one_request = true;
    return m;
  }
  if (n > 1 && sorts[0] == Sort::number && sorts[1] == Sort::request) {
    m.requests = 1;
    return m;
  }
  int second_type = -1;
  for (int i = 0; i < n && m.comm < 0; ++i) {
    if (sorts[i] == Sort::comm) m.comm = std::int16_t(i);
    if (sorts[i] == Sort::type && m.type >= 0 && second_type < 0) second_type = i;
    if (sorts[i] == Sort::type && m.type < 0) m.type = std::int16_t(i);
    if ((sorts[i] == Sort::from || sorts[i] == Sort::into) && m.buffer < 0) m.buffer = std::int16_t(i);
  }
  if (m.comm < 0) return m;
  int numbers = 0;  // right before the communicator
  while (m.comm - numbers > 0 && sorts[m.comm - numbers - 1] == Sort::number) ++numbers;
  if (numbers == 2 && second_type >= 0) {  // Sendrecv
    m.kind = roll::Kind::send;
    m.peer = std::int16_t(m.type + 1), m.tag = std::int16_t(m.type + 2);
    m.receive_type = std::int16_t(second_type);
    m.receive_peer = std::int16_t(m.comm - 2), m.receive_tag = std::int16_t(m.comm - 1);
  } else if (numbers == 4 && m.type >= 0) {  // Sendrecv_replace
    m.kind = roll::Kind::send;
    m.peer = std::int16_t(m.comm - 4), m.tag = std::int16_t(m.comm - 3);
    m.receive_type = m.type;
    m.receive_peer = std::int16_t(m.comm - 2), m.receive_tag = std::int16_t(m.comm - 1);
  } else if (numbers == 2) {
    m.kind = m.type < 0 ? roll::Kind::probe : sorts[m.buffer] == Sort::from ? roll::Kind::send : roll::Kind::receive;
    if (name[0] == 'P' && name[1] == 'r' && name[2] == 'e') m.kind = roll::Kind::receive;  // Precv_init
    m.peer = std::int16_t(m.comm - 2), m.tag = std::int16_t(m.comm - 1);
  } else {
    m.kind = roll::Kind::collective;
    if (numbers == 1) m.root = std::int16_t(m.comm - 1);
    // What a rank gives is equal on all ranks, where it is one count; of a scatter, what it gets.
    if (scatters(name) && second_type >= 0) {
      m.type = std::int16_t(second_type);
      m.buffer = std::int16_t(second_type - 2);
    }
    if (m.type < 1 || sorts[m.type - 1] != Sort::number) m.type = -1;
    m.alike = !differs(name);
  }
  return m;
}

#define MPI_Comm tag::Comm
#define MPI_Datatype tag::Datatype
#define MPI_Request tag::Request
#define MPI_Op tag::Other
#define MPI_Info tag::Other
#define MPI_Group tag::Other
#define MPI_Errhandler tag::Other
#define MPI_Win tag::Other
#define MPI_Message tag::Other
constexpr Meaning meanings[] = {
    {},
#define FUNCTION(name, types) meaning_of(#name, static_cast<int(*) types>(nullptr)),
#define OF_HANDLES(result, name, types) {},
#include "mpi/each_function.def"
    {},
#define F(name, types) meaning_of(#name, static_cast<int(*) types>(nullptr)),
#define L(name, types) meaning_of(#name, static_cast<int(*) types>(nullptr)),
#include "mpi/shim/signatures.def"
#undef F
#undef L
};
#undef MPI_Comm
#undef MPI_Datatype
#undef MPI_Request
#undef MPI_Op
#undef MPI_Info
#undef MPI_Group
#undef MPI_Errhandler
#undef MPI_Win
#undef MPI_Message
static_assert(std::size(meanings) == std::size_t(Function::count));

constexpr const char* names[] = {
    "MPI",
#define NAME(name) "MPI_" #name,
#include "mpi/each_function.def"
    "MPI",
#define F(name, types) "MPI_" #name,
#define L(name, types) "MPI_" #name "_c",
#include "mpi/shim/signatures.def"
#undef F
#undef L
};
static_assert(std::size(names) == std::size_t(Function::count));

const Meaning& meaning(const Call& call) { return meanings[std::size_t(call.function)]; }

template <class Handle>
Handle handle(const Call& call, int at) {
  return from_word<Handle>(call.argument[at]);
}

// ---------------------------------------------------------------- what a call waits for

// The communicator as far as this thread has met it: the host is not asked about one that may be wrong.
const Communicator* known(MPI_Comm comm) {
  for (const CachedCommunicator& cached : *communicator_cache)
    if (cached.comm == comm && cached.state && cached.epoch == communicator_epoch.load(std::memory_order_acquire))
      return cached.state;
  return nullptr;
}

void set_communicator(roll::Item& item, MPI_Comm comm, bool named) {
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

void set_partner(roll::Item& item, MPI_Comm comm, std::uint64_t peer, std::uint64_t tag) {
  item.peer = wildcard_source(int(peer));
  item.tag = wildcard_tag(int(tag));
  if (item.peer == messages::any) item.peer = item.member = roll::Item::any;
  if (item.tag == messages::any) item.tag = roll::Item::any;
  const Communicator* const c = known(comm);
  if (!c || item.peer < 0 || item.peer >= c->size) return;
  const Side side = c->side.load(std::memory_order_acquire);  // pairs with resolve_members
  int member = -1;
  if (side == Side::unknown && comm == host.world && world_is_here) member = item.peer;
  if (std::size_t(item.peer) < c->members.size() && (side == Side::near || side == Side::both))
    member = c->members[std::size_t(item.peer)];
  if (member >= 0) item.member = member;  // others are on other nodes
}

// `sized`: the arguments are known to be good.
roll::Item describe(const Call& call, bool sized, bool named, bool receiving = false) {
  const Meaning& m = meaning(call);
  roll::Item item;
  item.function = std::uint16_t(call.function);
  item.kind = receiving ? roll::Kind::receive : m.kind;
  if (m.comm < 0) return item;
  const auto comm = handle<MPI_Comm>(call, m.comm);
  set_communicator(item, comm, named);
  const int peer = receiving ? m.receive_peer : m.peer, tag = receiving ? m.receive_tag : m.tag,
            type = receiving ? m.receive_type : m.type;
  if (peer >= 0) set_partner(item, comm, call.argument[peer], call.argument[tag]);
  item.alike = m.alike;
  if (m.root >= 0) {
    const int root = int(call.argument[m.root]);
    item.root = root == MPI_ROOT ? roll::Item::itself : root == MPI_PROC_NULL ? roll::Item::no_root : root;
  }
  const bool in_place = m.buffer >= 0 && handle<const void*>(call, m.buffer) == MPI_IN_PLACE && m.type != 3;
  if (sized && type >= 1 && !in_place) {
    MPI_Count size = 0;
    const auto of = handle<MPI_Datatype>(call, type);
    if (of != host.type_null && host.Type_size_x(of, &size) == MPI_SUCCESS)
      item.bytes = std::uint64_t(size) * call.argument[type - 1];
  }
  return item;
}

roll::Item describe(const messages::Request& request, MPI_Comm comm, bool named) {
  roll::Item item;
  item.kind = request.is_send ? roll::Kind::send : roll::Kind::receive;
  item.function = std::uint16_t(request.is_send ? Function::Isend : Function::Irecv);
  set_communicator(item, comm, named);
  item.context = request.envelope.context;
  item.member = request.member < 0 ? roll::Item::any : int(request.member);
  item.tag = request.envelope.tag == messages::any ? roll::Item::any : request.envelope.tag;
  item.bytes = request.data.bytes;
  return item;
}

void add(roll::Told& told, const roll::Item& item) {
  if (told.items < roll::most_items) told.item[told.items++] = item;
  ++told.pending;
}

void describe_requests(roll::Told& told, const Call& call, bool named) {
  const Meaning& m = meaning(call);
  const auto* const requests = handle<const MPI_Request*>(call, m.requests);
  const int count = m.one_request ? 1 : int(call.argument[0]);
  for (int i = 0; requests && i < count; ++i) {
    if (!is_own(requests[i])) continue;
    const UserRequest& user = *own(requests[i]);
    if (!user.active || user.common) continue;
    if (!user.activity) {
      if (!user.request.complete()) add(told, describe(user.request, user.comm(), named));
    } else if (!user.activity->finished()) {
      roll::Item item = user.activity->told;
      set_communicator(item, user.comm(), named);
      add(told, item);
    }
  }
}

// Of what is too long; a path's end says more, a symbol's beginning.
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

// A post of the process's, until the thread ends.
struct Place {
  void take(Calls& calls) {
    static std::atomic<unsigned> taken{0};
    taken_ = &taken;
    board_ = &node_ever()->header().board;
    unsigned before = taken.load(std::memory_order_relaxed);
    do {
      number_ = unsigned(std::countr_one(before));
      if (number_ >= roll::posts) {
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
    taken_->fetch_and(~(1u << number_), std::memory_order_relaxed);
  }

  roll::Post* post = nullptr;
  std::atomic<std::uint64_t> unseen{0};  // the word of a thread that has no post

 private:
  roll::Board* board_ = nullptr;
  std::atomic<unsigned>* taken_ = nullptr;
  unsigned number_ = 0;
};
const PerThread<Place> place_of_thread;

roll::Post* tell(roll::Told& told, bool fully) {
  const Call* const call = calls_of_thread->innermost();
  if (!call || !calls_of_thread->word) return nullptr;
  told.call = calls_of_thread->word->load(std::memory_order_relaxed);
  const Meaning& m = meaning(*call);
  if (m.requests >= 0) {
    describe_requests(told, *call, fully);
  } else {
    add(told, describe(*call, true, fully));
    if (m.receive_type >= 0) add(told, describe(*call, true, fully, true));
  }
  if (the_messenger)
    if (const auto lost = the_messenger->oldest_unexpected()) {
      told.lost = 1;
      told.lost_member = lost->member;
      told.lost_tag = lost->envelope.tag;
      told.lost_context = lost->envelope.context;
    }
  if (fully) {
    const roll::Site site = roll::site_of(calls_of_thread->call[0].site);
    put_end(told.object, site.object);
    told.offset = site.offset;
    put_beginning(told.symbol, site.symbol);
    put_end(told.script, script_line());
    told.has_site = true;
  }
  return place_of_thread->post;
}

}  // namespace

void take_post(Calls& calls) {
  calls.word = &place_of_thread->unseen;
  if (rolling.load(std::memory_order_acquire)) place_of_thread->take(calls);  // pairs with begin_roll
}

unsigned nest(Calls& calls, void* const* slot) {
  const unsigned noted = std::min(calls.depth, Calls::most);
  unsigned depth = noted;  // those that are under way
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

roll::Item item_of_call() {
  const Call* const call = calls_of_thread->innermost();
  return call ? describe(*call, false, false) : roll::Item{};
}

void note_host() {
  const Call* const call = calls_of_thread->innermost();
  if (!call || !place_of_thread->post) return;
  roll::Told told;
  told.call = place_of_thread->post->call.load(std::memory_order_relaxed);
  told.in_host = 1;
  if (meaning(*call).comm >= 0) add(told, describe(*call, false, false));
  place_of_thread->post->tell(told);
}

// What blocks in the host calls others there, which tell of themselves.
void go_on(Calls& calls, std::uint64_t word) {
  calls.word->store(word, std::memory_order_relaxed);
  if (calls.innermost()->function > Function::blocking_ones) note_host();
}

const char* name(unsigned function) {
  return function < std::size(names) ? names[function] : "an MPI function that is not known here";
}

void begin_roll(team::Team* base) {
  team::Node& node = *node_ever();
  int rank = 0;
  host.Comm_rank(host.world, &rank);
  node.header().board.rank.store(rank + 1, std::memory_order_relaxed);
  std::vector<roll::NodeProcess> members;
  auto add_member = [&](const reach::Peer* peer, team::ProcessHeader& header) {
    members.push_back({peer, &header, &header.board});
  };
  for (reach::Peer* const peer : base ? base->peers() : std::span<reach::Peer* const>())
    add_member(peer, peer ? team::header_at(peer->segment.base()) : node.header());
  if (!base) add_member(nullptr, node.header());
  int size = 1;
  host.Comm_size(host.world, &size);
  world_is_here = std::size_t(size) == members.size();
  node.roll = new roll::Roll(std::move(members), node.settings().stall_seconds, {name, tell});
  rolling.store(true, std::memory_order_release);  // pairs with take_post
  Calls& calls = *calls_of_thread;
  const Call* const call = calls.innermost();  // MPI_Init
  take_post(calls);
  if (call) calls.word->store(roll::next_call(0, unsigned(call->function)), std::memory_order_relaxed);
}

}  // namespace nearfield::mpi::calls
