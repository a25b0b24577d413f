#include "mpi/shim/p2p/any_source.hpp"

#include <algorithm>
#include <list>
#include <mutex>

#include "engine/base/made.hpp"
#include "engine/base/out_of_memory.hpp"
#include "engine/processor/processor.h"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

namespace {

// A message to ourselves by the host, which withdraws a receive that is posted there.
struct Token {
  MPI_Comm comm;
  int rank, tag;
  MPI_Request sent, drain;  // drain: the receive for a token that no other posted receive may match any more
};

// The tokens with one tag in one communicator.
struct TokensOf final : messages::Tokens {
  TokensOf(MPI_Comm comm, int rank, int tag) : comm_(comm), rank_(rank), tag_(tag) {}
  bool are(MPI_Comm comm, int tag) const { return comm_ == comm && tag_ == tag; }
  void orphan(MPI_Comm comm) {
    if (comm_ == comm) comm_ = host.comm_null;
  }

 private:
  bool send() override;
  bool drain() override;
  MPI_Comm comm_;  // MPI_COMM_NULL: it has been freed
  const int rank_, tag_;
};

}  // namespace

// All any-source requests under way, in the order of their starts.
struct AnySourceRequests {
  std::mutex mutex;
  std::vector<AnySourceRequest*> all;
  std::vector<Token> tokens;             // under the messenger's lock
  std::atomic<int> tokens_under_way{0};  // their number
  std::mutex of_tags;                    // guards tokens_of_tags; no other lock is taken while it is held
  std::list<TokensOf> tokens_of_tags;

  void count_tokens(int more);
  void settle_tokens();
  bool send_token(MPI_Comm comm, int rank, int tag);
  bool drain_token(MPI_Comm comm, int tag);
  messages::Tokens* tokens_of(MPI_Comm comm, int tag);            // may be null
  messages::Tokens* tokens_of(MPI_Comm comm, int rank, int tag);  // made if needed; nullptr without memory
  void lose_token(MPI_Comm comm, int tag);
  bool look();
};

namespace {

AnySourceRequests& under_way_now() { return made<AnySourceRequests>(); }

// Polls of our messages per probe of the host. The side from which messages come is polled more often; a message from
// the other side waits a little longer. After a long wait the host is probed often again.
const PerThread<unsigned> patience{looks_at_host};
constexpr unsigned for_far = 8, for_near = 128, long_wait = 1024;
void came_from_far() { *patience = for_far; }
void came_from_near() { *patience = for_near; }

std::uint64_t bytes_of(const MPI_Status& status) {
  MPI_Count bytes = 0;
  return host.Get_elements_x(&status, host.byte, &bytes) == MPI_SUCCESS && bytes > 0 ? std::uint64_t(bytes) : 0;
}
// Leaves MPI_ERROR as it is: calls that complete several requests set it.
void copy(MPI_Status* to, MPI_Status from) {
  if (to == MPI_STATUS_IGNORE) return;
  from.MPI_ERROR = to->MPI_ERROR;
  *to = from;
}
bool is_hosts_turn(unsigned looks) { return looks % (looks < long_wait ? *patience : for_far) == 0; }

}  // namespace

const PerThread<bool> probe_there_first;

bool TokensOf::send() { return comm_ != host.comm_null && under_way_now().send_token(comm_, rank_, tag_); }
bool TokensOf::drain() { return comm_ == host.comm_null || under_way_now().drain_token(comm_, tag_); }

messages::Tokens* AnySourceRequests::tokens_of(MPI_Comm comm, int tag) {
  const std::lock_guard lock(of_tags);
  const auto found = std::ranges::find_if(tokens_of_tags, [&](const TokensOf& each) { return each.are(comm, tag); });
  return found == tokens_of_tags.end() ? nullptr : &*found;
}

messages::Tokens* AnySourceRequests::tokens_of(MPI_Comm comm, int rank, int tag) {
  if (messages::Tokens* const found = tokens_of(comm, tag)) return found;
  const std::lock_guard lock(of_tags);
  std::erase_if(tokens_of_tags, [](const TokensOf& each) { return each.idle(); });
  try {
    return &tokens_of_tags.emplace_back(comm, rank, tag);
  } catch (const OutOfMemory&) {
    return nullptr;
  }
}

void AnySourceRequests::lose_token(MPI_Comm comm, int tag) {
  if (messages::Tokens* const found = tokens_of(comm, tag)) found->lose();
}

