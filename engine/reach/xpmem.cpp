// XPMEM: a kernel module maps any memory of a process into a peer. Needs its library, libxpmem, at run time only.
//
//   owner                                  peer
//   make: names all its memory
//   --- card: that name --------------->   get, when it is first needed: a grant for that memory
//   place {address, bytes} ------------>   attach: maps the pages around these, and keeps them for later calls
//                                          detach: the piece that was not needed for longest, beyond most_pieces
//                                          release: the grant, with its last piece
//   remove: the name, when it leaves MPI
//
// Assumptions. An attachment is of addresses, not of memory. At the first access the module looks pages up in the
// owner's address space, and makes them, as an access of the owner would. When the owner unmaps, remaps or moves them,
// notifiers of the kernel make the module forget them, and the next access looks them up again. So an attachment never
// goes stale, whatever the owner frees and maps at the same place. Only an access to addresses where the owner has
// mapped nothing is an error (SIGBUS). We access buffers that the program has passed to a call that is under way, so
// they exist. Memory that the kernel does not share (of devices, or attached by XPMEM itself) is not described to peers
// (gives).
//
// Forks. The kernel makes the owner's pages copy on write, and then the module forgets them. The peer's next access is
// a write access in the owner's name and breaks the sharing for the owner, as a write of the owner would. So peers go
// on with the owner's pages. A child keeps the old contents, except bytes that peers were storing at that moment. A
// child may expect no more of a buffer that is being received into, so nothing is noted or revoked. Attachments are not
// inherited, and a child must not touch its parent's grants.
//
// When an owner dies its pages go, and a peer that is copying them ends by SIGBUS; a segment would have stayed.
//
// After a failure of any function this process no longer uses the mapper, nor, by agreement of the members, do its
// teams.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "engine/base/log.hpp"
#include "engine/reach/peers.hpp"

namespace nearfield::reach {
namespace {

// As xpmem.h declares it.
using SegmentId = std::int64_t;
using GrantId = std::int64_t;
struct XpmemAddress {
  GrantId grant;
  off_t offset;
};
constexpr std::size_t all_memory = ~std::size_t{0};
constexpr int read_write = 2, permit_mode = 1;
void* const owner_only = reinterpret_cast<void*>(0600);
void* const failed = reinterpret_cast<void*>(-1);

constexpr std::size_t most_pieces = 64;  // of one peer, besides those in use

struct Library {
  SegmentId (*make)(void*, std::size_t, int, void*) = nullptr;
  int (*remove)(SegmentId) = nullptr;
  GrantId (*get)(SegmentId, int, int, void*) = nullptr;
  int (*release)(GrantId) = nullptr;
  void* (*attach)(XpmemAddress, std::size_t, void*) = nullptr;
  int (*detach)(void*) = nullptr;
};

struct XpmemOfProcess : MapperState {
  Library library;
  SegmentId segment = -1;
  pid_t pid = 0;
};

XpmemOfProcess& own(Peers& self) { return kept<XpmemOfProcess>(self, xpmem_mapper); }

// Shared by its pieces; the last one releases it.
struct Grant {
  Grant(const XpmemOfProcess& own, GrantId id) : library(own.library), pid(own.pid), id(id) {}
  Grant(const Grant&) = delete;
  ~Grant() {
    if (getpid() == pid) library.release(id);
  }
  const Library library;
  const pid_t pid;
  const GrantId id;
};

struct AttachedPiece {
  AttachedPiece(std::shared_ptr<Grant> grant, std::byte* at, const Region& region)
      : grant(std::move(grant)), at(at), begin(region.begin), end(region.end) {}
  AttachedPiece(const AttachedPiece&) = delete;
  ~AttachedPiece() {
    if (getpid() == grant->pid) grant->library.detach(at);
  }
  const std::shared_ptr<Grant> grant;
  std::byte* const at;
  const std::uint64_t begin, end;
};

struct XpmemOfPeer : MapperState {
  SegmentId segment = -1;
  std::shared_ptr<Grant> grant;
  std::list<std::shared_ptr<AttachedPiece>> pieces;  // most recently used first
};

XpmemOfPeer& of(Peer& peer) { return kept<XpmemOfPeer>(peer, xpmem_mapper); }

Result<std::uint64_t> open(Peers& self) {
  // The loader looks for a library in a dozen directories, which would take 0.3 ms of each start.
  if (access("/dev/xpmem", F_OK) != 0 && !dlsym(RTLD_DEFAULT, "xpmem_make"))
    return Error{"there is no /dev/xpmem: the kernel module is not loaded"};
  void* library = dlopen("libxpmem.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libxpmem.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = dlerror();
    return Error{std::string("loading libxpmem: ") + (why ? why : "not found")};
  }
  XpmemOfProcess opened;
  const char* lacking = nullptr;
  auto look_up = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function) lacking = name;
  };
  look_up(opened.library.make, "xpmem_make");
  look_up(opened.library.remove, "xpmem_remove");
  look_up(opened.library.get, "xpmem_get");
  look_up(opened.library.release, "xpmem_release");
  look_up(opened.library.attach, "xpmem_attach");
  look_up(opened.library.detach, "xpmem_detach");
  // A machine without the library is usual; one where the library does not work is worth a line of log.
  const auto left_out = [](const Error& error) {
    log_line(LogLevel::info, "XPMEM is not used: %s", error.text.c_str());
    return error;
  };
  if (lacking) return left_out(Error{std::string("libxpmem lacks ") + lacking});
  opened.segment = opened.library.make(nullptr, all_memory, permit_mode, owner_only);
  if (opened.segment == -1) return left_out(system_error("xpmem_make (may this user open /dev/xpmem?)"));
  opened.pid = getpid();
  own(self) = opened;
  return std::uint64_t(opened.segment);
}

