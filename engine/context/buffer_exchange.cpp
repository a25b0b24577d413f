// The members of a call publish to each other where their user buffers lie.
//
//   member r       writes exchange[n % 2] {send, recv}, posts tick A
//   all            meet A, read all entries: the same words on all members, hence the same decision
//   if a region is new (reach/attach_agreement.hpp), they attach it, with one more tick, and look again
#include "engine/context/context.hpp"

namespace nearfield::context {

void CollectiveContext::publish_buffers(Buffer send, Buffer recv, std::uint64_t note) {
  // A concurrent fork either finds the buffers noted here, or has taken their memory out of reach before place()
  // describes it.
  noted_[0]->store(send.address, send.bytes);
  noted_[1]->store(recv.address, recv.bytes);
  BufferExchange& mine = mine_->exchange[++exchanges_ % 2];
  mine.send = agreement_->place(send.address, send.bytes);
  mine.recv = agreement_->place(recv.address, recv.bytes);
  mine.note = note | exchanges_ << note_bits;
  own_send_ = send;
  own_recv_ = recv;
  post_empty();
}

CollectiveContext::Verdict CollectiveContext::look() {
  using Seen = reach::AttachAgreement::Seen;
  bool all = true, news = false;
  for (int r = 0; r < size_; ++r) {
    const BufferExchange& theirs = words_[r]->exchange[exchanges_ % 2];
    const Seen send = agreement_->see(r, theirs.send, exchanged_send_[r]);
    const Seen recv = agreement_->see(r, theirs.recv, exchanged_recv_[r]);
    if (r == rank_) {
      exchanged_send_[r] = static_cast<std::byte*>(own_send_.address);
      exchanged_recv_[r] = static_cast<std::byte*>(own_recv_.address);
    }
    news |= send == Seen::news || recv == Seen::news;
    all &= send == Seen::reached && recv == Seen::reached;
  }
  return news ? Verdict::news : all ? Verdict::good : Verdict::out_of_reach;
}

bool CollectiveContext::exchange_buffers(Buffer send, Buffer recv, std::uint64_t note) {
  publish_buffers(send, recv, note);
  meet(tick_);
  ticks_safe_ = tick_;
  last_rounds_rooted_ = false;
  Verdict verdict = look();
  if (verdict == Verdict::news) [[unlikely]] {
    settle();
    verdict = look();
  }
  return verdict == Verdict::good;
}

bool CollectiveContext::exchange_and_work(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts,
                                          const std::function<void(std::size_t part)>& work) {
  for (;;) {
    publish_buffers(send, recv, note);
    bool looked = false;
    Verdict verdict = Verdict::good;
    // Only members that take a part read all entries; they publish a verdict if a buffer is out of reach.
    const auto part_of_it = [&](std::size_t part) {
      if (!looked) verdict = look();
      looked = true;
      if (verdict == Verdict::good) work(part);
      else gate_->verdict.store(rounds_together_ << 2 | std::uint64_t(verdict), std::memory_order_relaxed);
    };
    work_together(parts, std::ref(part_of_it));  // nothing is allocated
    ticks_safe_ = tick_;
    last_rounds_rooted_ = false;
    const std::uint64_t published = gate_->verdict.load(std::memory_order_relaxed);  // ordered by `done`
    if (published >> 2 != rounds_together_) return true;
    if ((published & 3) == std::uint64_t(Verdict::out_of_reach)) return false;
    look();
    settle();
  }
}

// Agrees on the new regions of the present exchange.
void CollectiveContext::settle() {
  reach::AttachAgreement& agreement = *agreement_;
  const struct Abandons {
    reach::AttachAgreement& agreement;
    ~Abandons() { agreement.abandon(); }
  } abandons{agreement};
  agreement.begin([this](int member, int i) {
    const BufferExchange& theirs = words_[member]->exchange[exchanges_ % 2];
    return i == 0 ? theirs.send : theirs.recv;
  });
  wait_until([&] { return agreement.step(); }, [&](int m) { return agreement.lacks(m); });
  post_empty();
  meet(tick_);
  agreement.end();
}

void CollectiveContext::end_exchange() {
  noted_[0]->clear();
  noted_[1]->clear();
}

}  // namespace nearfield::context
