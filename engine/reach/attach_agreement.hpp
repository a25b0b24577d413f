// How the members of a team agree on what they have attached of each other.
//
// Whether a place can be reached must be the same answer on all members, its owner included. What stands from the
// beginning needs no word; everything else is settled once:
//
//   all members learn the same places, at least one of which nobody has settled yet
//   owner of a new region    passes its peers what they need (a letter; `offered` tells it as well, to those to whom
//                            no letter comes)
//   everybody                attaches what is new, says which mappers have failed
//   (the team meets)
//   everybody                reads what all have said: what has failed for one has failed for all
//
// What was refused is not tried again: it is out of reach for this team. A mapper that is out for one is out for all.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/base/atomic.hpp"
#include "engine/reach/attachments.hpp"

namespace nearfield::reach {

class AttachAgreement {
 public:
  // Of each member; numbers are those of agreements so far.
  struct ControlBlock {
    Atomic<std::uint64_t> offered;   // owner: generation << 32 | descriptor, 0: none; pairs with fetch
    Atomic<std::uint64_t> complete;  // owner: it has attached everything; pairs with step: need not be sent to
    Atomic<std::uint64_t> through;   // owner: it has passed everything, too; pairs with step: nothing more will come
    std::uint32_t failed;            // owner, published by the team's meeting: a bit of each mapper whose news it lacks
    std::uint32_t out;               // owner, published by the team's meeting: and of each that is out there for good
  };

  // `peers`: nullptr for ourselves. Waits for nobody.
  AttachAgreement(Peers& own, std::span<Peer* const> peers, std::uint32_t by);
  ~AttachAgreement() { abandon(); }
  // Where a member's words lie.
  void join(int member, ControlBlock& words) { words_[std::size_t(member)] = &words; }

  enum class Seen : std::uint8_t { reached, out_of_reach, news };
  // What all members know about a place of one of them; `at`: where it lies here, unless it is our own.
  Seen see(int member, const RemoteBuffer& place, std::byte*& at) const {
    at = nullptr;
    if (!place.anything()) return place.reachable() ? Seen::reached : Seen::out_of_reach;
    const Attachments::Entry* const entry = of_[std::size_t(member)].find(place);
    if (!entry) return see_unknown(member, place);
    if (entry->refused) return Seen::out_of_reach;
    at = entry->at ? entry->resolve(place) : nullptr;
    return Seen::reached;
  }
  // Where the members find a buffer of ours; the noticeboard must tell about it already.
  RemoteBuffer place(const void* address, std::size_t bytes) const {
    const RemoteBuffer found = peers_.place(address, bytes, by_);
    if (!found.anything() || of_[std::size_t(me_)].find(found)) [[likely]]
      return found;
    return peers_.gives(found) ? found : RemoteBuffer();
  }

  // Collective. `place(member, i)`: all places that the members have told, two of each; one of them was news.
  template <class Places>
  void begin(Places place) {
    start();
    for (int m = 0; m < int(of_.size()); ++m)
      for (int i = 0; i < 2; ++i) note(m, place(m, i));
  }
  // Does what can be done now, and does not wait; whether our part is done. Then the members meet.
  bool step();
  // Who is still awaited by step().
  bool lacks(int member) const;
  // Once all members have met.
  void end();
  // Instead of the rest: what was offered is not any more.
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
  std::vector<News> news_;  // of the agreement under way; has room for all
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