void AnySourceRequests::count_tokens(int more) {
  tokens_under_way.fetch_add(more, std::memory_order_relaxed);
  any_source_requests.fetch_add(more, std::memory_order_relaxed);
}

bool AnySourceRequests::send_token(MPI_Comm comm, int rank, int tag) {
  try {
    tokens.reserve(tokens.size() + 1);
  } catch (const OutOfMemory&) {
    return false;
  }
  Token token{comm, rank, tag, host.request_null, host.request_null};
  if (host.Issend(nullptr, 0, host.byte, rank, tag, comm, &token.sent) != MPI_SUCCESS) return false;
  tokens.push_back(token);
  count_tokens(1);
  return true;
}

void AnySourceRequests::settle_tokens() {
  const std::size_t before = tokens.size();
  std::erase_if(tokens, [](Token& token) {
    int done = 0;
    if (host.Test(&token.sent, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) return false;
    if (token.drain == host.request_null) return true;
    host.Test(&token.drain, &done, MPI_STATUS_IGNORE);
    if (!done) {  // only tokens could match it
      host.Cancel(&token.drain);
      host.Wait(&token.drain, MPI_STATUS_IGNORE);
    }
    return true;
  });
  if (tokens.size() != before) count_tokens(int(tokens.size()) - int(before));
}

bool AnySourceRequests::drain_token(MPI_Comm comm, int tag) {
  settle_tokens();
  for (Token& token : tokens) {
    if (token.comm != comm || token.tag != tag || token.drain != host.request_null) continue;
    if (host.Irecv(nullptr, 0, host.byte, token.rank, tag, comm, &token.drain) == MPI_SUCCESS) return true;
    token.drain = host.request_null;
    return false;
  }
  return false;
}

// Returns whether the host has been called.
bool AnySourceRequests::look() {
  bool asked = false;
  MPI_Comm comm = host.comm_null;  // of the last probe that found nothing
  int tag = 0;
  if (tokens_under_way.load(std::memory_order_relaxed))
    the_messenger->take_out([&]() -> messages::Request* { return settle_tokens(), nullptr; });
  for (AnySourceRequest* each : all) {
    const bool is_here = each->state() == AnySourceRequest::State::here;
    if (each->comm_ == comm && each->tag_ == tag && is_here) continue;
    const AnySourceRequest::Look found = each->look();
    asked |= found != AnySourceRequest::Look::through;
    if (found == AnySourceRequest::Look::nothing && is_here) comm = each->comm_, tag = each->tag_;
  }
  return asked;
}

bool look_for_any_source() {
  const PollsHost polls;
  const std::unique_lock lock(under_way_now().mutex, std::try_to_lock);
  return lock.owns_lock() && under_way_now().look();
}

void post_any_source() {
  const std::lock_guard lock(under_way_now().mutex);
  for (AnySourceRequest* each : under_way_now().all) each->post_there();
}

void post_any_source_before(const Communicator& c, int tag) {
  const std::lock_guard lock(under_way_now().mutex);
  for (AnySourceRequest* each : under_way_now().all)
    if (each->overlaps(c.comm, tag)) {
      for (AnySourceRequest* one : under_way_now().all) one->post_there();
      return;
    }
}

void forget_any_source(MPI_Comm comm) {
  const std::lock_guard lock(under_way_now().mutex);
  for (AnySourceRequest* each : under_way_now().all)
    if (each->comm_ == comm) each->post_there();
  the_messenger->take_out([&]() -> messages::Request* {
    for (AnySourceRequest* each : under_way_now().all)
      if (each->comm_ == comm) each->orphan_ = true;
    const std::lock_guard tags(under_way_now().of_tags);
    for (TokensOf& each : under_way_now().tokens_of_tags) each.orphan(comm);
    return nullptr;
  });
}

AnySourceRequest::AnySourceRequest(std::unique_ptr<Message> near, void* buffer, MPI_Count count, MPI_Datatype type,
                                   int tag, const Communicator& c)
    : near_(std::move(near)),
      buffer_(buffer),
      count_(count),
      kept_(find_type(type) ? std::nullopt : std::optional<Committed>(std::in_place, type)),
      type_(kept_ && kept_->good() ? kept_->type() : type),
      tag_(tag),
      rank_(c.rank),
      comm_(c.comm),
      there_(host.request_null) {}

// Withdraws a request that is still posted, here or at the host.
AnySourceRequest::~AnySourceRequest() { abandon(); }

void AnySourceRequest::abandon() {
  if (near_->request.promised && near_->request.posted) under_way_now().lose_token(comm_, *near_->request.promised);
  near_->abandon();
  leave();
  if (there_ == host.request_null) return;
  host.Cancel(&there_);
  host.Request_free(&there_);
}

void AnySourceRequest::leave() {
  if (!listed_) return;
  listed_ = false;
  const std::lock_guard lock(under_way_now().mutex);
  std::erase(under_way_now().all, this);
  any_source_requests.fetch_sub(1, std::memory_order_relaxed);
}

static const PerThread<unsigned> starts;
int AnySourceRequest::begin() {
  state_.store(State::here, std::memory_order_relaxed);
  code_ = MPI_SUCCESS;
  looks_ = 0;
  // Probes the host now and then even if there are always messages of this node.
  if (++*starts % looks_at_host == 0 && any_source_requests.load(std::memory_order_relaxed) == 0) {
    int there = 0;
    MPI_Message message;
    MPI_Status status{};
    code_ = improbe_there(comm_, rank_, tag_, &there, &message, &status);
    if (code_ != MPI_SUCCESS) return code_;
    if (there) {
      near_->prepare();
      return take(message, status), MPI_SUCCESS;
    }
  }
  const std::lock_guard lock(under_way_now().mutex);  // requests must be posted in the same order here and at the host
  if (const int code = near_->begin(); code != MPI_SUCCESS || near_->completed()) return code;
  under_way_now().all.push_back(this);
  listed_ = true;
  any_source_requests.fetch_add(1, std::memory_order_seq_cst);  // SYNC: any-source-requests
  if (the_progress_thread->in_host()) post_there();             // another thread is inside the host
  return MPI_SUCCESS;
}

// Receives a message that a probe of the host has matched into this request's buffer.
void AnySourceRequest::take(MPI_Message message, const MPI_Status& status) {
  int done = 0;
  void* buffer = buffer_;
  MPI_Count count = count_;
  MPI_Datatype type = type_;
  if (const std::uint64_t bytes = bytes_of(status); bytes > near_->request.data.bytes) {
    longer_.reset(new (std::nothrow) std::byte[bytes]);
    if (longer_) buffer = longer_.get(), count = MPI_Count(bytes), type = host.byte;
  }
  code_ = at_host<Function::Imrecv_c>(buffer, count, type, &message, &there_);
  if (code_ == MPI_SUCCESS) code_ = host.Test(&there_, &done, &status_);
  done |= code_ != MPI_SUCCESS;
  if (done) there_ = host.request_null;
  came_from_far();
  state_.store(done ? State::done : State::matched, std::memory_order_release);  // SYNC: met
}

// Completes a message that was too long for the buffer as if it had come here, with the error of truncation.
void AnySourceRequest::hand_over() {
  messages::Request& r = near_->request;
  r.received = r.data.bytes;
  r.error = messages::ErrorKind::truncated;
  r.total = bytes_of(status_);
  r.envelope = {r.envelope.context, status_.MPI_SOURCE, status_.MPI_TAG};
  layout::scatter(r.data, 0, longer_.get(), r.received);
  longer_.reset();
  r.completed.store(true, std::memory_order_relaxed);  // its owner polls
  state_.store(State::here, std::memory_order_relaxed);
}

// Tests the receive that is posted at the host. `later`: it still is; `no`: the host has received its message, or
// cancelled it; `yes`: a token has withdrawn it, so it is promised to a message here with the token's tag.
messages::Elsewhere::Claim AnySourceRequest::resolve() {
  int done = 0, cancelled = 0;
  const int code = host.Test(&there_, &done, &status_);
  if (code == MPI_SUCCESS && !done) return Claim::later;
  there_ = host.request_null;
  if (code == MPI_SUCCESS && state() == State::cancelling) host.Test_cancelled(&status_, &cancelled);
  if (!cancelled && code == MPI_SUCCESS && status_.MPI_SOURCE == rank_) {
    near_->request.promised = status_.MPI_TAG;
    state_.store(State::here, std::memory_order_relaxed);
    return Claim::yes;
  }
  near_->request.elsewhere = nullptr;
  code_ = code;
  state_.store(cancelled ? State::cancelled : State::done, std::memory_order_release);  // SYNC: met
  return Claim::no;
}

messages::Elsewhere::Claim AnySourceRequest::claim(int tag, messages::Tokens*& asked) {
  std::optional<int>& promised = near_->request.promised;
  under_way_now().settle_tokens();
  Claim found = promised ? Claim::yes : resolve();
  if (found == Claim::later && orphan_) {  // the communicator is freed, so no message can come there any more
    host.Request_free(&there_);
    state_.store(State::here, std::memory_order_relaxed);
    near_->request.elsewhere = nullptr;
    return Claim::yes;
  }
  if (found == Claim::later && state() == State::posted) {
    if (messages::Tokens* const tokens = under_way_now().tokens_of(comm_, rank_, tag)) tokens->ask(asked);
    found = resolve();
  }
  if (found != Claim::yes) return found;
  if (*promised != tag) return Claim::other;
  if (messages::Tokens* const tokens = under_way_now().tokens_of(comm_, tag)) tokens->use(asked);
  near_->request.elsewhere = nullptr;
  return Claim::yes;
}

// pre: the lock of the list is held.
AnySourceRequest::Look AnySourceRequest::look() {
  if (!waits() || near_->completed()) return Look::through;
  Look found = Look::nothing;
  the_messenger->take_out([&]() -> messages::Request* {
    if (!near_->request.posted || near_->request.promised) return found = Look::through, nullptr;
    if (state() != State::here) {
      if (resolve() != Claim::no) return nullptr;
      found = Look::moved;
      return &near_->request;
    }
    int there = 0;
    MPI_Message message;
    MPI_Status status{};
    code_ = improbe_there(comm_, rank_, tag_, &there, &message, &status);
    if (code_ != MPI_SUCCESS) {
      state_.store(State::done, std::memory_order_release);  // SYNC: met
      return &near_->request;
    }
    if (!there) return nullptr;
    found = Look::moved;
    // The message may have come after the probes for requests before this one.
    AnySourceRequest& first = **std::ranges::find_if(under_way_now().all, [&](const AnySourceRequest* each) {
      return each == this || (each->waits_here() && each->overlaps(comm_, status.MPI_TAG));
    });
    first.take(message, status);
    return &first.near_->request;
  });
  return found;
}

// pre: the lock of the list is held.
void AnySourceRequest::post_there() {
  if (look() != Look::nothing || !waits_here()) return;
  the_messenger->take_out([&]() -> messages::Request* {
    if (!waits_here()) return nullptr;
    if (at_host<Function::Irecv_c>(buffer_, count_, type_, MPI_ANY_SOURCE, tag_, comm_, &there_) == MPI_SUCCESS) {
      near_->request.elsewhere = this;
      state_.store(State::posted, std::memory_order_relaxed);
    } else {
      there_ = host.request_null;
    }
    return nullptr;
  });
}

bool AnySourceRequest::completed() {
  auto through = [this] {
    const State now = state_.load(std::memory_order_acquire);  // SYNC: met
    if (now <= State::cancelling) return near_->completed();
    if (now == State::matched) {
      int done = 0;
      const int code = host.Test(&there_, &done, &status_);
      if (code == MPI_SUCCESS && !done) return false;
      there_ = host.request_null;
      code_ = code;
      state_.store(State::done, std::memory_order_relaxed);
    }
    if (longer_ && code_ == MPI_SUCCESS) hand_over();
    return true;
  };
  bool is = through();
  if (!is && waits() && is_hosts_turn(++looks_)) {
    look_for_any_source();
    is = through();
  }
  if (is && listed_) {
    if (waits()) came_from_near();
    leave();
  }
  return is;
}

int AnySourceRequest::outcome() {
  const State now = state_.load(std::memory_order_acquire);  // SYNC: met
  if (now <= State::cancelling) return near_->outcome();
  return now == State::cancelled ? MPI_SUCCESS : raised_by_host(code_);
}

void AnySourceRequest::status(MPI_Status* status) const {
  const State now = state_.load(std::memory_order_acquire);  // SYNC: met
  if (now <= State::cancelling) return near_->status(status);
  if (now == State::cancelled) return set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, true);
  copy(status, status_);
}

