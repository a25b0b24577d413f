#include "engine/messages/pairwise.hpp"

#include <algorithm>
#include <new>

#include "engine/orders/orders.hpp"

namespace nearfield::messages {
namespace {

constexpr int tag = 0;
constexpr std::uint64_t short_bytes = 4096;  // as a rule these leave at once: no request is under way while we receive

// visit(partner) for all but ourselves, in the order in which we send.
template <class Visit>
void each_target(const Partners& partners, Visit visit) {
  orders::each_partner(orders::Order::rotated, partners.count(), partners.count(), partners.me, [&](int to) {
    if (to != partners.me) visit(to);
  });
}

// The same in the order in which they send to us.
template <class Visit>
void each_source(const Partners& partners, Visit visit) {
  const int p = partners.count();
  each_target(partners, [&](int to) { visit((2 * partners.me - to + p) % p); });
}

void start(const Partners& partners, Request& request, bool sends, int partner, const layout::Data& data) {
  request.is_send = sends;
  request.member = partners.members[std::size_t(partner)];
  request.envelope = {partners.context, sends ? partners.me : partner, tag};
  request.data = data;
  partners.messenger.start(request);
}

// Nothing where something was expected: the partner has refused.
void judge(const Request& r, Trouble& trouble) {
  if (trouble != Trouble::none) return;
  trouble = r.trouble;
  if (trouble == Trouble::none && !r.is_send && r.received == 0 && r.data.bytes) trouble = Trouble::broken;
}

void transfer(const Partners& partners, bool sends, int partner, const layout::Data& data, Trouble& trouble) {
  Request request;
  try {
    start(partners, request, sends, partner, data);
    partners.messenger.wait(request);
  } catch (...) {
    partners.messenger.abandon(request);
    throw;
  }
  judge(request, trouble);
}

}  // namespace

Pairwise::Pairwise(const Partners& partners) : partners_(partners), pairs_(partners.members.size()) {}

std::uint64_t Pairwise::bytes_to_all() const {
  std::uint64_t sum = 0;
  for (const Pair& pair : pairs_) sum += pair.to.bytes;
  return sum;
}

void Pairwise::copy_aside() {
  std::uint64_t all = 0;
  for (const Pair& pair : pairs_) all += pair.from.bytes;
  aside_.emplace(std::max<std::uint64_t>(all, 1));
  std::byte* at = aside_->data();
  if (!at) throw std::bad_alloc();
  for (Pair& pair : pairs_) {
    layout::gather(at, pair.from, 0, pair.from.bytes);
    pair.to = {at, pair.from.bytes, {}};
    at += pair.from.bytes;
  }
}

void Pairwise::prepare() {
  later_.reserve(pairs_.size());
  const bool short_ones = std::ranges::all_of(pairs_, [](const Pair& pair) { return pair.to.bytes <= short_bytes; });
  if (!short_ones) requests_ = std::make_unique<Request[]>(2 * pairs_.size());
}

Trouble Pairwise::run() {
  Trouble trouble = Trouble::none;
  exchange_with_ourselves(trouble);
  if (requests_) each_target(partners_, [&](int to) { later_.push_back(to); });
  else if (!send_at_once()) requests_.reset(new (std::nothrow) Request[2 * pairs_.size()]);
  if (requests_) run_by_requests(trouble);
  else run_one_by_one(trouble);
  return trouble;
}

void Pairwise::exchange_with_ourselves(Trouble& trouble) const {
  const auto& [to, from] = pairs_[std::size_t(partners_.me)];
  if (to.bytes > from.bytes) trouble = Trouble::truncated;
  layout::copy(from, to, 0, std::min(to.bytes, from.bytes));
}

// Whether all have left.
bool Pairwise::send_at_once() {
  each_target(partners_, [&](int to) {
    const layout::Data& data = pairs_[std::size_t(to)].to;
    const int member = partners_.members[std::size_t(to)];
    const Envelope envelope{partners_.context, partners_.me, tag};
    if (data.bytes && !partners_.messenger.send_at_once(member, envelope, data)) later_.push_back(to);
  });
  return later_.empty();
}

void Pairwise::run_by_requests(Trouble& trouble) {
  std::size_t used = 0;
  auto start_one = [&](bool sends, int partner, const layout::Data& data) {
    if (data.bytes) start(partners_, requests_[used++], sends, partner, data);
  };
  try {
    each_source(partners_, [&](int from) { start_one(false, from, pairs_[std::size_t(from)].from); });
    for (const int to : later_) start_one(true, to, pairs_[std::size_t(to)].to);
    for (std::size_t i = 0; i < used; ++i) {
      partners_.messenger.wait(requests_[i]);
      judge(requests_[i], trouble);
    }
  } catch (...) {
    for (std::size_t i = 0; i < used; ++i)
      if (!requests_[i].complete()) partners_.messenger.abandon(requests_[i]);
    throw;
  }
}

// Without requests, or with no send left to start. Peers take in what they are not waiting for.
void Pairwise::run_one_by_one(Trouble& trouble) const {
  for (const int to : later_) transfer(partners_, true, to, pairs_[std::size_t(to)].to, trouble);
  each_source(partners_, [&](int from) {
    if (const layout::Data& data = pairs_[std::size_t(from)].from; data.bytes)
      transfer(partners_, false, from, data, trouble);
  });
}

void refuse(const Partners& partners, FunctionRef<bool(int)> sends, FunctionRef<bool(int)> receives) {
  Trouble trouble = Trouble::none;
  for (int r = 0; r < partners.count(); ++r)
    if (r != partners.me && sends(r)) transfer(partners, true, r, {}, trouble);
  for (int r = 0; r < partners.count(); ++r)
    if (r != partners.me && receives(r)) transfer(partners, false, r, {}, trouble);
}

}  // namespace nearfield::messages
