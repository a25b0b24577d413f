// Exposing the user's buffers to the other members of a call.
//
//   member r       writes exposure[n % 2] {send place, recv place}, posts tick A
//   everybody      meets A, reads all exposures: the same facts on all members, hence the same decisions
//   if a place lies in a shared heap that the members have not agreed on yet (once per heap; a fork begins a new one)
//     owner        passes the heap's descriptor to those that lack it
//                  (`heap_offered` tells it as well, to peers to whom no letter comes)
//     everybody    maps what is new, writes its verdict, posts and meets one more tick; one refusal is everybody's
//
// A heap that was refused is not tried again: its buffers are out of reach for this team.
#include <algorithm>

#include "engine/track/fiber.hpp"
#include "engine/track/track.hpp"

namespace nearfield::team {
namespace {

// Nanoseconds after which a heap is fetched instead of waited for, and again.
constexpr std::uint64_t patience = 300'000'000;

constexpr std::uint64_t generation(Place place) { return place >> 48; }
constexpr std::uint64_t offset(Place place) { return place & 0xffff'ffff'ffff; }

}  // namespace

void Track::expose(Buffer send, Buffer recv, std::uint64_t note) {
  // A fork that begins now finds the buffers noted here, or has taken the heap out of reach before we ask for it.
  noted_[0]->store(send.address, send.bytes);
  noted_[1]->store(recv.address, recv.bytes);
  Exposure& mine = mine_->exposure[++exposures_ % 2];
  mine.send = node_.place_of(send.address, send.bytes);
  mine.recv = node_.place_of(recv.address, recv.bytes);
  mine.note = note;
  mine.verdict = 0;
  own_send_ = send;
  own_recv_ = recv;
  post_empty();
}

Track::Verdict Track::look() {
  bool all = true, news = false;
  for (int r = 0; r < size_; ++r) {
    const Exposure& theirs = words_[r]->exposure[exposures_ % 2];
    heap_told_[r] = std::max(generation(theirs.send), generation(theirs.recv));
    news |= heap_told_[r] > heap_settled_[r];
    exposed_send_[r] = r == rank_ ? static_cast<std::byte*>(own_send_.address) : resolve(r, theirs.send);
    exposed_recv_[r] = r == rank_ ? static_cast<std::byte*>(own_recv_.address) : resolve(r, theirs.recv);
    all &= reachable(r, theirs.send) && reachable(r, theirs.recv);
  }
  return news ? Verdict::news : all ? Verdict::good : Verdict::out_of_reach;
}

bool Track::meet_exposed(Buffer send, Buffer recv, std::uint64_t note) {
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

bool Track::work_exposed(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts,
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
      else gate_->verdict.store(rounds_together_ << 2 | std::uint64_t(verdict), std::memory_order_relaxed);
    };
    work_together(parts, std::ref(part_of_it));  // nothing is allocated
    ticks_safe_ = tick_;
    last_rounds_rooted_ = false;
    const std::uint64_t told = gate_->verdict.load(std::memory_order_relaxed);  // ordered by `done`
    if (told >> 2 != rounds_together_) return true;
    if ((told & 3) == std::uint64_t(Verdict::out_of_reach)) return false;
    look();
    settle_heaps();
  }
}

void Track::end_exposure() {
  noted_[0]->clear();
  noted_[1]->clear();
}

// The same answer on all members, the owner included.
bool Track::reachable(int member, Place place) const {
  if (place == out_of_reach) return false;
  return generation(place) == 0 || (generation(place) == heap_settled_[member] && !heap_refused_[member]);
}

std::byte* Track::resolve(int member, Place place) const {
  if (place <= nothing || !reachable(member, place)) return nullptr;
  return (generation(place) ? heap_[member]->base() : base_[member]) + offset(place);
}

