#include "engine/reach/mailbox.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace nearfield::reach {
namespace {

constexpr std::uint32_t magic = 0x4e656172;

constexpr int strangers_at_once = 64;  // that one call drops

struct Letter {
  std::uint64_t magic;
  std::uint64_t secret[2];  // the receiver's
  char from[sizeof MailboxAddress::name];
  std::uint64_t what;
};

socklen_t fill(sockaddr_un& socket_address, const MailboxAddress& address) {
  socket_address = {};
  socket_address.sun_family = AF_UNIX;
  std::memcpy(socket_address.sun_path + 1, address.name, sizeof address.name);
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + sizeof address.name);
}

}  // namespace

Mailbox::~Mailbox() {
  if (socket_ >= 0) close(socket_);
}

Result<Mailbox> Mailbox::open() {
  Mailbox mailbox;
  mailbox.socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (mailbox.socket_ < 0) return system_error("opening a Unix socket");
  const int on = 1;
  if (setsockopt(mailbox.socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
    return system_error("asking for peers' credentials (SO_PASSCRED)");
  std::uint8_t random[12];
  if (getrandom(random, sizeof random, 0) != sizeof random) return system_error("getrandom");
  if (getrandom(mailbox.address_.secret, sizeof mailbox.address_.secret, 0) != sizeof mailbox.address_.secret)
    return system_error("getrandom");
  static constexpr char prefix[] = "nearfield-";
  std::memcpy(mailbox.address_.name, prefix, sizeof prefix - 1);
  static constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = sizeof prefix - 1, bit = 0; i < sizeof mailbox.address_.name; ++i, ++bit)
    mailbox.address_.name[i] = bit < 24 ? digits[random[bit / 2] >> (bit % 2 * 4) & 15] : '.';
  sockaddr_un name;
  const socklen_t length = fill(name, mailbox.address_);
  if (bind(mailbox.socket_, reinterpret_cast<sockaddr*>(&name), length))
    return system_error("binding an abstract Unix socket");
  return mailbox;
}

Result<Mailbox::Sent> Mailbox::send(const MailboxAddress& to, int fd, std::uint64_t what) {
  sockaddr_un name;
  Letter letter{magic, {to.secret[0], to.secret[1]}, {}, what};
  std::memcpy(letter.from, address_.name, sizeof letter.from);
  iovec data{&letter, sizeof letter};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_name = &name;
  message.msg_namelen = fill(name, to);
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sent::yes;
  // ETOOMANYREFS: too many of our descriptors are in flight; they land as soon as the peers receive.
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS) return Sent::again;
  return system_error("passing a segment to a peer");
}

Result<std::optional<Mailbox::Arrived>> Mailbox::receive() {
  for (int dropped = 0; dropped < strangers_at_once;) {
    Letter letter{};
    iovec data{&letter, sizeof letter};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int) * 8)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
      if (errno == EAGAIN) return std::optional<Arrived>{};
      if (errno == EINTR) continue;
      return system_error("receiving a peer's segment");
    }
    int fds[8], count = 0;
    ucred sender{0, uid_t(-1), gid_t(-1)};
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
      if (h->cmsg_level != SOL_SOCKET) continue;
      if (h->cmsg_type == SCM_CREDENTIALS) std::memcpy(&sender, CMSG_DATA(h), sizeof sender);
      if (h->cmsg_type == SCM_RIGHTS) {
        count = int((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(fds, CMSG_DATA(h), count * sizeof(int));
      }
    }
    const bool known = got == sizeof letter && !(message.msg_flags & MSG_TRUNC) && letter.magic == magic &&
                       sender.uid == geteuid() &&
                       !((letter.secret[0] ^ address_.secret[0]) | (letter.secret[1] ^ address_.secret[1]));
    const bool whole = count == 1 && !(message.msg_flags & MSG_CTRUNC);
    for (int i = 0; i < count; ++i)
      if (!known || !whole) close(fds[i]);
    if (known)
      return std::optional<Arrived>(
          Arrived{std::string(letter.from, sizeof letter.from), letter.what, whole ? fds[0] : -1, sender.pid});
    ++refused_;
    ++dropped;
  }
  return std::optional<Arrived>{};
}

}  // namespace nearfield::reach
