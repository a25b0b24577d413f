// The other processes of this node, and what this process publishes so that they can reach its memory.
//
//   a process                                  a peer
//   card(): its mailbox, its segment, what
//   each mapper publishes
//   --- by the bootstrap ------------------->  meet(): each mapper tries whether it reaches it
//   letter {mapper, generation, descriptor} --->  collect(): maps it and gives it to the mapper
//   place() of a buffer -------------------->  attach()
//
// Processes send each other their segments when they first meet. Another mapper sends the descriptor of its memory when
// a buffer first lies there (attach_agreement.hpp). If no letter comes, a process takes the descriptor from the owner's
// table of descriptors (fetch()).
#pragma once
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/memory/segment.hpp"
#include "engine/reach/in_flight_buffers.hpp"
#include "engine/reach/mailbox.hpp"
#include "engine/reach/mappers.hpp"

namespace nearfield::reach {

// At offset 0 of every segment; team/process_header.hpp adds the words of other layers.
struct SegmentHeader {
  std::uint64_t probe;              // owner, before it sends the segment: a random number that identifies it
  std::atomic<std::uint32_t> left;  // owner: 1 once it has left MPI by MPI_Finalize
};

// A process sends its card to all that are to reach it.
struct Card {
  MailboxAddress address;
  std::int64_t pid, fd;                    // in its own pid namespace; of its segment, in its own table of descriptors
  std::uint64_t header;                    // address of the segment's header in its address space
  std::uint64_t probe;                     // SegmentHeader::probe
  std::uint64_t advertised[mapper_count];  // by MemoryMapper::open
  std::uint32_t mappers;                   // bit 1 << row of each that is open
};

// Another process of this node whose segment is mapped here. Never unmapped before exit.
struct Peer {
  Peer(memory::PeerSegment mapped, pid_t process) : segment(std::move(mapped)), pid(process) {}
  memory::PeerSegment segment;
  pid_t pid = 0;  // 0: not visible from our pid namespace
  int pidfd = -1;
  Card card{};                       // once it is met
  std::uint32_t mappers = 0;         // bit 1 << row of each that reaches it
  std::uint32_t common_mappers = 0;  // mask of mappers by which we may describe our buffers to it
  MapperStates kept;
  bool gone() const;  // returns whether the process has ended; a system call until it has
  bool known_gone() const { return known_gone_.load(std::memory_order_relaxed); }  // gone() has returned true
  const SegmentHeader& header() const { return *reinterpret_cast<const SegmentHeader*>(segment.base()); }
  bool left() const { return header().left.load(std::memory_order_acquire); }  // SYNC: left

 private:
  mutable std::atomic<bool> known_gone_{false};
};

class Peers {
 public:
  // pre: `segment` has its header. `left_out`: from parse_left_out().
  static Result<std::unique_ptr<Peers>> create(memory::Segment& segment, std::uint32_t left_out);
  ~Peers();

  Card card() const;
  memory::Segment& segment() const { return segment_; }
  Mailbox& mailbox() { return mailbox_; }

  std::mutex mutex;  // guards the functions up to leave_out()
  Peer* find(const std::string& identity);
  // Takes the letters out of the mailbox. Returns whether any came. A known peer's segment is never replaced.
  Result<bool> collect();
  // Sends our segment. Returns false where the peer's queue is full.
  Result<bool> send_segment(const MailboxAddress& to);
  bool has_segment(const MailboxAddress& who) const { return sent_.count(who.identity()) != 0; }
  void note_sent(const MailboxAddress& who) { sent_[who.identity()] = true; }
  // Takes the segment from the table of the card's owner, without a letter.
  Result<void> fetch(const Card& card);
  // pre: its segment has come. Later calls for the same peer do nothing.
  Peer& meet(const Card& card);
  Attached attach(Peer& peer, const Region& region);
  // Detaches all memory of a peer that has ended, except what is in use.
  void part(Peer& peer);
  // The process leaves MPI: no buffer of ours is described any more, and mappers revoke what they can.
  void close();

  // Describes a buffer of ours, by one of the mappers in the mask `by`. pre: it is noted as in flight.
  RemoteBuffer place(const void* address, std::size_t bytes, std::uint32_t by) const;
  // Returns whether peers can attach the region of that buffer of ours.
  bool gives(const RemoteBuffer& place) const {
    const MemoryMapper& mapper = *mappers()[place.mapper()];
    return !mapper.gives || mapper.gives(*this, Region::of(place));
  }
  // Returns the first mapper that accesses the peer's memory by calls; may be null.
  static const MemoryMapper* calls(const Peer& peer);
  // Takes a mapper that has failed out of use in this process, whatever has been agreed on. Any thread.
  void leave_out(std::size_t mapper, const std::string& why);
  std::uint32_t open() const { return open_.load(std::memory_order_relaxed); }

  // Buffers that a fork must leave shared.
  InFlightBuffers in_flight_buffers;

  MapperStates kept;

 private:
  Peers(memory::Segment& segment, Mailbox mailbox) : segment_(segment), mailbox_(std::move(mailbox)) {}
  void admit(const std::string& identity, memory::PeerSegment segment, pid_t pid);
  memory::Segment& segment_;
  Mailbox mailbox_;
  std::unordered_map<std::string, std::unique_ptr<Peer>> peers_;
  std::unordered_map<std::string, bool> sent_;
  std::uint64_t advertised_[mapper_count] = {};
  std::atomic<std::uint32_t> open_{0};
  std::uint32_t to_close_ = 0;
};

// Word of a letter (Mailbox::send): its descriptor is of that mapper's memory of that generation. `gone`: that memory
// is gone, and the descriptor means nothing.
constexpr std::uint64_t letter(std::size_t mapper, std::uint64_t generation, bool gone = false) {
  return std::uint64_t(gone) << 63 | std::uint64_t(mapper) << 56 | generation;
}

}  // namespace nearfield::reach