// The host may lose a message that comes at that moment, as it would without Nearfield.
void AnySourceRequest::cancel() {
  const std::lock_guard lock(under_way_now().mutex);
  the_messenger->take_out([&]() -> messages::Request* {
    if (!waits() || !near_->request.posted) return nullptr;
    if (near_->request.promised) return nullptr;  // its message is here
    if (state() == State::here) {
      state_.store(State::cancelled, std::memory_order_release);  // SYNC: met
      return &near_->request;
    }
    state_.store(State::cancelling, std::memory_order_relaxed);
    host.Cancel(&there_);
    return resolve() == Claim::no ? &near_->request : nullptr;
  });
}

int improbe_there(MPI_Comm comm, int rank, int tag, int* flag, MPI_Message* message, MPI_Status* status) {
  const PollsHost polls;
  MPI_Status found;
  const int code = host.Improbe(MPI_ANY_SOURCE, tag, comm, flag, message, &found);
  if (code != MPI_SUCCESS) return *flag = 0, code;
  if (*flag && found.MPI_SOURCE == rank) {  // a token
    *flag = 0;
    under_way_now().lose_token(comm, found.MPI_TAG);
    return host.Mrecv(nullptr, 0, host.byte, message, MPI_STATUS_IGNORE);
  }
  if (*flag && status != MPI_STATUS_IGNORE) *status = found;
  return MPI_SUCCESS;
}