void close(Peers& self) {
  XpmemOfProcess& mine = own(self);
  if (getpid() == mine.pid) mine.library.remove(mine.segment);
}

Result<void> meet(Peers&, Peer& peer, std::uint64_t advertised) {
  of(peer).segment = SegmentId(advertised);
  return {};
}

RemoteBuffer place(const Peers&, std::size_t mapper, const void* address, std::size_t bytes) {
  if (bytes > RemoteBuffer::most_bytes) return {};
  return RemoteBuffer(mapper, 0, std::uint64_t(address), bytes);
}

// Reads its first and last byte as a peer would.
bool gives(const Peers&, const Region& region) {
  for (const std::uint64_t at : {region.begin, region.end - 1}) {
    char byte;
    iovec here{&byte, 1}, there{reinterpret_cast<void*>(at), 1};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT) return false;
  }
  return true;
}

Attached attach(Peers& self, Peer& peer, const Region& region) {
  XpmemOfPeer& theirs = of(peer);
  auto& pieces = theirs.pieces;
  auto piece = std::ranges::find_if(
      pieces, [&](const auto& each) { return each->begin <= region.begin && region.end <= each->end; });
  const auto give_up = [&](const char* what) {
    const std::string why = system_error(std::string(what) + " of process " + std::to_string(peer.pid)).text;
    self.leave_out(index_of(xpmem_mapper), why);
    return Attached{.why = why};
  };
  if (piece == pieces.end()) {
    const XpmemOfProcess& mine = own(self);
    if (!theirs.grant) {
      const GrantId grant = mine.library.get(theirs.segment, read_write, permit_mode, owner_only);
      if (grant == -1 || grant == 0) return give_up("xpmem_get");
      theirs.grant = std::make_shared<Grant>(mine, grant);
    }
    for (auto oldest = pieces.end(); pieces.size() >= most_pieces && oldest != pieces.begin();)
      if ((--oldest)->use_count() == 1) oldest = pieces.erase(oldest);
    void* const at = mine.library.attach({theirs.grant->id, off_t(region.begin)}, region.end - region.begin, nullptr);
    if (at == failed || !at) return give_up("xpmem_attach");
    pieces.push_front(std::make_shared<AttachedPiece>(theirs.grant, static_cast<std::byte*>(at), region));
  } else {
    pieces.splice(pieces.begin(), pieces, piece);
  }
  const auto& found = pieces.front();
  return {.state = Attached::State::yes, .at = found->at + (region.begin - found->begin), .keep = found};
}

void part(Peers&, Peer& peer) {
  of(peer).pieces.clear();
  of(peer).grant.reset();
}

}  // namespace

constinit const MemoryMapper xpmem_mapper = {
    .name = "xpmem",
    .title = "XPMEM",
    .about = "a kernel module maps any memory of the peer's",
    .costs = {.access = 0.1, .call = 0, .attach = 2000, .page = 600},
    .open = open,
    .meet = meet,
    .place = place,
    .gives = gives,
    .attach = attach,
    .part = part,
    .close = close,
};

}  // namespace nearfield::reach
