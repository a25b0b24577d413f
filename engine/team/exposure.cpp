// Exposing the user's buffers to the other members of a call.
//
//   member r       writes exposure[n % 2] {send place, recv place}, posts tick A
//   everybody      meets A, reads all exposures: the same facts on all members, hence the same decisions
//   if a place lies in a shared heap that the members have not agreed on yet (once per heap; a fork begins a new one)
//     owner        passes the heap's descriptor to those that lack it
//     everybody    maps what is new, writes its verdict, posts and meets one more tick; one refusal is everybody's
//
// A heap that was refused is not tried again: its buffers are out of reach for this team.
#include <algorithm>

#include "engine/team/team.hpp"

namespace nearfield::team {
namespace {

constexpr std::uint64_t generation(Place place) { return place >> 48; }
constexpr std::uint64_t offset(Place place) { return place & 0xffff'ffff'ffff; }

}  // namespace

void Team::expose(Buffer send, Buffer recv, std::uint64_t note) {
  // A fork that begins now finds the buffers noted here, or has taken the heap out of reach before we ask for it.
  noted_[0].store(send.bytes, send.address);
  noted_[1].store(recv.bytes, recv.address);
  Exposure& mine = mine_->exposure[++exposures_ % 2];
  mine.send = node_.place_of(send.address, send.bytes);
  mine.recv = node_.place_of(recv.address, recv.bytes);
  mine.note = note;
  mine.verdict = 0;
  own_send_ = send;
  own_recv_ = recv;
  post_empty();
}

Team::Verdict Team::look() {
  bool all = true, news = false;
  for (int r = 0; r < size_; ++r) {
    const Exposure& theirs = member_[r]->exposure[exposures_ % 2];
    heap_told_[r] = std::max(generation(theirs.send), generation(theirs.recv));
    news |= heap_told_[r] > heap_settled_[r];
    exposed_send_[r] = r == rank_ ? static_cast<std::byte*>(own_send_.address) : resolve(r, theirs.send);
    exposed_recv_[r] = r == rank_ ? static_cast<std::byte*>(own_recv_.address) : resolve(r, theirs.recv);
    all &= reachable(r, theirs.send) && reachable(r, theirs.recv);
  }
  return news ? Verdict::news : all ? Verdict::good : Verdict::out_of_reach;
}

bool Team::meet_exposed(Buffer send, Buffer recv, std::uint64_t note) {
  expose(send, recv, note);
  meet(tick_);
  ticks_safe_ = tick_;
  last_rounds_rooted_ = false;
  Verdict verdict = look();
  if (verdict == Verdict::news) [[unlikely]] {
    settle_heaps();
    verdict = look();
  }
  return verdict == Verdict::good;
}

bool Team::work_exposed(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts,
                        const std::function<void(std::size_t part)>& work) {
  for (;;) {
    expose(send, recv, note);
    bool looked = false;
    Verdict verdict = Verdict::good;
    // Only those who do a part look at everybody's exposures, and tell the others if they cannot.
    const auto part_of_it = [&](std::size_t part) {
      if (!looked) verdict = look();
      looked = true;
      if (verdict == Verdict::good) work(part);
      else leader_->verdict.store(rounds_together_ << 2 | std::uint64_t(verdict), std::memory_order_relaxed);
    };
    work_together(parts, std::ref(part_of_it));  // nothing is allocated
    ticks_safe_ = tick_;
    last_rounds_rooted_ = false;
    const std::uint64_t told = leader_->verdict.load(std::memory_order_relaxed);  // ordered by `done`
    if (told >> 2 != rounds_together_) return true;
    if ((told & 3) == std::uint64_t(Verdict::out_of_reach)) return false;
    look();
    settle_heaps();
  }
}

void Team::end_exposure() {
  noted_[0].store(0, nullptr);
  noted_[1].store(0, nullptr);
}

// The same answer on all members, the owner included.
bool Team::reachable(int member, Place place) const {
  if (place == out_of_reach) return false;
  return generation(place) == 0 || (generation(place) == heap_settled_[member] && !heap_refused_[member]);
}

std::byte* Team::resolve(int member, Place place) const {
  if (place <= nothing || !reachable(member, place)) return nullptr;
  return (generation(place) ? heap_[member]->base() : base_[member]) + offset(place);
}

void Team::settle_heaps() {
  const std::string trouble = swap_heaps();
  if (!trouble.empty()) log_line(LogLevel::info, "a shared heap stays out of reach: %s", trouble.c_str());
  mine_->exposure[exposures_ % 2].verdict = trouble.empty();
  post_empty();
  meet(tick_);
  bool agreed = true;
  for (int r = 0; r < size_; ++r) agreed &= member_[r]->exposure[exposures_ % 2].verdict != 0;
  for (int r = 0; r < size_; ++r) {
    if (heap_told_[r] <= heap_settled_[r]) continue;
    heap_settled_[r] = heap_told_[r];
    heap_refused_[r] = !agreed;
    if (!agreed) heap_[r].reset();
  }
}

std::string Team::swap_heaps() {
  const std::uint64_t limit = waiting::nanoseconds() + 10'000'000'000u;
  const std::uint64_t own = heap_told_[rank_] > heap_settled_[rank_] ? heap_told_[rank_] : 0;
  const auto descriptor = own ? node_.heap()->descriptor(own) : memory::SharedHeap::Descriptor{};
  // A fork in another thread has begun the next heap meanwhile: this one is gone.
  const bool gone = own && descriptor.get() < 0;
  std::string trouble = gone ? "a fork came in between" : "";
  std::unique_lock lock(node_.peers_mutex);
  for (;;) {
    bool complete = true;
    auto came = node_.collect();
    if (!came) return came.error().text;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      if (own && peer_[r]->heap_sent < own) {
        // Where it is gone, the peers learn that, instead of waiting for it.
        auto sent = gone ? node_.exchange().send(peer_[r]->address, node_.segment().fd(), own | heap_gone)
                         : node_.exchange().send(peer_[r]->address, descriptor.get(), own);
        if (!sent) return sent.error().text;
        if (*sent == memory::Exchange::Sent::yes) peer_[r]->heap_sent = own;
        complete = false;
      }
      if (heap_told_[r] <= heap_settled_[r]) continue;
      if (peer_[r]->heap_generation >= heap_told_[r]) {
        heap_[r] = peer_[r]->heap;
        if (!heap_[r] || peer_[r]->heap_generation > heap_told_[r]) trouble = "a peer's heap has gone by a fork";
      } else {
        complete = false;
      }
    }
    if (complete) return trouble;
    if (waiting::nanoseconds() > limit) return trouble.empty() ? "no descriptor came within 10 s" : trouble;
    lock.unlock();
    node_.progress();
    sched_yield();
    lock.lock();
  }
}

void Team::visit_exposed(memory::SharedHeap::Keep keep, void* context) const {
  for (const Noted& noted : noted_)
    if (const std::size_t bytes = noted.bytes.load(std::memory_order_relaxed))
      keep(noted.address.load(std::memory_order_relaxed), bytes, context);
}

}  // namespace nearfield::team
