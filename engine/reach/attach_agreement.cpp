#include "engine/reach/attach_agreement.hpp"

#include <unistd.h>

#include <algorithm>

#include "engine/base/log.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::reach {
namespace {

// In nanoseconds. A member that waits for a letter takes the descriptor from the owner's table after each `patience`.
// It gives up after `longest`.
constexpr std::uint64_t patience = 300'000'000;
constexpr std::uint64_t longest = 10'000'000'000;

}  // namespace

AttachAgreement::AttachAgreement(Peers& own, std::span<Peer* const> peers, std::uint32_t by)
    : peers_(own), peer_(peers.begin(), peers.end()), words_(peers.size()), by_(by), was_through_(peers.size()) {
  of_.reserve(peers.size());
  news_.reserve(2 * peers.size());
  error_.reserve(256);
  for (std::size_t m = 0; m < peers.size(); ++m) {
    of_.emplace_back(own, peers[m], by);
    if (!peers[m]) me_ = int(m);
  }
}

AttachAgreement::Seen AttachAgreement::see_unknown(int member, const RemoteBuffer& place) const {
  if (place.mapper() >= mapper_count || !(by_ >> place.mapper() & 1)) return Seen::out_of_reach;
  return of_[std::size_t(member)].outdated(place) ? Seen::out_of_reach : Seen::news;
}

void AttachAgreement::start() {
  ++number_;
  begun_ = waiting::nanoseconds();
  next_fetch_ = begun_ + patience;
  news_.clear();
  failed_ = 0;
  receives_ = true;
  error_.clear();
}

void AttachAgreement::note(int member, const RemoteBuffer& place) {
  std::byte* at;
  if (see(member, place, at) != Seen::news) return;
  const Region region = Region::of(place);
  for (News& known : news_) {
    if (known.member != member || known.region.mapper() != region.mapper()) continue;
    if (known.region.holds(place) || known.region.generation() > region.generation()) return;
    if (known.region.generation() < region.generation()) {
      known.region = region;
      return;
    }
  }
  news_.push_back({member, region});
}

void AttachAgreement::fail(std::size_t mapper, const std::string& why) {
  failed_ |= 1u << mapper;
  error_ = why;
}

void AttachAgreement::fail_all(const std::string& why) {
  for (const News& news : news_) fail(news.region.mapper(), why);
}

// Takes the descriptor that the peer offers from the peer's table, without a letter.
void AttachAgreement::fetch(const News& news) {
  Peer& peer = *peer_[std::size_t(news.member)];
  const MemoryMapper& mapper = *mappers()[news.region.mapper()];
  const auto& offered = words_[std::size_t(news.member)]->offered;
  const std::uint64_t offer = offered.load(std::memory_order_acquire);  // SYNC: offered
  if (!mapper.take || peer.pid <= 0 || offer >> 32 != news.region.generation()) return;
  auto mapped = memory::PeerSegment::open(peer.pid, int(offer & 0x7fffffff));
  // The owner closes it only after withdrawing the offer, so its number has not been reused.
  if (!mapped || offered.load(std::memory_order_seq_cst) != offer) return;  // SYNC: offered
  mapper.take(peers_, peer, news.region.generation(), std::move(mapped));
}

bool AttachAgreement::attach_news() {
  const std::uint64_t now = waiting::nanoseconds();
  const bool fetches = now > next_fetch_;
  if (fetches) next_fetch_ = now + patience;
  bool all = true;
  for (News& news : news_) {
    if (news.done) continue;
    const auto m = std::size_t(news.member);
    if (news.member != me_ && receives_) {
      Attached attached = peers_.attach(*peer_[m], news.region);
      if (attached.state == Attached::State::not_yet && fetches) {
        fetch(news);
        attached = peers_.attach(*peer_[m], news.region);
      }
      if (attached.state == Attached::State::not_yet && !was_through_[m]) {
        all = false;
        continue;
      }
      if (attached.state == Attached::State::yes) {
        news.at = attached.at;
        news.keep = std::move(attached.keep);
      } else {
        fail(news.region.mapper(), attached.why.empty() ? "a peer could not pass its memory on" : attached.why);
      }
    }
    of_[m].reserve();
    news.done = true;
  }
  return all;
}

