// Passing segments between processes: descriptors over abstract Unix datagram sockets.
//
// Every process binds one socket to a random abstract name, which is its identity as well. The name can be seen by
// everybody on the machine (/proc/net/unix); the secret that belongs to it is known to those alone whom the process
// has met by the bootstrap, and every letter to it must bear that. The kernel attaches the sender's credentials as
// well. What comes from another user, or without the secret, is dropped and its descriptors closed. No file names, so
// nothing is left behind.
//
// Strangers cannot forge a letter, but they can fill a queue, so nobody may depend on letters alone:
// memory::PeerSegment::open is the other way (Peers::fetch, AttachAgreement).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.hpp"

namespace nearfield::reach {

struct MailboxAddress {
  char name[40];            // of the abstract socket, without the leading NUL
  std::uint64_t secret[2];  // that letters to it must bear; never part of a letter from it
  std::string identity() const { return std::string(name, sizeof name); }
};

class Mailbox {
 public:
  static Result<Mailbox> open();
  Mailbox(Mailbox&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), address_(other.address_), refused_(other.refused_) {}
  ~Mailbox();

  const MailboxAddress& address() const { return address_; }

  enum class Sent { yes, again };  // again: the peer's queue is full at the moment
  // `what` the descriptor is, told to the receiver (Peers::collect).
  Result<Sent> send(const MailboxAddress& to, int fd, std::uint64_t what);

  struct Arrived {
    std::string from;  // MailboxAddress::identity of the sender
    std::uint64_t what;
    int fd;     // the receiver's to close
    pid_t pid;  // as the kernel says, in our pid namespace; 0 where it is not visible
  };
  // Does not block: nothing when no letter is there, nor after dropping many, since strangers may send without end.
  Result<std::optional<Arrived>> receive();

  std::uint64_t refused() const { return refused_; }  // datagrams dropped: another user's, or without our secret

 private:
  Mailbox() = default;
  int socket_ = -1;
  MailboxAddress address_{};
  std::uint64_t refused_ = 0;
};

}  // namespace nearfield::reach
