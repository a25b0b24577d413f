// nearfield-wire PORTS NANOSECONDS BITS_PER_SECOND: a slow network between the pretended nodes of
// tests/nodes/bed.py, where the kernel has none to offer (netem).
//
//   node 0: eth0 --- port0 )                ( port1 --- eth0 :node 1
//                           ) this program (
//
// It makes a TAP interface per port, which the caller moves into the node's namespace, and carries frames between them.
// A frame leaves its node at BITS_PER_SECOND (0: no limit), arrives at its destination at the same rate, and takes
// NANOSECONDS in between. Frames have up to 64 KiB, since the interface says that it segments them itself (TSO). The
// last byte of a MAC address is the port's number; frames with other addresses go to all ports. Standard input: after
// 'x' all frames are lost, after 'o' none; this program ends at its end.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::size_t header = 10;  // the kernel puts it before a frame: how to segment it (virtio_net_hdr)
constexpr std::size_t address_bytes = 6;
constexpr std::size_t most_queued = 4096;  // frames to a port; further ones are lost, as in a switch

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

struct Port {
  int tap;
  Clock::time_point sent, received;  // until when its line is busy, either way
  std::deque<Frame> queue;           // frames to this port, in the order of `due`
};

int open_tap(int number) {
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "port%d", number);
  if (tap < 0 || ioctl(tap, TUNSETIFF, &request) < 0 ||
      ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0) {
    std::fprintf(stderr, "cannot make a TAP interface: %s\n", std::strerror(errno));
    std::exit(1);
  }
  return tap;
}

class Wire {
 public:
  Wire(int ports, nanoseconds delay, double rate) : delay_(delay), rate_(rate) {
    for (int i = 0; i < ports; ++i) ports_.push_back({open_tap(i), {}, {}, {}});
  }

  [[noreturn]] void run() {
    std::vector<pollfd> wanted{{STDIN_FILENO, POLLIN, 0}};
    for (const auto& port : ports_) wanted.push_back({port.tap, POLLIN, 0});
    while (true) {
      const auto left = deliver();
      const timespec wait{left / std::chrono::seconds(1), (left % std::chrono::seconds(1)).count()};
      ppoll(wanted.data(), wanted.size(), left == nanoseconds::max() ? nullptr : &wait, nullptr);
      if (wanted[0].revents) listen();
      for (std::size_t i = 0; i < ports_.size(); ++i)
        if (wanted[i + 1].revents) take(ports_[i]);
    }
  }

 private:
  void listen() {
    char word = 0;
    if (read(STDIN_FILENO, &word, 1) <= 0) std::exit(0);
    lost_ = word == 'x';
  }

  // Reads what a port's node has sent, some frames at a time so that others get their turn.
  void take(Port& from) {
    for (int i = 0; i < 16; ++i) {
      const auto n = read(from.tap, buffer_.data(), buffer_.size());
      if (n <= static_cast<ssize_t>(header + address_bytes)) return;
      if (lost_) continue;
      const auto now = Clock::now();
      const nanoseconds line(rate_ > 0 ? static_cast<long long>((n - header) * 8e9 / rate_) : 0);
      from.sent = std::max(now, from.sent) + line;
      const auto* address = reinterpret_cast<const unsigned char*>(buffer_.data()) + header;
      const bool one = !(address[0] & 1) && address[address_bytes - 1] < ports_.size();
      for (std::size_t p = 0; p < ports_.size(); ++p)
        if (&ports_[p] != &from && (!one || p == address[address_bytes - 1])) put(ports_[p], from.sent, line, n);
    }
  }

  void put(Port& to, Clock::time_point sent, nanoseconds line, ssize_t n) {
    if (to.queue.size() == most_queued) return;
    to.received = std::max(sent, to.received + line);
    to.queue.push_back({to.received + delay_, {buffer_.data(), buffer_.data() + n}});
  }

  // Delivers the frames that are due. Returns the time until the next one is.
  nanoseconds deliver() {
    auto left = nanoseconds::max();
    for (auto& port : ports_) {
      const auto now = Clock::now();
      while (!port.queue.empty() && port.queue.front().due <= now) {
        const auto& bytes = port.queue.front().bytes;
        if (!lost_ && write(port.tap, bytes.data(), bytes.size()) < 0 && errno == EAGAIN) break;
        port.queue.pop_front();
      }
      if (!port.queue.empty())
        left = std::min(left, std::max<nanoseconds>(port.queue.front().due - now, nanoseconds(1000)));
    }
    return left;
  }

  std::vector<Port> ports_;
  nanoseconds delay_;
  double rate_;
  bool lost_ = false;
  std::array<char, header + 14 + 65536> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: nearfield-wire PORTS NANOSECONDS BITS_PER_SECOND\n"), 2;
  // Runs before ranks, which poll. Without the permission for this priority the network is a little slower.
  const sched_param priority{.sched_priority = 1};
  sched_setscheduler(0, SCHED_FIFO, &priority);
  Wire wire(std::atoi(argv[1]), nanoseconds(std::atoll(argv[2])), std::atof(argv[3]));
  std::puts("ready");
  std::fflush(stdout);
  wire.run();
}