bool AttachAgreement::pass_news() {
  bool all = true;
  for (const News& news : news_) {
    const std::size_t w = news.region.mapper();
    const MemoryMapper& mapper = *mappers()[w];
    if (news.member != me_ || !mapper.offer) continue;
    if (mapper.descriptor && offered_ < 0) {
      const std::uint64_t generation = news.region.generation();
      offered_ = mapper.descriptor(peers_, generation);
      if (offered_ >= 0)
        // SYNC: offered
        words_[std::size_t(me_)]->offered.store(generation << 32 | unsigned(offered_), std::memory_order_release);
      else fail(w, "a fork happened meanwhile");  // a fork in another thread has begun the next generation
    }
    for (std::size_t m = 0; m < peer_.size(); ++m) {
      // SYNC: news-complete; that member has attached ours
      if (!peer_[m] || words_[m]->complete.load(std::memory_order_acquire) >= number_) continue;
      auto passed = mapper.offer(peers_, *peer_[m], news.region);
      if (!passed) fail(w, passed.error().text);
      else all &= *passed;
    }
  }
  return all;
}

bool AttachAgreement::step() {
  ControlBlock& mine = *words_[std::size_t(me_)];
  if (mine.through.load(std::memory_order_relaxed) >= number_) return true;
  bool has_all = false, passed_all = false;
  try {
    const std::lock_guard lock(peers_.mutex);
    // A member whose word says so sends nothing more, but what it has sent may lie in the mailbox still: read before
    // collect().
    for (std::size_t m = 0; m < words_.size(); ++m)
      was_through_[m] = words_[m]->through.load(std::memory_order_acquire) >= number_;  // SYNC: through
    if (auto came = peers_.collect(); !came) {
      fail_all(came.error().text);
      receives_ = false;  // it still sends, since the others wait for ours
    }
    has_all = attach_news();
    if (has_all) mine.complete.store(number_, std::memory_order_release);  // SYNC: news-complete
    passed_all = pass_news();
  } catch (const std::bad_alloc&) {
    fail_all("out of memory");
    receives_ = false;
  }
  if (!(has_all && passed_all) && waiting::nanoseconds() - begun_ <= longest) return false;
  if (!(has_all && passed_all) && !failed_) fail_all("no descriptor came within 10 s");
  abandon();  // before the descriptor is closed
  mine.failed = failed_;
  mine.out = by_ & ~peers_.open();
  if (failed_ & ~mine.out)  // leave_out() has logged those that are out
    log_line(LogLevel::info, "the memory of other ranks cannot be mapped: %s", error_.c_str());
  mine.through.store(number_, std::memory_order_release);  // SYNC: through
  return true;
}

bool AttachAgreement::lacks(int member) const {
  return words_[std::size_t(member)]->through.load(std::memory_order_relaxed) < number_;
}

void AttachAgreement::end() {
  std::uint32_t failed = 0;
  for (const ControlBlock* each : words_) {
    failed |= each->failed;
    by_ &= ~each->out;
  }
  for (News& news : news_) {
    const bool refused = failed >> news.region.mapper() & 1;
    of_[std::size_t(news.member)].add(
        {news.region, refused ? nullptr : news.at, refused ? nullptr : std::move(news.keep), refused});
  }
  news_.clear();
}

void AttachAgreement::abandon() {
  if (offered_ < 0) return;
  // SYNC: offered; before the descriptor is closed
  words_[std::size_t(me_)]->offered.store(0, std::memory_order_seq_cst);
  close(offered_);
  offered_ = -1;
}

}  // namespace nearfield::reach