int iprobe_there(const Communicator& c, int tag, int* flag, MPI_Status* status) {
  const PollsHost polls;
  MPI_Status found;
  const int code = host.Iprobe(MPI_ANY_SOURCE, tag, c.comm, flag, &found);
  if (code != MPI_SUCCESS || !*flag) return code;
  if (found.MPI_SOURCE == c.rank) {  // a token
    MPI_Message message;
    *flag = 0;
    return improbe_there(c.comm, c.rank, found.MPI_TAG, flag, &message, MPI_STATUS_IGNORE);
  }
  if (status != MPI_STATUS_IGNORE) *status = found;
  return MPI_SUCCESS;
}

static const PerThread<unsigned> receives;
int receive_from_anybody(const layout::Data& data, const Communicator& c, void* buffer, MPI_Count count,
                         MPI_Datatype type, int tag, MPI_Status* status) {
  int there = 0, code = MPI_SUCCESS;
  MPI_Message message;
  MPI_Status found{};
  auto look = [&] {
    code = improbe_there(c.comm, c.rank, tag, &there, &message, &found);
    return code != MPI_SUCCESS || there;
  };
  messages::Request request;
  bool met_there = ++*receives % looks_at_host == 0 && look();  // so that messages of other nodes have their turn
  if (!met_there) {
    prepare_receive(request, c, MPI_ANY_SOURCE, tag, data);
    the_messenger->start(request);
    auto ask = [&] {
      the_messenger->take_out([&]() -> messages::Request* {
        met_there = request.posted && look();
        return met_there ? &request : nullptr;
      });
    };
    unsigned looks = 0;
    try {
      the_messenger->wait_until(
          [&] {
            if (request.complete() || met_there) return true;
            if (is_hosts_turn(++looks)) ask();
            return met_there;
          },
          [&](int member) { return may_come_from(c, member); },
          [&] {
            if (!met_there && !request.complete()) ask();
          },
          "receiving from anybody");
    } catch (...) {
      the_messenger->abandon(request);
      throw;
    }
  }
  if (met_there) {
    came_from_far();
    if (code != MPI_SUCCESS) return code;
    if (const std::uint64_t bytes = bytes_of(found); bytes > data.bytes) [[unlikely]] {
      const std::unique_ptr<std::byte[]> longer(new std::byte[bytes]);
      code = blocking_host([&] {
        return at_host<Function::Mrecv_c>(longer.get(), MPI_Count(bytes), host.byte, &message, MPI_STATUS_IGNORE);
      });
      layout::scatter(data, 0, longer.get(), data.bytes);
      set_status(status, found.MPI_SOURCE, found.MPI_TAG, abi::counts_what_is_cut ? bytes : data.bytes, false);
      return code == MPI_SUCCESS ? report(c.comm, MPI_ERR_TRUNCATE) : code;
    }
    return blocking_host([&] { return at_host<Function::Mrecv_c>(buffer, count, type, &message, status); });
  }
  came_from_near();
  set_status(status, request.envelope.source, request.envelope.tag, counted(request), false);
  return report(c.comm, outcome(request));
}

bool SendReceive::completed() {
  for (MPI_Request& each : half) {
    if (each == host.request_null) continue;
    int done = 0;
    MPI_Status status{};
    const int code = Test(&each, &done, &status);
    if (code != MPI_SUCCESS) code_ = code;
    if (done && &each == &half[0]) status_ = status;
    if (done) continue;
    if (code == MPI_SUCCESS) return false;
    Cancel(&each);  // it stays under way, but the whole ends by this error
    Request_free(&each);
  }
  return true;
}

// Tests of the halves have raised the error.
int SendReceive::outcome() { return code_ == MPI_SUCCESS ? code_ : raised_by_host(code_); }

void SendReceive::status(MPI_Status* status) const { copy(status, status_); }

}  // namespace nearfield::mpi
