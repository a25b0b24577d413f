// The members of a call publish to each other where their user buffers lie.
//
//   member r       writes exchange[n % 2] {send, recv}, posts tick A
//   all            meet A, read all entries: the same words on all members, hence the same decision
//   if a region is new (reach/attach_agreement.hpp), they attach it, with one more tick, and look again
//
// Two entries suffice: all have read those of exchange n when they post n + 1, and n + 2, which reuses the words of n,
// comes after the barrier of n + 1.
#pragma once
#include <optional>

#include "engine/context/rounds.hpp"
#include "engine/context/shared_work.hpp"

namespace nearfield::context {

class BufferExchange {
 public:
  BufferExchange(const ContextMembers& members, Waits& waits, Ticks& ticks, Rounds& rounds, SharedWork& shared);
  ~BufferExchange();
  BufferExchange(const BufferExchange&) = delete;

  struct Buffer {
    void* address = nullptr;
    std::size_t bytes = 0;  // 0: peers need nothing
  };
  // Collective, takes one tick or two. Returns whether all members' buffers can be reached, the same on all members; if
  // so, they may be used until end().
  bool begin(Buffer send, Buffer recv, std::uint64_t note);
  // The same, and does parts 0.. of the work on them (shared_work.hpp). False: no part has been done.
  bool work(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts, FunctionRef<void(std::size_t part)> work);
  void end();
  const std::byte* send_of(int member) const { return send_[std::size_t(member)]; }
  std::byte* recv_of(int member) const { return recv_[std::size_t(member)]; }
  // ~0: it has not published any in this exchange.
  std::uint64_t note_of(int member) const {
    const std::uint64_t note = entry(member).note;
    return note >> note_bits == (number_ & 0xffff) ? note & ((std::uint64_t{1} << note_bits) - 1) : ~std::uint64_t{0};
  }

  // ---- placing the control blocks
  void prepare() { agreement_.emplace(members_.process.reach(), members_.peers, members_.team.mappers()); }
  void join(int member) { agreement_->join(member, members_.words[std::size_t(member)]->settling); }

 private:
  static constexpr unsigned note_bits = 48;
  enum class Verdict : std::uint64_t { good, out_of_reach, news };
  ExchangedBuffers& entry(int member) const { return members_.words[std::size_t(member)]->exchange[number_ % 2]; }
  void publish(Buffer send, Buffer recv, std::uint64_t note);
  Verdict look();  // reads all members' entries; fills in the pointers
  void settle();

  const ContextMembers& members_;
  Waits& waits_;
  Ticks& ticks_;
  Rounds& rounds_;
  SharedWork& shared_;
  std::uint64_t number_ = 0;
  Buffer own_send_, own_recv_;
  std::vector<std::byte*> send_{std::size_t(members_.size)}, recv_{std::size_t(members_.size)};
  reach::InFlightBuffers::Slot* noted_[2];  // exchanged buffers, which a fork must leave shared
  std::optional<reach::AttachAgreement> agreement_;
};

}  // namespace nearfield::context
