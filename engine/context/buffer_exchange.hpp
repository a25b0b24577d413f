// The members of a call publish to each other where their user buffers lie. In exchange n:
//
//   member r       writes exchange[n % 2] {send, recv}, posts tick A
//   all            meet A, read all entries: the same words on all members, hence the same decision
//   if a region is new (reach/attach_agreement.hpp), all attach it, with one more tick, and look again
//
// Two entries suffice: a member that posts exchange n + 1 has read the entries of n, and a member that overwrites its
// entry of n, in exchange n + 2, has met all others in n + 1.
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
    std::size_t bytes = 0;  // 0: peers do not access it
  };
  // Collective, takes one tick or two. Returns whether all members' buffers can be reached, the same on all members; if
  // so, they may be used until end(). `note`: what note_of() returns to peers, up to 48 bits.
  bool begin(Buffer send, Buffer recv, std::uint64_t note);
  // The same, and members share out work(0) .. work(parts - 1) on the buffers (shared_work.hpp). False: they are out of
  // reach, and no part has been done.
  bool work(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts, FunctionRef<void(std::size_t part)> work);
  void end();
  const std::byte* send_of(int member) const { return send_[std::size_t(member)]; }
  std::byte* recv_of(int member) const { return recv_[std::size_t(member)]; }
  // Returns the member's note; ~0: it has not published any in this exchange.
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
