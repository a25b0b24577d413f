#include "engine/messages/edges.hpp"

#include <algorithm>
#include <new>

#include "engine/base/out_of_memory.hpp"

namespace nearfield::messages {
namespace {

constexpr std::uint64_t short_bytes = 4096;  // as a rule these leave at once: no request is under way while we receive

void start(const Partners& partners, Request& request, bool sends, const Edge& edge, bool attended,
           Mode mode = Mode::standard) {
  request.is_send = sends;
  request.attended = attended;
  request.mode = mode;
  request.member = partners.members[std::size_t(edge.partner)];
  request.envelope = {partners.context, sends ? partners.me : edge.partner, edge.tag};
  request.data = edge.data;
  partners.messenger.start(request);
}

// Nothing where something was expected: the partner has refused.
void judge(const Request& r, EdgeError& error) {
  const bool refused = r.error == ErrorKind::none && !r.is_send && r.received == 0 && r.data.bytes;
  error.note({refused ? ErrorKind::broken : r.error, r.envelope.source, r.total, r.data.bytes});
}

}  // namespace

void transfer(const Partners& partners, bool sends, const Edge& edge, EdgeError& error) {
  Request request;
  try {
    start(partners, request, sends, edge, true);
    partners.messenger.wait(request);
  } catch (...) {
    partners.messenger.abandon(request);
    throw;
  }
  judge(request, error);
}

void send_short(const Partners& partners, const Edge& edge, EdgeError& error) {
  const Envelope envelope{partners.context, partners.me, edge.tag};
  if (!partners.messenger.send_at_once(partners.members[std::size_t(edge.partner)], envelope, edge.data))
    transfer(partners, true, edge, error);
}

void receive_short(const Partners& partners, const Edge& edge, EdgeError& error) {
  const Envelope wanted{partners.context, edge.partner, edge.tag};
  const std::int64_t bytes = partners.messenger.receive_at_once(partners.members[std::size_t(edge.partner)], wanted,
                                                                edge.data.address, edge.data.bytes);
  if (bytes < 0) transfer(partners, false, edge, error);
  else if (bytes == 0 && edge.data.bytes) error.note({ErrorKind::broken, edge.partner, 0, edge.data.bytes});
}

std::uint64_t Edges::bytes_to_all() const {
  std::uint64_t sum = 0;
  for (const Edge& edge : sends) sum += edge.data.bytes;
  return sum;
}

void Edges::copy_aside() {
  std::uint64_t all = 0;
  for (const Edge& edge : receives) all += edge.data.bytes;
  sends.reserve(receives.size());
  aside_.emplace(std::max<std::uint64_t>(all, 1));
  std::byte* at = aside_->data();
  if (!at) throw OutOfMemory();
  for (const Edge& edge : receives) {
    layout::gather(at, edge.data, 0, edge.data.bytes);
    sends.push_back({edge.partner, edge.tag, {at, edge.data.bytes, {}}});
    at += edge.data.bytes;
  }
}

void Edges::prepare(bool to_overlap) {
  for (const Edge& edge : sends) all_short_ &= edge.data.bytes <= short_bytes;
  later_.reserve(sends.size());
  if (!all_short_ || to_overlap) requests_ = std::make_unique<Request[]>(sends.size() + receives.size());
}

EdgeError Edges::run() {
  exchange_with_ourselves();
  if (requests_) all_later();
  else if (!send_at_once()) requests_.reset(new (std::nothrow) Request[sends.size() + receives.size()]);
  if (requests_) run_by_requests();
  else run_one_by_one();
  return error_;
}

void Edges::start() {
  exchange_with_ourselves();
  if (all_short_) send_at_once();
  else all_later();
  try {
    post(false);
  } catch (...) {
    abandon();
    throw;
  }
}

void Edges::renew() {
  used_ = 0;
  later_.clear();
  error_ = {};
  if (!aside_) return;
  aside_.reset();
  sends.clear();
}

bool Edges::complete() const {
  return std::all_of(&requests_[0], &requests_[used_], [](const Request& r) { return r.complete(); });
}

EdgeError Edges::outcome() {
  for (std::size_t i = 0; i < used_; ++i) judge(requests_[i], error_);
  return error_;
}

void Edges::abandon() {
  for (std::size_t i = 0; i < used_; ++i)
    if (!requests_[i].complete()) partners_.messenger.abandon(requests_[i]);
}

void Edges::end_with(int member) {
  for (std::size_t i = 0; i < used_; ++i) {
    Request& request = requests_[i];
    if (!request.complete() && request.member == member) partners_.messenger.abandon(request, ErrorKind::died);
  }
}

bool Edges::involves(int member) const {
  return std::any_of(&requests_[0], &requests_[used_],
                     [&](const Request& r) { return !r.complete() && r.member == member; });
}

// The n-th edge to ourselves is received as our n-th one from ourselves with the same tag.
void Edges::exchange_with_ourselves() {
  auto ours = [&](const Edge& edge, int tag) { return partners_.is_us(edge.partner) && edge.tag == tag; };
  for (auto from = sends.begin(); from != sends.end(); ++from) {
    if (!partners_.is_us(from->partner)) continue;
    auto n = std::count_if(sends.begin(), from, [&](const Edge& before) { return ours(before, from->tag); });
    const auto to = std::find_if(receives.begin(), receives.end(),
                                 [&](const Edge& edge) { return ours(edge, from->tag) && n-- == 0; });
    if (to == receives.end()) continue;
    if (from->data.bytes > to->data.bytes)
      error_.note({ErrorKind::truncated, from->partner, from->data.bytes, to->data.bytes});
    layout::copy(to->data, from->data, 0, std::min(from->data.bytes, to->data.bytes));
  }
}

void Edges::all_later() {
  for (std::size_t i = 0; i < sends.size(); ++i)
    if (!partners_.is_us(sends[i].partner) && sends[i].data.bytes) later_.push_back(i);
}

// Before a slower receiver, senders that receive nothing would fill copy buffers with the messages of whole calls. 16
// KiB then took 8 us, but 1.4 us from senders that wait until they are matched.
bool Edges::waits_to_be_met(const Edge& edge) const {
  Messenger& messenger = partners_.messenger;
  return one_way && edge.data.bytes > messenger.in_record() && !messenger.process().policy().oversubscribed;
}

// Whether all have left.
bool Edges::send_at_once() {
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const Edge& edge = sends[i];
    if (partners_.is_us(edge.partner) || !edge.data.bytes) continue;
    const Envelope envelope{partners_.context, partners_.me, edge.tag};
    // What follows a message that has to wait waits as well, or it would overtake it.
    const auto waits = [&](std::size_t before) { return sends[before].partner == edge.partner; };
    if (waits_to_be_met(edge) || std::any_of(later_.begin(), later_.end(), waits) ||
        !partners_.messenger.send_at_once(partners_.members[std::size_t(edge.partner)], envelope, edge.data))
      later_.push_back(i);
  }
  return later_.empty();
}

