// Buffered sends: a message that cannot leave at once is copied and sent from the copy.
//
//   send       at once, as a rule: nothing is copied
//              else  copy, start, keep it as outgoing     counts against the buffer of its key
//   later      outgoing ones that are complete (Follower) are collected in every call here, and no longer count
//   flush      waits until nothing counts against a key
//
// Memory of the user's that is attached is never written to: it says how much may be outstanding. A key is whose memory
// it is: the process's, or that of a context of messages or of what several of these come from, numbered by the caller.
#pragma once
#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/memory/temporaries.hpp"
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

// Called by all threads at any time.
class Buffered {
 public:
  using Key = std::uint64_t;
  static constexpr Key process = 0;

  struct Attached {
    void* address;
    std::uint64_t bytes;
    bool automatic;  // as much as is needed may be outstanding
  };
  void attach(Key key, const Attached& buffer);
  void detach(Key key);
  std::optional<Attached> attached(Key key);
  // Where nothing is attached to `key`, what is attached to `behind` is used, and only then the process's.
  void put_behind(Key key, Key behind);
  Key behind(Key key);  // the process where there is none
  // Who has that key goes, which may be told by callers that hold locks. What is still on its way must not count
  // against the next one with that key.
  void forget(Key key);

  // Sends, counted against what is attached to `key`, or behind it, else to the process. `overhead`: bytes that count
  // beside the message's own. Messages of up to `free` bytes need no room where there is none, and then do not count.
  enum class Sent : std::uint8_t { yes, no_room, no_memory };
  Sent send(Messenger& messenger, Key key, int member, const Envelope& envelope, const layout::Data& data,
            std::uint64_t overhead, std::int64_t free = -1);

  std::uint64_t outstanding(Key key);  // bytes that count against it
  // Until nothing counts against it. Throws Broken where a receiver has died.
  void flush(Messenger& messenger, Key key);
  bool any_outgoing();
  // Whether a message that counts against `key` is on its way to that member.
  bool on_its_way(Key key, int member);

  // Messages are numbered in the order in which they were copied.
  std::uint64_t last();
  // Whether one of that key with a number up to `last` is outstanding.
  bool outstanding(Key key, std::uint64_t last);

 private:
  struct Outgoing final : Follower {
    Outgoing(Buffered& all, std::size_t bytes) : all(all), copy(bytes ? bytes : 1) {}
    void follow(FunctionRef<void(Request&)>) override;
    Buffered& all;
    memory::Temporary copy;
    Request request;
    std::uint64_t counted = 0;  // bytes
    Key key = process;
    std::uint64_t account = 0;  // the number of the key's
    std::uint64_t number = 0;
    std::list<Outgoing>::iterator self;
    Outgoing* next_complete = nullptr;
  };
  struct Account {
    std::uint64_t number = 0;  // since another one may have the key later
    std::optional<Attached> attached;
    std::uint64_t used = 0;  // bytes
    Key behind = process;
    bool has_room(std::uint64_t bytes) const {
      return attached && (attached->automatic || used + bytes <= attached->bytes);
    }
  };
  // Under the mutex.
  void drop_gone();
  void collect();
  Account& account_of(Key key);  // made if need be
  std::uint64_t number_of(Key key) const;
  std::map<Key, Account>::iterator account_for(Key key);

  std::mutex mutex_;
  std::map<Key, Account> accounts_;
  std::list<Outgoing> outgoing_;
  std::uint64_t last_ = 0, last_account_ = 0;
  std::atomic<Outgoing*> complete_{nullptr};  // a stack; those under the messenger's lock put in, collect() takes all

  // Apart, for callers of forget() whose locks the messenger may want.
  std::mutex gone_mutex_;
  std::vector<Key> gone_;
  std::atomic<bool> any_gone_{false};
  std::atomic<bool> more_than_the_process_{false};  // has ever attached
};

}  // namespace nearfield::messages
