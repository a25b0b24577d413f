// A sequence of numbered operations, the same on all members. In each, members publish words or records and read those
// of others.
//
//   writer of n                                       reader of n
//   waits until all have consumed n - entries (claim)
//   publishes n (release)                             waits until n is published (acquire), reads
//                                                     consumed = n (release), unless all wait for all: then its
//                                                     later publications say so (`behind`)
//
// Credits: the number of the last operation that all others are known to have consumed. We read their `consumed` only
// if we need more credits.
//
// `Words` names the words: published(block, n), which has at least value(n) once n is published, and consumed(block).
// `entries`: operations that may be published and not consumed. `batch`: a writer that has to wait for an entry waits
// for so many more. `behind`: a member that publishes n has read n - behind.
#pragma once
#include <algorithm>
#include <cstring>

#include "engine/context/barrier.hpp"
#include "engine/copying/copy.hpp"

namespace nearfield::context {

template <class Words>
class Connector {
 public:
  Connector(const ContextMembers& members, Waits& waits, Barrier& barrier)
      : members_(members), waits_(waits), barrier_(barrier) {}

  std::uint64_t now() const { return now_; }
  void advance(std::uint64_t operations) { now_ += operations; }
  // Starts the next operation: returns its number.
  std::uint64_t next() { return ++now_; }
  // Waits until our part of `n` may be written.
  void claim(std::uint64_t n) {
    if (n > Words::entries && n - Words::entries > credits_) look(n - Words::entries + Words::batch, true);
  }
  void wait(int member, std::uint64_t n);  // until it has published n
  void meet(std::uint64_t n);              // until all have published n; pre: we have
  // pre: all members have published n.
  void have_met(std::uint64_t n) { add_credits(n > Words::behind ? n - Words::behind : 0); }
  void consume(std::uint64_t n) {
    Words::consumed(*members_.mine).store(n, std::memory_order_release);  // SYNC: consumed
    waits_.wake(What::consumed, n);
  }
  void wait_consumed(int member, std::uint64_t n);
  void wait_all_consumed(std::uint64_t n) { look(n, true); }
  // Returns whether there is room to publish so many operations next, before their readers have come to that call.
  // Waits up to Waits::patience() for room that is not free yet, and throws what waits throw.
  bool ready(std::uint64_t operations = 1) {
    const std::uint64_t last = now_ + operations;
    return last <= Words::entries + credits_ ||
           look(last - Words::entries + Words::batch, false) >= last - Words::entries;
  }
  std::uint64_t credits() const { return credits_; }
  void add_credits(std::uint64_t upto) { credits_ = std::max(credits_, upto); }

 protected:
  void publish(std::uint64_t n, std::uint64_t value) {
    Words::published(*members_.mine, n).store(value, std::memory_order_release);  // SYNC: published
    waits_.wake(Words::is_published, value);
  }
  const ContextMembers& members_;
  Waits& waits_;

 private:
  // Waits until all others have consumed operation `wanted`, but no longer than Waits::patience() unless `for_ever`.
  // Returns the number of the last operation that all others have consumed.
  std::uint64_t look(std::uint64_t wanted, bool for_ever);

  Barrier& barrier_;
  std::uint64_t now_ = 0, credits_ = 0;
};

// ---------------------------------------------------------------- of rounds and exchanges
struct TickWords {
  static constexpr What is_published = What::posted;
  static constexpr unsigned entries = buffers, batch = 0, behind = 2;
  static constexpr std::uint64_t value(std::uint64_t n) { return n; }
  static auto& published(auto& block, std::uint64_t) { return block.posted; }
  static auto& consumed(auto& block) { return block.consumed; }
};

class Ticks : public Connector<TickWords> {
 public:
  using Connector::Connector;
  void post(std::uint64_t tick) { publish(tick, tick); }
  // Posts the next tick without a buffer. pre: we have read all earlier buffers.
  void post_empty() {
    members_.mine->consumed.store(next(), std::memory_order_release);  // SYNC: consumed
    post(now());
  }
  void barrier() {
    post_empty();
    meet(now());
  }
};

// ---------------------------------------------------------------- of short messages
// Rings of records, whose payload and number share cache lines. `ring`: a member of ContextControlBlock.
template <auto ring>
struct RingWords {
  using Block = std::remove_cvref_t<decltype(std::declval<ContextControlBlock&>().*ring)>;
  static constexpr What is_published = What::record;
  static constexpr unsigned entries = Block::entries, batch = Block::batch, behind = 1;
  static constexpr std::uint64_t value(std::uint64_t n) { return n << Block::length_bits; }
  static auto& record(auto& block, std::uint64_t n) { return (block.*ring).record[n % entries]; }
  static auto& published(auto& block, std::uint64_t n) { return record(block, n).head; }
  static auto& consumed(auto& block) { return (block.*ring).consumed; }
};

template <auto ring>
class RecordRing : public Connector<RingWords<ring>> {
  using Words = RingWords<ring>;
  using Base = Connector<Words>;

 public:
  static constexpr unsigned entries = Words::entries;
  static constexpr std::size_t payload = Words::Block::payload_bytes;
  using Base::Base;

  // Returns the payload of our record of `n`, once all have read its previous content.
  std::byte* reserve(std::uint64_t n) {
    Base::claim(n);
    return Words::record(*Base::members_.mine, n).payload;
  }
  // `bytes` = no_length: no payload, since members have different lengths.
  void publish(std::uint64_t n, std::size_t bytes) { Base::publish(n, Words::value(n) | std::uint16_t(bytes)); }
  void publish(std::uint64_t n, const void* from, std::size_t bytes) {
    std::byte* const to = reserve(n);
    if (bytes) copying::copy(to, from, bytes, copying::Store::claiming);  // others have read those lines
    publish(n, bytes);
  }
  const std::byte* wait(int member, std::uint64_t n) {
    Base::wait(member, n);
    return at(member, n);
  }
  const std::byte* at(int member, std::uint64_t n) const { return Words::record(block(member), n).payload; }
  std::size_t bytes(int member, std::uint64_t n) const {
    const std::uint64_t head = Words::published(block(member), n).load(std::memory_order_relaxed);
    return head >> Words::Block::length_bits == n ? std::size_t(std::int16_t(head)) : no_length;
  }
  // Collective. Every member publishes `bytes` bytes, which at() and get() return until the next operation. Returns the
  // operation's number.
  std::uint64_t allgather(const void* mine, std::size_t bytes) {
    const std::uint64_t n = Base::next();
    publish(n, mine, bytes);
    Base::meet(n);
    return n;
  }
  template <class T>
  T get(int member, std::uint64_t n) const {
    T value;
    std::memcpy(&value, at(member, n), sizeof value);
    return value;
  }

 private:
  const ContextControlBlock& block(int member) const { return *Base::members_.words[std::size_t(member)]; }
};
using Lines = RecordRing<&ContextControlBlock::lines>;
using Slots = RecordRing<&ContextControlBlock::slots>;

}  // namespace nearfield::context
