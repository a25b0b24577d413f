// Alltoall by some of a node's ranks, any number of leaders between one and all.
//
// A node's locals are dealt to as many groups as there are leaders; local g leads group g of its node, and carries what
// other nodes have for its group, and what this node has for group g of theirs: one message for each pair of nodes and
// group.
//
//   all       copy their blocks from their buffers into the memory that the leaders send; node barrier
//   leaders   send and receive; meanwhile the others take what their own node has for them; node barrier
//   all       take their blocks out of what their leader has received; node barrier
//
// of a node's leader g, by node N    sends      [local of the group there][local here]
//                                    receives   [local of the group here][local there]
//
// Where the leaders' memory is not in segments, blocks go through gathers and scatters of the node.
#include <algorithm>
#include <cstring>

#include "engine/hierarchy/groups.hpp"

namespace nearfield::hierarchy {
namespace {

using Room = Hierarchy::Room;

struct RankRange {
  int first, last;
  std::size_t count() const { return std::size_t(last - first); }
};

class MultiLeaderAlltoall {
 public:
  MultiLeaderAlltoall(Hierarchy& s, const Call& call, int leaders)
      : s_(s),
        places_(s.placement()),
        block_(call.bytes),
        leaders_(leaders),
        locals_(std::size_t(s.locals())),
        send_(static_cast<const std::byte*>(call.send)),
        recv_(static_cast<std::byte*>(call.recv)) {}

  void run() {
    const bool leads = s_.local() < leaders_;
    const std::size_t sends = leads ? at_node(s_.local(), s_.nodes()) : 0;
    const std::size_t gets = leads ? std::size_t(s_.size()) * group(s_.node(), s_.local()).count() * block_ : 0;
    const Room given(s_, sends), got(s_, gets);
    for (int g = 0; g < leaders_; ++g) s_.open(g);
    if (!find(given, got)) return by_node_phases(given, got);
    s_.hold();
    for (int g = 0; g < leaders_; ++g) put(given_of(g), g);
    s_.node_barrier();
    if (leads) start(given.data(), got.data());
    take_own(given_of(mine()));
    if (leads) s_.wait(0);
    s_.node_barrier();
    take(got_of(mine()));
    s_.node_barrier();
    s_.let_go();
  }

 private:
  // The locals of a node that are in a group.
  RankRange group(int node, int g) const {
    const int p = places_.ranks_on(node);
    auto first = [&](int of) { return (of * p + leaders_ - 1) / leaders_; };
    return {first(g), first(g + 1)};
  }
  int mine() const { return s_.local() * leaders_ / s_.locals(); }
  // Where the part for a node begins in what leader g here sends; the end for the number of nodes.
  std::size_t at_node(int g, int node) const {
    std::size_t before = 0;
    for (int n = 0; n < node; ++n) before += group(n, g).count();
    return before * locals_ * block_;
  }
  // Where a node's part begins in what the leader of our group gets.
  std::size_t from_node(int node, std::size_t in_group) const {
    return std::size_t(places_.before(node)) * in_group * block_;
  }

  // Where the leaders' memory is; false where peers cannot reach it.
  bool find(const Room& given, const Room& got) {
    const std::size_t own[2] = {given.offset(), got.offset()};
    where_.resize(2 * locals_);
    s_.node_allgather(own, where_.data(), sizeof own);
    if (!s_.team()) return false;
    const auto used = where_.begin() + 2 * leaders_;
    return std::find(where_.begin(), used, 0) == used;
  }
  std::byte* given_of(int g) const { return s_.team()->segment_of(g) + where_[2 * std::size_t(g)]; }
  std::byte* got_of(int g) const { return s_.team()->segment_of(g) + where_[2 * std::size_t(g) + 1]; }

