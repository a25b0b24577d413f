// The other processes of this node, and what this one tells them so that they reach its memory.
//
//   a process                                  a peer
//   card(): its mailbox, its segment, what
//   each mapper tells
//   --- by the bootstrap ------------------->  meet(): each mapper tries whether it reaches it
//   letter {mapper, generation, descriptor} --->  collect(): maps it and gives it to the mapper
//   place() of a buffer -------------------->  attach()
//
// Segments are passed when processes first meet, what other mappers pass when a place lies in it
// (attach_agreement.hpp). A descriptor that comes by no letter is taken out of its owner's table (fetch()).
#pragma once
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/memory/segment.hpp"
#include "engine/reach/mailbox.hpp"
#include "engine/reach/mappers.hpp"
#include "engine/reach/noticeboard.hpp"

namespace nearfield::reach {

// At offset 0 of every segment. What other layers share of a process follows it (team/process_header.hpp).
struct SegmentHeader {
  std::uint64_t probe;              // owner, before the segment is passed on: by this it is known to be the owner's
  std::atomic<std::uint32_t> left;  // owner: 1 once it has left MPI in good order
};

// What a process tells those who are to reach it.
struct Card {
  MailboxAddress address;
  std::int64_t pid, fd;              // in its own namespace and table: of its segment
  std::uint64_t header;              // address of the segment's header in its address space
  std::uint64_t probe;               // what lies there
  std::uint64_t told[mapper_count];  // by MemoryMapper::open
  std::uint32_t mappers;             // a bit of each that is open
};

// Another process of this node whose segment is mapped here. Never unmapped before exit.
struct Peer {
  Peer(memory::PeerSegment mapped, pid_t process) : segment(std::move(mapped)), pid(process) {}
  memory::PeerSegment segment;
  pid_t pid = 0;  // 0: not visible from our pid namespace
  int pidfd = -1;
  Card card{};                // once it is met
  std::uint32_t mappers = 0;  // that reach it, bit 1 << row
  std::uint32_t told = 0;     // by which it may be told of places of ours
  MapperStates kept;
  bool gone() const;  // the process has ended
  const SegmentHeader& header() const { return *reinterpret_cast<const SegmentHeader*>(segment.base()); }
  bool left() const { return header().left.load(std::memory_order_acquire); }  // SYNC: left
};

class Peers {
 public:
  // `segment` has its header; `left_out`: parse_left_out.
  static Result<std::unique_ptr<Peers>> create(memory::Segment& segment, std::uint32_t left_out);
  ~Peers();

  Card card() const;
  memory::Segment& segment() const { return segment_; }
  Mailbox& mailbox() { return mailbox_; }

  std::mutex mutex;  // of all that follows, up to the next comment
  Peer* find(const std::string& identity);
  // Takes in what peers have passed to us; whether anything came. A known peer's segment is never replaced.
  Result<bool> collect();
  // Passes our segment; whether the peer has it now.
  Result<bool> send_segment(const MailboxAddress& to);
  bool has_segment(const MailboxAddress& who) const { return sent_.count(who.identity()) != 0; }
  void note_sent(const MailboxAddress& who) { sent_[who.identity()] = true; }
  // The segment of who has shown that card, without a letter.
  Result<void> fetch(const Card& card);
  // pre: its segment is there. Later calls with the same peer do nothing.
  Peer& meet(const Card& card);
  // A region of a peer.
  Attached attach(Peer& peer, const Region& region);
  // The peer has gone: what is held of it is given up, as far as nobody uses it.
  void part(Peer& peer);
  // The process leaves: nobody is told of anything of ours any more, and what is not shared for good is taken back.
  void close();

  // Where peers find a buffer of ours, by one of `by`; the noticeboard must tell about it already.
  RemoteBuffer place(const void* address, std::size_t bytes, std::uint32_t by) const;
  // Whether others can have it: for places of ours in regions that they have not attached.
  bool gives(const RemoteBuffer& place) const {
    const MemoryMapper& mapper = *mappers()[place.mapper()];
    return !mapper.gives || mapper.gives(*this, Region::of(place));
  }
  // The first mapper that reads and writes the peer's memory by calls, nullptr: none.
  static const MemoryMapper* calls(const Peer& peer);
  // One that attaches does not work any more, whatever has been agreed on before. Any thread.
  void leave_out(std::size_t mapper, const std::string& why);
  std::uint32_t open() const { return open_.load(std::memory_order_relaxed); }

  // Buffers that a fork must look at.
  Noticeboard noticeboard;

  // What the mappers keep of this process.
  MapperStates kept;

 private:
  Peers(memory::Segment& segment, Mailbox mailbox) : segment_(segment), mailbox_(std::move(mailbox)) {}
  void admit(const std::string& identity, memory::PeerSegment segment, pid_t pid);
  memory::Segment& segment_;
  Mailbox mailbox_;
  std::unordered_map<std::string, std::unique_ptr<Peer>> peers_;
  std::unordered_map<std::string, bool> sent_;
  std::uint64_t told_[mapper_count] = {};
  std::atomic<std::uint32_t> open_{0};
  std::uint32_t to_close_ = 0;
};

// What a letter's descriptor is (Mailbox::send): the memory of that mapper and generation; `gone`: which is not there
// any more, and the descriptor is any.
constexpr std::uint64_t letter(std::size_t mapper, std::uint64_t generation, bool gone = false) {
  return std::uint64_t(gone) << 63 | std::uint64_t(mapper) << 56 | generation;
}

}  // namespace nearfield::reach