void Edges::post(bool attended) {
  for (const Edge& edge : receives)
    if (!partners_.is_us(edge.partner) && edge.data.bytes)
      messages::start(partners_, requests_[used_++], false, edge, attended);
  for (const std::size_t i : later_)
    messages::start(partners_, requests_[used_++], true, sends[i], attended,
                    waits_to_be_met(sends[i]) ? Mode::synchronous : Mode::standard);
}

// Waits only for some time, since its receiver may wait for what we do next; then lets the message leave.
void Edges::wait_to_be_met(Request& request) {
  constexpr std::uint64_t patience = 100'000;  // ns
  const std::uint64_t limit = waiting::nanoseconds() + patience;
  Messenger& messenger = partners_.messenger;
  if (request.data.bytes > messenger.process().settings().eager_bytes) return messenger.wait(request);
  messenger.wait_until(
      [&] { return request.complete() || (waiting::nanoseconds() > limit && messenger.leave(request)); },
      [&](int member) { return request.member == member; }, nullptr, "sending");
}

void Edges::run_by_requests() {
  FirstDeath death;
  try {
    post(true);
    for (std::size_t i = 0; i < used_; ++i) {
      Request& request = requests_[i];
      death.outlive(
          [&] {
            if (request.is_send && request.mode == Mode::synchronous) wait_to_be_met(request);
            else partners_.messenger.wait(request);
            judge(request, error_);
          },
          [&] { end_with(request.member); });
    }
  } catch (...) {
    abandon();
    throw;
  }
  death.report();
}

// Runs without requests: no send is left to start, or there is no memory. Peers take in what they are not waiting for.
void Edges::run_one_by_one() {
  FirstDeath death;
  const auto alone = [&](bool sends, const Edge& edge) {
    death.outlive([&] { transfer(partners_, sends, edge, error_); });
  };
  for (const std::size_t i : later_) alone(true, sends[i]);
  for (const Edge& edge : receives)
    if (!partners_.is_us(edge.partner) && edge.data.bytes) alone(false, edge);
  death.report();
}

void Edges::refuse() {
  messages::refuse(partners_, [&](bool to_send, VisitEdge visit) {
    for (const Edge& edge : to_send && !aside_ && !sends.empty() ? sends : receives)
      if (edge.data.bytes) visit(edge.partner, edge.tag);
  });
}

void refuse(const Partners& partners, FunctionRef<void(bool sends, VisitEdge visit)> each) {
  EdgeError error;
  FirstDeath death;
  for (const bool sends : {true, false})
    each(sends, [&](int partner, int tag) {
      if (!partners.is_us(partner)) death.outlive([&] { transfer(partners, sends, {partner, tag, {}}, error); });
    });
  death.report();
}

}  // namespace nearfield::messages
