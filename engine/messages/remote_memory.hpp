// Describes our data to the other side of a message, and finds the other side's.
//
// Threads: share() by any thread; everything else needs the messenger's lock.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/messages/mailboxes.hpp"
#include "engine/messages/request.hpp"

namespace nearfield::messages {

class RemoteMemory {
 public:
  // Throws std::bad_alloc.
  explicit RemoteMemory(Mailboxes& mailboxes);

  // Describes our data for that member. May throw std::bad_alloc.
  RemoteLayout describe(int member, const layout::Data& data);
  // Fills in where the other side's data lie. Returns whether they can be reached. May throw std::bad_alloc.
  bool adopt(int member, const RemoteLayout& where, std::uint64_t bytes, InBlocks& part);
  // Returns the mapper that accesses its memory by system calls; nullptr: none.
  const reach::MemoryMapper* calls(int member) const { return calls_[std::size_t(member)]; }
  // Copies the runs of a layout to where peers can read them; `keep` keeps them there.
  layout::View share(layout::Builder& builder, std::int64_t extent, std::shared_ptr<const void>& keep);

 private:
  reach::RemoteBuffer place_for(int member, const std::byte* begin, std::size_t bytes);
  std::byte* resolve(int member, const reach::RemoteBuffer& place, std::shared_ptr<const void>& mapping);

  struct Reached {
    Reached(reach::Peers& reach, reach::Peer* peer) : theirs(reach, peer, peer ? peer->mappers : 0) {}
    reach::Attachments theirs;
    reach::Region passed;  // region of ours for which the peer has been sent what it needs
  };
  // Places for short lists of runs, which are used again and again. Any thread may put one back.
  class ListsOfRuns {
   public:
    static constexpr std::size_t bytes = 4 * sizeof(layout::Run), places = 64;
    std::optional<std::size_t> take(memory::Arena& arena);
    void put_back(std::size_t place);

   private:
    std::mutex mutex_;
    std::vector<std::size_t> free_;
    bool asked_ = false;
  };
  Mailboxes& mailboxes_;
  team::Process& process_;
  std::vector<Reached> attached_;
  std::vector<const reach::MemoryMapper*> calls_;
  ListsOfRuns lists_of_runs_;
};

}  // namespace nearfield::messages