  void put(std::byte* into, int g) const { put_blocks(into + std::size_t(s_.local()) * block_, g, locals_ * block_); }
  // What we have for group g of all nodes, each block so far from the one before.
  void put_blocks(std::byte* into, int g, std::size_t apart) const {
    for (int node = 0; node < s_.nodes(); ++node) {
      const RankRange there = group(node, g);
      for (int j = there.first; j < there.last; ++j, into += apart)
        std::memcpy(into, send_ + std::size_t(places_.rank(node, j)) * block_, block_);
    }
  }
  void start(const std::byte* given, std::byte* got) {
    const int g = s_.local();
    const std::size_t in_group = group(s_.node(), g).count();
    std::size_t at = 0;
    for (int node = 0; node < s_.nodes(); ++node) {
      const bool own = node == s_.node();
      const std::size_t bytes = group(node, g).count() * locals_ * block_;
      sent_bytes_.push_back(own ? 0 : bytes);
      sent_at_.push_back(at);
      at += bytes;
      got_bytes_.push_back(own ? 0 : std::size_t(places_.ranks_on(node)) * in_group * block_);
      got_at_.push_back(from_node(node, in_group));
    }
    s_.start(0, g,
             {.move = Move::alltoall,
              .from = {const_cast<std::byte*>(given), sent_bytes_, sent_at_},
              .into = {got, got_bytes_, got_at_}});
  }
  void take_part(const std::byte* from, int node) const {
    for (int i = 0; i < places_.ranks_on(node); ++i, from += block_)
      std::memcpy(recv_ + std::size_t(places_.rank(node, i)) * block_, from, block_);
  }
  std::size_t in_own_group() const { return std::size_t(s_.local() - group(s_.node(), mine()).first); }
  void take_own(const std::byte* given) const {
    take_part(given + at_node(mine(), s_.node()) + in_own_group() * locals_ * block_, s_.node());
  }
  void take(const std::byte* got) const {
    const std::size_t in_group = group(s_.node(), mine()).count();
    for (int node = 0; node < s_.nodes(); ++node)
      if (node != s_.node())
        take_part(got + from_node(node, in_group) + in_own_group() * std::size_t(places_.ranks_on(node)) * block_,
                  node);
  }

  void by_node_phases(const Room& given, const Room& got) {
    for (int g = 0; g < leaders_; ++g) {
      const std::size_t all = at_node(g, s_.nodes()), each = all / locals_;
      const bool leads = s_.local() == g;
      const Room one(s_, each), gathered(s_, leads ? all : 0);
      put_blocks(one.data(), g, block_);
      s_.node_gather(one.data(), gathered.data(), each, g);
      for (std::size_t i = 0; leads && i < locals_; ++i)
        for (std::size_t j = 0; j < each / block_; ++j)
          std::memcpy(given.data() + (j * locals_ + i) * block_, gathered.data() + i * each + j * block_, block_);
    }
    const bool leads = s_.local() < leaders_;
    if (leads) {
      start(given.data(), got.data());
      s_.wait(0);
    }
    // Everybody gets a part of every leader's, and keeps that of its own.
    const std::size_t all = std::size_t(s_.size()) * block_;
    for (int g = 0; g < leaders_; ++g) {
      const bool root = s_.local() == g;
      const RankRange here = group(s_.node(), g);
      const Room parts(s_, root ? locals_ * all : 0), part(s_, all);
      for (int j = here.first; root && j < here.last; ++j) {
        std::byte* into = parts.data() + std::size_t(j) * all;
        for (int node = 0; node < s_.nodes(); ++node) {
          const std::size_t bytes = std::size_t(places_.ranks_on(node)) * block_;
          const auto in_group = std::size_t(j - here.first);
          const std::byte* from = node == s_.node() ? given.data() + at_node(g, node) + in_group * locals_ * block_
                                                    : got.data() + from_node(node, here.count()) + in_group * bytes;
          std::memcpy(into, from, bytes);
          into += bytes;
        }
      }
      s_.node_scatter(parts.data(), part.data(), all, g);
      if (g != mine()) continue;
      const std::byte* from = part.data();
      for (int node = 0; node < s_.nodes(); ++node) {
        take_part(from, node);
        from += std::size_t(places_.ranks_on(node)) * block_;
      }
    }
  }

  Hierarchy& s_;
  const Placement& places_;
  const std::size_t block_;
  const int leaders_;
  const std::size_t locals_;
  const std::byte* const send_;
  std::byte* const recv_;
  std::vector<std::size_t> where_;  // of each local: what it sends, what it gets; offsets in its segment
  std::vector<std::size_t> sent_bytes_, sent_at_, got_bytes_, got_at_;
};

}  // namespace

void alltoall_by_two(Hierarchy& s, const Call& call) { MultiLeaderAlltoall(s, call, 2).run(); }
void alltoall_by_four(Hierarchy& s, const Call& call) { MultiLeaderAlltoall(s, call, 4).run(); }
void alltoall_by_eight(Hierarchy& s, const Call& call) { MultiLeaderAlltoall(s, call, 8).run(); }
void alltoall_by_sixteen(Hierarchy& s, const Call& call) { MultiLeaderAlltoall(s, call, 16).run(); }

}  // namespace nearfield::hierarchy
