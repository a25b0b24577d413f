// Passing segments between processes: descriptors over abstract Unix datagram sockets.
//
// Every process binds one socket to a random abstract name, which is its identity as well. The kernel attaches the
// sender's credentials to each datagram; one from another user is dropped and its descriptor closed. No file names,
// so nothing is left behind.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "engine/result.hpp"

namespace nearfield::memory {

struct Address {
  char name[40];  // of the abstract socket, without the leading NUL
};

class Exchange {
 public:
  static Result<Exchange> open();
  Exchange(Exchange&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), address_(other.address_), refused_(other.refused_) {}
  ~Exchange();

  const Address& address() const { return address_; }

  enum class Sent { yes, again };  // again: the peer's queue is full at the moment
  // `what` the descriptor is, told to the receiver: 0 the sender's segment, else a generation of its shared heap.
  Result<Sent> send(const Address& to, int fd, std::uint64_t what);

  struct Arrived {
    Address from;
    std::uint64_t what;
    int fd;     // the receiver's to close
    pid_t pid;  // as the kernel says, in our pid namespace; 0 where it is not visible
  };
  // Does not block: nothing when no datagram is there.
  Result<std::optional<Arrived>> receive();

  std::uint64_t refused() const { return refused_; }  // datagrams dropped: another user's, or malformed

 private:
  Exchange() = default;
  int socket_ = -1;
  Address address_{};
  std::uint64_t refused_ = 0;
};

}  // namespace nearfield::memory