void Track::settle_heaps() {
  const std::uint64_t own = heap_told_[rank_] > heap_settled_[rank_] ? heap_told_[rank_] : 0;
  std::string trouble;
  {
    const auto descriptor = own ? node_.heap()->descriptor(own) : memory::SharedHeap::Descriptor{};
    if (descriptor.get() >= 0)
      mine_->heap_offered.store(own << 32 | unsigned(descriptor.get()), std::memory_order_release);  // with fetch_heap
    trouble = swap_heaps(own, descriptor.get());
    mine_->heap_offered.store(0, std::memory_order_seq_cst);  // before the descriptor is closed
  }
  if (!trouble.empty()) log_line(LogLevel::info, "a shared heap stays out of reach: %s", trouble.c_str());
  mine_->exposure[exposures_ % 2].verdict = trouble.empty();
  post_empty();
  meet(tick_);
  bool agreed = true;
  for (int r = 0; r < size_; ++r) agreed &= words_[r]->exposure[exposures_ % 2].verdict != 0;
  for (int r = 0; r < size_; ++r) {
    if (heap_told_[r] <= heap_settled_[r]) continue;
    heap_settled_[r] = heap_told_[r];
    heap_refused_[r] = !agreed;
    if (!agreed) heap_[r].reset();
  }
}

// Without a letter: the heap that a peer offers, out of its table of descriptors.
void Track::fetch_heap(int member) {
  Peer& peer = *peer_[member];
  const auto& offered = words_[member]->heap_offered;
  const std::uint64_t offer = offered.load(std::memory_order_acquire);
  if (peer.pid <= 0 || offer >> 32 != heap_told_[member]) return;
  auto mapped = memory::PeerSegment::open(peer.pid, int(offer & 0x7fffffff));
  // Still offered: what we have opened was the heap, not something that had got its number.
  if (!mapped || offered.load(std::memory_order_seq_cst) != offer) return;
  peer.heap = std::make_shared<memory::PeerSegment>(std::move(*mapped));
  peer.heap_generation = heap_told_[member];
}

std::string Track::swap_heaps(std::uint64_t own, int descriptor) {
  const std::uint64_t start = waiting::nanoseconds();
  std::uint64_t next_fetch = start + patience;
  // A fork in another thread has begun the next heap meanwhile: this one is gone.
  const bool gone = own && descriptor < 0;
  bool receives = true;
  std::vector<char> went_on(std::size_t(size_), 0);
  std::string trouble = gone ? "a fork came in between" : "";
  std::unique_lock lock(node_.peers_mutex);
  for (;;) {
    bool has_all = true, sent_all = true;
    for (int r = 0; r < size_; ++r) went_on[std::size_t(r)] = words_[r]->posted.load(std::memory_order_acquire) > tick_;
    if (auto came = node_.collect(); !came) {
      trouble = came.error().text;
      receives = false;  // but sends: the others wait for ours
    }
    const std::uint64_t now = waiting::nanoseconds();
    const bool fetch = now > next_fetch;
    if (fetch) next_fetch = now + patience;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_ || !receives || heap_told_[r] <= heap_settled_[r]) continue;
      if (fetch && peer_[r]->heap_generation < heap_told_[r]) fetch_heap(r);
      if (peer_[r]->heap_generation < heap_told_[r]) {
        // Who has posted the next tick has sent all that it will send; what came since is looked at once more.
        if (!went_on[std::size_t(r)]) has_all = false;
        else trouble = "a peer could not pass its heap on";
        continue;
      }
      heap_[r] = peer_[r]->heap;
      if (!heap_[r] || peer_[r]->heap_generation > heap_told_[r]) trouble = "a peer's heap has gone by a fork";
    }
    if (has_all) mine_->heaps_complete.store(exposures_, std::memory_order_release);  // pairs with the load below
    for (int r = 0; r < size_; ++r) {
      if (r == rank_ || !own || peer_[r]->heap_sent >= own) continue;
      if (words_[r]->heaps_complete.load(std::memory_order_acquire) >= exposures_) {  // it has fetched ours
        peer_[r]->heap_sent = own;
        continue;
      }
      // Where it is gone, the peers learn that, instead of waiting for it.
      auto sent = gone ? node_.mailbox().send(peer_[r]->address, node_.segment().fd(), own | heap_gone)
                       : node_.mailbox().send(peer_[r]->address, descriptor, own);
      if (!sent) trouble = sent.error().text;
      if (!sent || *sent == memory::Mailbox::Sent::yes) peer_[r]->heap_sent = own;
      else sent_all = false;
    }
    if (has_all && sent_all) return trouble;
    if (now - start > 10'000'000'000u) return trouble.empty() ? "no descriptor came within 10 s" : trouble;
    lock.unlock();
    if (fiber_) fiber_->suspend();
    else node_.progress.turn(), sched_yield();
    lock.lock();
  }
}

}  // namespace nearfield::team
