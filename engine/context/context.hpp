// A context: the state of a team's operations that run one after another.
//
// control_block.hpp names the writers of shared words. This class has the waits and posts over them; collectives use
// these and never access a shared word.
//
// The first context of a team serves blocking calls. Calls that may overlap others use further contexts (pool.hpp), and
// their bodies run on fibers: a wait of such a context that has looked once in vain suspends the body, which need not
// know.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/context/control_block.hpp"
#include "engine/copying/handover.hpp"
#include "engine/team/team.hpp"

namespace nearfield::fibers {
class Fiber;
}

namespace nearfield::context {

using team::Broken, team::MemberControlBlock, team::Peer, team::Process, team::ProcessHeader, team::Refused,
    team::Shape, team::Team, team::Tree, team::What, team::everybody;

class CollectiveContext final : memory::CopyBuffers::Holder {
 public:
  // `number`: 0 for the context of blocking calls.
  explicit CollectiveContext(Team& team, unsigned number = 0);
  ~CollectiveContext();
  CollectiveContext(const CollectiveContext&) = delete;

  Team& team() const { return team_; }
  unsigned number() const { return number_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Process& process() const { return process_; }
  const Shape& shape() const { return shape_; }
  const Tree& tree() const { return shape_.tree; }

  // ---- small operations
  // Starts the next small operation: returns its sequence number.
  std::uint64_t next_slot() { return ++seq_; }
  // Returns our slot for `seq`, once all have read its previous content.
  std::byte* reserve_slot(std::uint64_t seq);
  void publish_slot(std::uint64_t seq, std::size_t bytes);
  const std::byte* wait_slot(int member, std::uint64_t seq);  // returns its payload
  std::size_t slot_bytes(int member, std::uint64_t seq) const {
    const Slot& theirs = words_[member]->slot[seq % slots];
    return theirs.seq.load(std::memory_order_relaxed) == seq ? theirs.bytes : no_length;
  }
  // After publish_slot: waits until all members have published `seq`.
  void meet_slots(std::uint64_t seq);
  // pre: all members have published `seq`, known by other means than meet_slots().
  void have_met_slots(std::uint64_t seq) { slots_safe_ = std::max(slots_safe_, seq - 1); }
  const std::byte* slot(int member, std::uint64_t seq) const { return words_[member]->slot[seq % slots].payload; }
  void finish_rooted_slot(std::uint64_t seq);

  // ---- smallest rooted operations, up to line_payload bytes
  // Starts the next one, of so many lines, at most half a ring: returns the last one's sequence number.
  std::uint64_t next_line(unsigned count = 1) { return line_seq_ += count; }
  std::byte* reserve_line(std::uint64_t seq);
  void publish_line(std::uint64_t seq, std::size_t bytes);
  const std::byte* wait_line(int member, std::uint64_t seq);
  std::size_t line_bytes(int member, std::uint64_t seq) const {
    return words_[member]->small[seq % lines].seq.load(std::memory_order_relaxed) & 0xff;
  }
  void finish_line(std::uint64_t seq);

  // ---- large operations: rounds of buffers (staging.cpp)
  std::uint64_t tick() const { return tick_; }
  void advance(std::uint64_t ticks) { tick_ += ticks; }
  // Begins rounds in which all wait for all, or of a rooted operation. `length`: of this member's vector or block.
  void begin_rounds(std::size_t length);
  void begin_rooted_rounds(std::size_t length);
  // Returns the length that a member has published with its buffer of a tick.
  std::size_t published_length(int member, std::uint64_t tick) const {
    const std::uint64_t sum = place_of(member, tick) >> sum_shift;
    if (sum == sum_of(length_, tick)) [[likely]]
      return length_;
    const std::size_t theirs = words_[member]->lengths[tick % buffers];
    return sum == sum_of(theirs, tick) ? theirs : no_length;
  }
  std::size_t buffer_bytes() const { return shape_.buffer_bytes; }  // of one member in one round, at most
  // How a round's bytes are used; kinds of stores are tried separately for each.
  enum class BufferUse : std::uint8_t { copied, folded_by_readers, folded_by_writer, count };
  // Returns our buffer for `tick`, once that of tick - buffers has been read. The caller fills it by stores of
  // filling() and publishes it by post(tick). `reader`: the member that reports the time of reading; -1: any, since all
  // read.
  std::byte* my_buffer(std::uint64_t tick, std::size_t bytes, BufferUse use, int reader = -1);
  copying::Store filling() const { return copying::handover_kinds[filling_.kind].fill; }
  const std::byte* buffer(int member, std::uint64_t tick) const {
    const std::uint64_t place = place_of(member, tick);
    return base_[place & place_returned ? 1 - member : member] + (place & place_offset);
  }
  // Returns the kind of stores by which to copy from that buffer.
  copying::Store emptying(int member, std::uint64_t tick) const {
    if (shape_.oversubscribed()) return copying::Store::temporal;
    return copying::handover_kinds[place_of(member, tick) & place_kind].drain;
  }
  // Called around all reads of `tick`, of one member's buffer or of all (-1), whose writer may ask for the time.
  std::uint64_t begin_reading(std::uint64_t tick, int member = -1) const;
  void end_reading(std::uint64_t tick, std::uint64_t begun) {
    if (!begun) return;
    report_reading(tick, processor::ticks_since(begun));
  }
  void report_reading(std::uint64_t tick, std::uint64_t took);  // 0: no writer has asked
  void post(std::uint64_t tick) {
    if (filling_.tick == tick) publish_place();
    post_word(tick);
  }
  void post_empty();  // the next tick, which carries no buffer
  void wait_posted(int member, std::uint64_t tick);
  void meet(std::uint64_t tick);  // after post(tick): waits until all members have posted it
  void consume(std::uint64_t tick);
  void wait_consumed(int member, std::uint64_t tick);
  void wait_all_consumed(std::uint64_t tick);
  // Rooted operations: waits until our buffer of `tick` may be filled again.
  void wait_buffer_free(std::uint64_t tick) {
    if (tick > buffers && tick - buffers > ticks_safe_) wait_all_consumed(tick - buffers);
  }

  // ---- the user's own buffers (buffer_exchange.cpp)
  struct Buffer {
    void* address = nullptr;
    std::size_t bytes = 0;  // 0: peers need nothing
  };
  // Collective, takes one tick or two. Returns whether all members' buffers can be reached, the same on all members; if
  // so, they may be used until end_exchange().
  bool exchange_buffers(Buffer send, Buffer recv, std::uint64_t note);
  void end_exchange();
  const std::byte* send_of(int member) const { return exchanged_send_[member]; }
  std::byte* recv_of(int member) const { return exchanged_recv_[member]; }
  static constexpr unsigned note_bits = 48;
  // ~0: it has not published any in this exchange.
  std::uint64_t note_of(int member) const {
    const std::uint64_t note = words_[member]->exchange[exchanges_ % 2].note;
    return note >> note_bits == (exchanges_ & 0xffff) ? note & ((std::uint64_t{1} << note_bits) - 1)
                                                      : ~std::uint64_t{0};
  }

  // Collective, for teams with a gate: once all members have arrived, running members do parts 0.. of the work until
  // none is left; all leave when all parts are done. Members that sleep meanwhile wake once.
  void work_together(std::size_t parts, const std::function<void(std::size_t part)>& work);
  // The same on exchanged buffers. False as in exchange_buffers; then no part has been done.
  bool exchange_and_work(Buffer send, Buffer recv, std::uint64_t note, std::size_t parts,
                         const std::function<void(std::size_t part)>& work);

  // ---- without waiting for late members
  // How long one that could go on without them looks whether they come, ns: what it leaves behind progresses only in
  // its next call.
  std::uint64_t patience() const { return process_.policy().oversubscribed ? 5'000'000 : 200'000; }
  // Return whether we can publish the next one, or `ticks` ticks, before its readers have come to that call. They wait,
  // up to patience(), for room that is not free yet, and throw what waits throw.
  bool slot_ready() {
    return seq_ + 1 <= slots + slots_safe_ || room_ready(&ContextControlBlock::slot_done, What::slot_done,
                                                         seq_ + 1 - slots, seq_ + 1 - slots, slots_safe_);
  }
  bool line_ready(unsigned count = 1) {
    const std::uint64_t last = line_seq_ + count;
    return last <= lines + lines_safe_ ||
           room_ready(&ContextControlBlock::line_done, What::line_done, last - lines / 2, last - lines, lines_safe_);
  }
  bool buffers_ready(std::uint64_t ticks) {
    if (!staging_ || ticks > buffers) return false;
    const std::uint64_t last = tick_ + ticks;
    return last <= buffers + ticks_safe_ ||
           room_ready(&ContextControlBlock::consumed, What::consumed, last - buffers, last - buffers, ticks_safe_);
  }

  // ---- reports
  void enter(std::uint64_t packed_call) { mine_->doing.store(packed_call, std::memory_order_relaxed); }
  // The same for a call that all members make.
  void enter_collective(std::uint64_t packed_call) {
    mine_->called[++calls_ % calls_known].store(packed_call, std::memory_order_release);  // SYNC: called
    mine_->calls.store(calls_, std::memory_order_release);                                // SYNC: calls
    mine_->doing.store(packed_call, std::memory_order_relaxed);
  }
  void leave() { mine_->doing.store(0, std::memory_order_relaxed); }
  // Describes our call.
  std::string doing() const;
  // Which members have which length in our call.
  std::string describe_lengths() const;
  // Reports that they differ. Throws UnequalLengths. `in_step`: all that we see have published one.
  [[noreturn]] void report_lengths(bool in_step = true) const;

  // Scratch for the collectives: `size` pointers each.
  std::span<const void*> inputs() { return inputs_; }
  std::span<void*> outputs() { return outputs_; }

  // ---- placing the control blocks (creation/create.cpp, pool.cpp)
  void prepare();  // pre: the team's segments are mapped; throws std::bad_alloc
  void place_control_block(int member, ContextControlBlock* words) {
    words_[std::size_t(member)] = words;
    if (member == rank_) mine_ = words;
    agreement_->join(member, words->settling);
  }
  void place_gate(ContextGate* gate) { gate_ = gate; }
  // From now on waits suspend the body that runs on that fiber.
  void suspend_by(fibers::Fiber* fiber) { fiber_ = fiber; }
  void publish_awaited();  // publishes what the suspended body awaits, to members that may wake us
  void join_tree();        // once the team's shape is known

  // Waits until `flag()`, which others may set without waking us. `lacks(member)`: returns whether we wait for that
  // member.
  void wait_until(FunctionRef<bool()> flag, FunctionRef<bool(int)> lacks);
  // Called by long waits now and then, `elapsed` ns after they began: throws if the wait is in vain, and informs the
  // hang reporter.
  void inspect(std::uint64_t elapsed, bool (*lacking)(void*, int), void* argument);

 private:
  // The member's call of that number; 0: it has not begun it, or has begun too many since.
  std::uint64_t call_of(int member, std::uint64_t number) const;
  // Throws if a member that is waited for has made another call than ours, or has finished ours.
  void look_for_other_calls(std::uint64_t elapsed, bool (*lacking)(void*, int), void* argument);
  void settle_staging();
  struct Held {
    std::uint64_t tick = 0;
    std::size_t offset = 0, bytes = 0, used = 0;  // 0: nothing; `tick`: the last one whose buffer lies there
  };
  struct Filling {
    std::uint64_t tick = 0, place = 0, begun = 0;
    std::size_t bytes = 0;
    std::uint8_t kind = 0;
    bool sample = false;
    BufferUse use = BufferUse::copied;
    int reader = 0;
  };
  // Fields of ContextControlBlock::place: offset in the segment, a multiple of 64; the kind of stores that filled the
  // buffer, whether its time is a sample, and, above the offset, a hash of the length and the tick.
  static constexpr unsigned sum_shift = 48;
  static constexpr std::uint64_t place_kind = 3, place_sampled = 4, place_offset = (std::uint64_t{1} << sum_shift) - 64;
  static constexpr std::uint64_t place_returned = 8;  // in the other's segment
  static std::uint64_t sum_of(std::size_t length, std::uint64_t tick) {
    return ((length + tick * 0xc2b2ae3d27d4eb4f) * 0x9e3779b97f4a7c15) >> sum_shift;
  }
  std::uint64_t place_of(int member, std::uint64_t tick) const { return words_[member]->place[tick % buffers]; }
  void publish_place();
  void post_word(std::uint64_t tick);
  std::size_t take_room(std::uint64_t tick, std::size_t bytes);
  void let_go_of_buffers();
  void put_back_read() override;
  void put_back(std::uint64_t read);  // buffers up to that tick
  std::uint64_t read_by_all() const;
  void note_sample(Filling& sample);
  struct Awaited {
    std::uint32_t whom;  // rank + 1, or `everybody`
    What what = What::gate;
    std::uint64_t value = 0;
  };
  void wake_waiters(What what, std::uint64_t value);  // wakes members that await that word of ours
  void wake_everybody();
  void wake_suspended(std::uint32_t awaited, What what, std::uint64_t value);
  template <class Word>
  void meet_by(Word word, What what, std::uint64_t value);
  template <class Lacking>
  void meet_along_tree(Lacking lacking);
  std::uint64_t wait_done(Atomic<std::uint64_t> ContextControlBlock::*done, What what, std::uint64_t needed);
  bool room_ready(Atomic<std::uint64_t> ContextControlBlock::*done, What what, std::uint64_t wanted,
                  std::uint64_t needed, std::uint64_t& safe);
  template <class Flag, class Lacking>
  void wait(Flag flag, Lacking lacking, Awaited awaited);
  template <class Flag, class Lacking>
  void wait_on(Flag flag, Lacking lacking, Awaited awaited);
  template <class Flag>
  void wait_in_place(Flag flag, bool (*lacking)(void*, int), void* argument, Awaited awaited);
  void publish_asleep(bool asleep, Awaited awaited);
  enum class Verdict : std::uint64_t { good, out_of_reach, news };
  void publish_buffers(Buffer send, Buffer recv, std::uint64_t note);
  Verdict look();  // reads all members' entries; fills in the pointers
  void settle();
  void suspend(bool (*flag)(void*), void* flag_context, bool (*lacking)(void*, int), void* argument, Awaited awaited);

  Team& team_;
  Process& process_;
  const Shape& shape_;
  const int rank_, size_;
  const unsigned number_;
  fibers::Fiber* fiber_ = nullptr;
  Awaited awaited_{};  // the suspended body's
  ContextControlBlock* mine_ = nullptr;
  ContextGate* gate_ = nullptr;
  MemberControlBlock* const own_;
  std::vector<ContextControlBlock*> words_;
  std::span<std::byte* const> base_;  // the team's
  std::span<Peer* const> peer_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::size_t staging_offset_ = 0;
  std::byte* staging_ = nullptr;
  bool staging_refused_ = false;
  Held held_[buffers], open_;
  Filling filling_;
  // Published, and the time of reading is not known yet; `begun` is the time of filling.
  Filling sampled_[std::size_t(BufferUse::count)];
  copying::Handover handover_[std::size_t(BufferUse::count)];
  // tick from which on other contexts are asked again for buffers that they do not need
  std::uint64_t next_shortage_ = 0;
  memory::CopyBuffers* span_ = nullptr;     // the process's copy buffers, once they have been needed
  std::uint64_t seq_ = 0, slots_safe_ = 0;  // every member has read our slots up to slots_safe_
  std::uint64_t line_seq_ = 0, lines_safe_ = 0;
  std::size_t length_ = 0;                   // our length in the present rounds
  std::uint64_t tick_ = 0, ticks_safe_ = 0;  // every member has read our buffers up to ticks_safe_
  std::uint64_t gate_target_ = 0, done_target_ = 0, rounds_together_ = 0;
  Meeting meeting_ = Meeting::flags;  // the shape's
  int parent_ = -1;                   // in the tree whose root is the first member
  std::vector<int> children_;
  std::uint64_t meetings_ = 0;  // along the tree
  bool last_rounds_rooted_ = false;
  std::uint64_t calls_ = 0;  // number of calls that we have begun
  // A mismatching call of another member, seen during our call `ours`; 0: none.
  struct Suspect {
    std::uint64_t ours = 0, theirs = 0, doing = 0;
    int member = 0;
    bool operator==(const Suspect&) const = default;
  } suspect_;

  // Exchanged buffers, which a fork must leave shared.
  reach::InFlightBuffers::Slot* noted_[2];
  std::uint64_t exchanges_ = 0;
  Buffer own_send_, own_recv_;
  std::vector<std::byte*> exchanged_send_, exchanged_recv_;
  std::optional<reach::AttachAgreement> agreement_;
};

}  // namespace nearfield::context
