// Members of a team agree on which of each other's memory they have attached.
//
// All members, the owner included, must give the same answer to whether a remote buffer can be reached. Regions that
// are attached from the beginning (MemoryMapper::standing) need no agreement; every other region needs one:
//
//   all members see the same remote buffers, at least one of which lies in a region not agreed on yet
//   owner of a new region    sends its peers a descriptor (a letter; `offered` publishes it as well, for those to whom
//                            no letter comes)
//   everybody                attaches the new regions, publishes which mappers have failed
//   (the team meets)
//   everybody                reads all members' masks: a mapper that failed for one has failed for all
//
// A refused region stays out of reach for this team. A mapper that is out for one member is out for all.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/base/atomic.hpp"
#include "engine/reach/attachments.hpp"

namespace nearfield::reach {

class AttachAgreement {
 public:
  // One for each member. `complete` and `through`: number of the last agreement in which that holds.
  struct ControlBlock {
    Atomic<std::uint64_t> offered;   // owner: generation << 32 | descriptor, 0: none
    Atomic<std::uint64_t> complete;  // owner: it has attached all regions, so nothing more need be sent to it
    Atomic<std::uint64_t> through;   // owner: it has also sent all of its own, so nothing more comes from it
    // owner, published by the team's barrier: bit of each mapper that failed to attach a new region
    std::uint32_t failed;
    std::uint32_t out;  // owner, published by the team's barrier: bit of each mapper that it no longer uses
  };

  // `peers`: nullptr for ourselves. Does not wait.
  AttachAgreement(Peers& own, std::span<Peer* const> peers, std::uint32_t by);
  ~AttachAgreement() { abandon(); }
  // `words`: the member's control block.
  void join(int member, ControlBlock& words) { words_[std::size_t(member)] = &words; }

  enum class Seen : std::uint8_t { reached, out_of_reach, news };
  // Looks `place` of a member up; all members get the same answer, `news` if its region is not agreed on yet. `at`: its
  // address here, unless it is our own.
  Seen see(int member, const RemoteBuffer& place, std::byte*& at) const {
    at = nullptr;
    if (!place.anything()) return place.reachable() ? Seen::reached : Seen::out_of_reach;
    const Attachments::Entry* const entry = of_[std::size_t(member)].find(place);
    if (!entry) return see_unknown(member, place);
    if (entry->refused) return Seen::out_of_reach;
    at = entry->at ? entry->resolve(place) : nullptr;
    return Seen::reached;
  }
  // Describes a buffer of ours. pre: it is noted as in flight.
  RemoteBuffer place(const void* address, std::size_t bytes) const {
    const RemoteBuffer found = peers_.place(address, bytes, by_);
    if (!found.anything() || of_[std::size_t(me_)].find(found)) [[likely]]
      return found;
    return peers_.gives(found) ? found : RemoteBuffer();
  }

  // Collective. `place(member, i)`: the two remote buffers that each member has published; at least one
  // lies in a region not agreed on yet.
  template <class Places>
  void begin(Places place) {
    start();
    for (int m = 0; m < int(of_.size()); ++m)
      for (int i = 0; i < 2; ++i) note(m, place(m, i));
  }
  // Does what it can without waiting. Returns whether our part is done; then the members meet.
  bool step();
  // Returns whether step() still waits for that member.
  bool lacks(int member) const;
  // pre: all members have met since step() returned true.
  void end();
  // Withdraws the offered descriptor and closes it.
  void abandon();

 private:
  struct News {
    int member;
    Region region;
    bool done = false;
    std::byte* at = nullptr;
    std::shared_ptr<const void> keep = {};
  };
  Seen see_unknown(int member, const RemoteBuffer& place) const;
  void start();
  void note(int member, const RemoteBuffer& place);
  void fail(std::size_t mapper, const std::string& why);
  void fail_all(const std::string& why);
  bool attach_news();
  bool pass_news();
  void fetch(const News& news);

  Peers& peers_;
  std::vector<Peer*> peer_;
  std::vector<ControlBlock*> words_;
  std::vector<Attachments> of_;
  std::vector<News> news_;  // of the agreement under way; reserved, so that note() does not allocate
  int me_ = 0;
  std::uint32_t by_ = 0;  // mappers that all have; the same on all
  std::uint64_t number_ = 0, begun_ = 0, next_fetch_ = 0;
  std::uint32_t failed_ = 0;
  bool receives_ = true;
  std::vector<char> was_through_;
  int offered_ = -1;  // our descriptor
  std::string error_;
};

}  // namespace nearfield::reach
