// Processes pass each other descriptors of their memory over abstract Unix datagram sockets.
//
//   process A                                        process B
//   open(): name, secret
//   --- name and secret, by the bootstrap -------->  send(): B's name, A's secret, a word, a descriptor
//   receive(): checks user and secret  <-----------  by the kernel, with B's credentials
//              takes the descriptor, or drops the letter
//
// The name is random and identifies the process. Everybody on the machine can see it (/proc/net/unix), but only
// processes that were met by the bootstrap know the secret. A letter of another user, or without the secret, is dropped
// and its descriptors closed. Abstract names are no files, so nothing is left behind.
//
// Strangers cannot forge a letter, but they can fill a queue, so no protocol depends on letters alone: a process can
// take the descriptor from its owner's table instead (memory::PeerSegment::open, by Peers::fetch and AttachAgreement).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.hpp"

namespace nearfield::reach {

struct MailboxAddress {
  char name[40];            // of the abstract socket, without the leading NUL
  std::uint64_t secret[2];  // in every letter to it, in none from it
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
  // `what`: tells the receiver of which memory the descriptor is (Peers::collect).
  Result<Sent> send(const MailboxAddress& to, int fd, std::uint64_t what);

  struct Arrived {
    std::string from;  // MailboxAddress::identity of the sender
    std::uint64_t what;
    int fd;     // the receiver's to close; -1: it has not come through, since too many files are open here
    pid_t pid;  // as the kernel says, in our pid namespace; 0 where it is not visible
  };
  // Does not block. Returns nothing where no letter has come, and after dropping many, since strangers may send without
  // end.
  Result<std::optional<Arrived>> receive();

  std::uint64_t refused() const { return refused_; }  // datagrams dropped: another user's, or without our secret

 private:
  Mailbox() = default;
  int socket_ = -1;
  MailboxAddress address_{};
  std::uint64_t refused_ = 0;
};

}  // namespace nearfield::reach
