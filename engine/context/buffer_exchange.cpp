#include "engine/context/buffer_exchange.hpp"

namespace nearfield::context {

BufferExchange::BufferExchange(const ContextMembers& members, Waits& waits, Ticks& ticks, Rounds& rounds,
                               SharedWork& shared)
    : members_(members), waits_(waits), ticks_(ticks), rounds_(rounds), shared_(shared) {
  for (auto*& slot : noted_) slot = members.process.reach().in_flight_buffers.take();
}

BufferExchange::~BufferExchange() {
  for (auto*& slot : noted_) members_.process.reach().in_flight_buffers.put_back(slot);
}

void BufferExchange::publish(Buffer send, Buffer recv, std::uint64_t note) {
  // A concurrent fork either finds the buffers noted here, or has taken their memory out of reach before place()
  // describes it.
  noted_[0]->store(send.address, send.bytes);
  noted_[1]->store(recv.address, recv.bytes);
  ++number_;
  ExchangedBuffers& mine = entry(members_.rank);
  mine.send = agreement_->place(send.address, send.bytes);
  mine.recv = agreement_->place(recv.address, recv.bytes);
  mine.note = note | number_ << note_bits;
  own_send_ = send;
  own_recv_ = recv;
  ticks_.post_empty();
}

BufferExchange::Verdict BufferExchange::look() {
  using Seen = reach::AttachAgreement::Seen;
  bool all = true, news = false;
  for (int r = 0; r < members_.size; ++r) {
    const ExchangedBuffers& theirs = entry(r);
    const Seen send = agreement_->see(r, theirs.send, send_[r]);
    const Seen recv = agreement_->see(r, theirs.recv, recv_[r]);
    if (r == members_.rank) {
      send_[r] = static_cast<std::byte*>(own_send_.address);
      recv_[r] = static_cast<std::byte*>(own_recv_.address);
    }
    news |= send == Seen::news || recv == Seen::news;
    all &= send == Seen::reached && recv == Seen::reached;
  }
  return news ? Verdict::news : all ? Verdict::good : Verdict::out_of_reach;
}

bool BufferExchange::begin(Buffer send, Buffer recv, std::uint64_t note) {
  publish(send, recv, note);
  ticks_.meet(ticks_.now());
  rounds_.all_have_met();
  Verdict verdict = look();
  if (verdict == Verdict::news) [[unlikely]] {
    settle();
    verdict = look();
  }
  return verdict == Verdict::good;
}

bool BufferExchange::work(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts,
                          FunctionRef<void(std::size_t part)> work) {
  for (;;) {
    publish(send, recv, note);
    bool looked = false;
    Verdict verdict = Verdict::good;
    // Only members that take a part read all entries; they publish a verdict if a buffer is out of reach.
    auto& published = members_.gate->verdict;
    shared_.run(parts, [&](std::size_t part) {
      if (!looked) verdict = look();
      looked = true;
      if (verdict == Verdict::good) work(part);
      else published.store(shared_.round() << 2 | std::uint64_t(verdict), std::memory_order_relaxed);
    });
    rounds_.all_have_met();
    const std::uint64_t found = published.load(std::memory_order_relaxed);  // ordered by `done`
    if (found >> 2 != shared_.round()) return true;
    if ((found & 3) == std::uint64_t(Verdict::out_of_reach)) return false;
    look();
    settle();
  }
}

// Agrees on the new regions of the present exchange.
void BufferExchange::settle() {
  reach::AttachAgreement& agreement = *agreement_;
  const struct Abandons {
    reach::AttachAgreement& agreement;
    ~Abandons() { agreement.abandon(); }
  } abandons{agreement};
  agreement.begin([this](int member, int i) { return i == 0 ? entry(member).send : entry(member).recv; });
  waits_.wait_until([&] { return agreement.step(); }, [&](int m) { return agreement.lacks(m); });
  ticks_.barrier();
  agreement.end();
}

void BufferExchange::end() {
  noted_[0]->clear();
  noted_[1]->clear();
}

}  // namespace nearfield::context
