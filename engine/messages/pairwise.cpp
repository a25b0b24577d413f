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

Pairwise::Pairwise(const Partners& partners) : partners_(partners), parts_(2 * partners.members.size()) {}

std::uint64_t Pairwise::bytes_to_all() {
  std::uint64_t sum = 0;
  for (int r = 0; r < partners_.count(); ++r) sum += to(r).bytes;
  return sum;
}

void Pairwise::copy_aside() {
  std::uint64_t all = 0;
  for (int r = 0; r < partners_.count(); ++r) all += from(r).bytes;
  aside_.emplace(std::max<std::uint64_t>(all, 1));
  std::byte* at = aside_->data();
  if (!at) throw std::bad_alloc();
  for (int r = 0; r < partners_.count(); ++r) {
    layout::gather(at, from(r), 0, from(r).bytes);
    to(r) = {at, from(r).bytes, {}};
    at += from(r).bytes;
  }
}

void Pairwise::prepare() {
  bool all_short = true;
  for (int r = 0; r < partners_.count(); ++r) all_short &= to(r).bytes <= short_bytes;
  later_.reserve(partners_.members.size());
  if (!all_short) requests_ = std::make_unique<Request[]>(parts_.size());
}

Trouble Pairwise::run() {
  Trouble trouble = Trouble::none;
  exchange_with_ourselves(trouble);
  if (requests_) each_target(partners_, [&](int partner) { later_.push_back(partner); });
  else if (!send_at_once()) requests_.reset(new (std::nothrow) Request[parts_.size()]);
  if (requests_) run_by_requests(trouble);
  else run_one_by_one(trouble);
  return trouble;
}

void Pairwise::exchange_with_ourselves(Trouble& trouble) {
  const layout::Data &source = to(partners_.me), &target = from(partners_.me);
  if (source.bytes > target.bytes) trouble = Trouble::truncated;
  layout::copy(target, source, 0, std::min(source.bytes, target.bytes));
}

// Whether all have left.
bool Pairwise::send_at_once() {
  each_target(partners_, [&](int partner) {
    const layout::Data& data = to(partner);
    const int member = partners_.members[std::size_t(partner)];
    const Envelope envelope{partners_.context, partners_.me, tag};
    if (data.bytes && !partners_.messenger.send_at_once(member, envelope, data)) later_.push_back(partner);
  });
  return later_.empty();
}

void Pairwise::run_by_requests(Trouble& trouble) {
  std::size_t used = 0;
  auto start_one = [&](bool sends, int partner) {
    if (const layout::Data& data = sends ? to(partner) : from(partner); data.bytes)
      start(partners_, requests_[used++], sends, partner, data);
  };
  try {
    each_source(partners_, [&](int partner) { start_one(false, partner); });
    for (const int partner : later_) start_one(true, partner);
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
void Pairwise::run_one_by_one(Trouble& trouble) {
  for (const int partner : later_) transfer(partners_, true, partner, to(partner), trouble);
  each_source(partners_, [&](int partner) {
    if (from(partner).bytes) transfer(partners_, false, partner, from(partner), trouble);
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
