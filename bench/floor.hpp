// The floor: the same operations by bare code on memory that all ranks have mapped, with a few flags and no library.
// What Nearfield takes beyond it is what Nearfield costs.
//
// Each operation has several bodies, of which the quickest counts:
//   direct     between the users' arrays, which lie in that memory: everybody meets, copies, and meets again
//   pushed     the same, where senders can as well copy to where others receive
//   copied-4096, in-words-4096, streamed-4096
//              through rings (bench/rings.hpp), in chunks of so many bytes, by one kind of copies
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/messages.hpp"
#include "bench/ranks.hpp"
#include "bench/rings.hpp"
#include "engine/collectives/operations.hpp"

namespace bench {

class Floor {
 public:
  struct Body {
    std::string name;
    Operation call;
  };

  // Bytes of shared memory for all ranks with `longest` bytes to send and to receive.
  static std::size_t bytes(std::size_t longest) { return all_flags() + std::size_t(size) * part(longest); }

  // `memory`: zeroed, shared by all ranks. `sums_of_ints`: reductions are of int, otherwise of double.
  Floor(void* memory, std::size_t longest, bool sums_of_ints) : ints_(sums_of_ints) {
    std::byte* at = static_cast<std::byte*>(memory);
    auto* const flags = reinterpret_cast<Rings::Flags*>(at);
    rounds_of_ = reinterpret_cast<Rings::Counter*>(flags + size);
    window_words_ = reinterpret_cast<WindowControlBlock*>(rounds_of_ + size);
    std::vector<std::byte*> rings;
    at += all_flags();
    for (int r = 0; r < size; ++r, at += part(longest)) {
      rings.push_back(at);
      send_.push_back(at + Rings::span());
      recv_.push_back(send_.back() + room(longest));
    }
    std::memset(rings[std::size_t(rank)], 0, part(longest));
#ifdef MADV_COLLAPSE
    madvise(rings[std::size_t(rank)], part(longest), MADV_COLLAPSE);  // huge pages, where the kernel likes to
#endif
    rings_.emplace(flags, std::move(rings));
    scratch_.resize(longest);
    for (int i = 1; i < size; ++i) others_.push_back((rank + size - i) % size);
    for (int r = 0; r < size; ++r) all_.push_back(r);
  }
  Floor(const Floor&) = delete;

  // This rank's arrays, on which bodies are called, and everybody's.
  double* send() { return reinterpret_cast<double*>(send_[std::size_t(rank)]); }
  double* recv() { return reinterpret_cast<double*>(recv_[std::size_t(rank)]); }
  std::byte* send_of(int r) const { return send_[std::size_t(r)]; }
  std::byte* recv_of(int r) const { return recv_[std::size_t(r)]; }

  // What can do the operation with n bytes in a message, vector or block; nothing for derived types, for calls that
  // find nothing, and for exchanges with both neighbours.
  std::vector<Body> bodies(const std::string& op, std::size_t n) {
    if (op == "exchange") return {};
    if (op == "barrier") return {{"flags", surrounded([this](double*, double*) { meet(); })}};
    std::vector<Body> found;
    if (Operation call = direct(op, n)) found.push_back({"direct", std::move(call)});
    if (op == "allgather" || op == "alltoall" || exchanges(op) || has_neighbours(op))
      found.push_back({"pushed", surrounded(direct_of_all(op, n, true))});
    std::vector<std::size_t> lengths{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10};
    std::erase_if(lengths, [&](std::size_t chunk) { return chunk >= n || chunk * 64 < n; });
    if (n <= 64 << 10) lengths.push_back(n);
    const std::pair<const char*, Copies> ways[] = {
        {"copied-", Copies::copied}, {"in-words-", Copies::in_words}, {"streamed-", Copies::streamed}};
    for (const std::size_t length : lengths)
      for (const auto& [way, how] : ways)
        if (Operation call = aged(op, n, {length, how}); call && (how == Copies::copied || n >= 1024))
          found.push_back({way + std::to_string(length), std::move(call)});
    return found;
  }

  // Before the first call of a body: on all ranks, which meet before and after.
  void begin_anew() { rings_->begin_anew(); }

  // Until all ranks are here.
  void meet() {
    ++rounds_;
    if (!pinned) {  // rank 0's counter is the gate
      std::atomic<long>& gate = rounds_of_[0].bytes;
      if (gate.fetch_add(1, std::memory_order_acq_rel) + 1 == rounds_ * size) return;
      while (gate.load(std::memory_order_acquire) < rounds_ * size) sched_yield();
      return;
    }
    rounds_of_[rank].bytes.store(rounds_, std::memory_order_release);  // pairs with the loads below, in the others
    for (int r = 0; r < size; ++r)
      while (rounds_of_[r].bytes.load(std::memory_order_acquire) < rounds_) nearfield::processor::pause();
  }

  // Words beside a rank's window, zero at first.
  struct WindowControlBlock {
    Rings::Counter lock, posted, completed;
  };
  WindowControlBlock& window_words(int r) const { return window_words_[r]; }

 private:
  using Call = std::function<void(double*, double*)>;
  static std::size_t room(std::size_t longest) { return (std::max<std::size_t>(longest, 8192) + 4095) / 4096 * 4096; }
  static std::size_t all_flags() {
    return (std::size_t(size) * (sizeof(Rings::Flags) + sizeof(Rings::Counter) + sizeof(WindowControlBlock)) + 4095) /
           4096 * 4096;
  }
  static std::size_t part(std::size_t longest) { return Rings::span() + 2 * room(longest); }

  void meet_with(int peer) {
    rounds_of_[rank].bytes.store(++rounds_, std::memory_order_release);  // pairs with the load below, in the other
    while (rounds_of_[peer].bytes.load(std::memory_order_acquire) < rounds_) look_again();
  }

  // ---------------------------------------------------------------- direct

  Operation direct(const std::string& op, std::size_t n) {
    if (finds_nothing(op) || op.starts_with("ddt-")) return {};
    if (answers(op)) {
      const auto move = [=, this](bool sends) {
        return [=, this](double*, int peer) { move_together(sends, peer, n, 1); };
      };
      return ping_pong(partner(op), move(true), move(false));
    }
    if (streams(op) && n < 16 << 10) return {};  // what it leaves out, a word for each message, would be most of it
    if (streams(op))
      return surrounded([=, this, peer = partner(op), both = op == "bibw"](double*, double*) {
        if (peer < 0) return;
        if (!both) return move_together(peer > rank, peer, n, window);
        meet_with(peer);
        for (int i = 0; i < window; ++i) std::memcpy(recv_[std::size_t(rank)], send_[std::size_t(peer)], n);
        meet_with(peer);
      });
    Call call = direct_of_all(op, n, false);
    return call ? surrounded(std::move(call)) : Operation{};
  }

  // Both halves at once where there is enough to share: the receiver fetches one, the sender brings the other.
  void move_together(bool sends, int peer, std::size_t n, int times) {
    const std::size_t brought = n >= 16 << 10 ? n / 2 / 64 * 64 : 0, fetched = n - brought;
    const auto me = std::size_t(rank), other = std::size_t(peer);
    meet_with(peer);
    for (int i = 0; i < times; ++i)
      if (sends) std::memcpy(recv_[other] + fetched, send_[me] + fetched, brought);
      else std::memcpy(recv_[me], send_[other], fetched);
    meet_with(peer);
  }

  // Of a scan: whether a member's own operand is part of its result. None: the operation is no scan.
  static std::optional<bool> own_counts(const std::string& op) {
    using nearfield::collectives::Combines;
    const auto collective = nearfield::collectives::collective_named(op);
    if (!collective || !nearfield::collectives::operation(*collective).scans()) return std::nullopt;
    return nearfield::collectives::operation(*collective).combines == Combines::up_to_own;
  }

  Call direct_of_all(const std::string& op, std::size_t n, bool push) {
    const auto collective = nearfield::collectives::collective_named(op);
    if (ints_ && collective && nearfield::collectives::operation(*collective).reduces()) return {};
    const auto me = std::size_t(rank), p = std::size_t(size);
    std::function<void()> work;
    const std::size_t d = n / 8, begin = me * d / p, end = (me + 1) * d / p;
    if (op == "allreduce") work = [=, this] { reduce({0, p}, begin, end, 0); };
    if (op == "reduce") work = [=, this] { reduce({0, 1}, begin, end, 0); };
    if (op == "reduce_scatter_block") work = [=, this] { reduce({me, me + 1}, 0, d, me * n); };
    if (const auto own = own_counts(op)) work = [=, this] { sum_prefixes(!*own, begin, end); };
    if (op == "bcast")
      work = [=, this] {
        const std::size_t mine = n - n / p / 64 * 64;  // the root copies the rest to everybody
        if (me) std::memcpy(send_[me], send_[0], mine);
        else
          for (std::size_t r = 1; r < p; ++r) std::memcpy(send_[r] + mine, send_[0] + mine, n - mine);
      };
    if (op == "gather") work = [=, this] { std::memcpy(recv_[0] + me * n, send_[me], n); };
    if (op == "scatter") work = [=, this] { std::memcpy(recv_[me], send_[0] + me * n, n); };
    const bool each = op == "alltoall";
    if (op == "allgather" || each)
      work = [=, this] {
        for (std::size_t i = 0; i < p; ++i) {
          const std::size_t from = push ? me : (me + i) % p, to = push ? (me + i) % p : me;
          std::memcpy(recv_[to] + from * n, send_[from] + (each ? to * n : 0), n);
        }
      };
    if (exchanges(op) || has_neighbours(op))
      work = [=, this, messages = has_neighbours(op) ? neighbours : 1] {
        for (int k = 0; k < messages; ++k) {
          const auto from = std::size_t(push ? rank : from_neighbour(k)),
                     to = std::size_t(push ? to_neighbour(k) : rank);
          std::memcpy(recv_[to] + std::size_t(k) * n, send_[from] + std::size_t(k) * n, n);
        }
      };
    if (!work) return {};
    return [this, work](double*, double*) {
      meet();
      work();
      meet();
    };
  }

  // Doubles [begin, end) of all send arrays, summed into the receive arrays of ranks [to.first, to.last).
  struct Ranks {
    std::size_t first, last;
  };
  void reduce(Ranks to, std::size_t begin, std::size_t end, std::size_t offset) {
    constexpr std::size_t block = 512;
    for (std::size_t i = begin; i < end; i += block) {
      const std::size_t m = std::min(end - i, block);
      const auto in = [&](int r) { return reinterpret_cast<const double*>(send_[std::size_t(r)] + offset) + i; };
      double* const sum = reinterpret_cast<double*>(recv_[to.first]) + i;
      if (size == 1) std::memcpy(sum, in(0), m * 8);
      for (int r = 1; r < size; ++r) bench::add(sum, r == 1 ? in(0) : sum, in(r), m);
      for (std::size_t r = to.first + 1; r < to.last; ++r) std::memcpy(recv_[r] + i * 8, sum, m * 8);
    }
  }

  // Doubles [begin, end) of the results of all ranks, each from that of the rank before: of all send arrays up to a
  // rank's own, or of those before it.
  void sum_prefixes(bool without_own, std::size_t begin, std::size_t end) {
    constexpr std::size_t block = 512;
    const auto first = std::size_t(without_own), p = std::size_t(size);
    if (first >= p) return;
    for (std::size_t i = begin; i < end; i += block) {
      const std::size_t m = std::min(end - i, block);
      const auto at = [&](std::byte* array) { return reinterpret_cast<double*>(array) + i; };
      std::memcpy(at(recv_[first]), at(send_[0]), m * 8);
      for (std::size_t r = first + 1; r < p; ++r) bench::add(at(recv_[r]), at(recv_[r - 1]), at(send_[r - first]), m);
    }
  }

  // ---------------------------------------------------------------- aged

  // The ranks before this one, the nearest first.
  static std::vector<int> before() {
    std::vector<int> found;
    for (int r = rank - 1; r >= 0; --r) found.push_back(r);
    return found;
  }

  using Bytes = std::byte*;
  static Bytes as_bytes(double* at) { return reinterpret_cast<Bytes>(at); }

  static bool of_edges(const std::string& op) {
    namespace collectives = nearfield::collectives;
    return std::any_of(collectives::table::rows + collectives::collective_count, std::end(collectives::table::rows),
                       [&](const collectives::Operation& row) { return row.name == op; });
  }

  Operation aged(const std::string& op, std::size_t n, Rings::Chunks chunks) {
    if (!Rings::fits(chunks, true) || size < 2) return {};
    if (finds_nothing(op) || op.starts_with("ddt-") || of_edges(op)) return {};
    if (answers(op)) return aged_ping_pong(partner(op), n, chunks);
    if (streams(op)) return surrounded(aged_stream(op, n, chunks));
    if (exchanges(op) || has_neighbours(op)) return surrounded(aged_exchange(has_neighbours(op), n, chunks));
    return surrounded(aged_collective(op, n, chunks));
  }

  static auto none() {
    return [](int, std::size_t, const std::byte*, std::size_t) {};
  }
  static auto into(Bytes to, Rings::Chunks chunks) {
    return [=](int, std::size_t offset, const std::byte* at, std::size_t m) { chunks.out(to + offset, at, m); };
  }
  static auto one(Bytes from) {
    return [from](int) { return from; };
  }

  Operation aged_ping_pong(int peer, std::size_t n, Rings::Chunks chunks) {
    const Rings::Pattern sends{true, false, {}, {rank, peer}}, receives{false, false, {peer}, {rank, peer}};
    return ping_pong(
        peer, [=, this](double* s, int) { rings_->exchange(sends, n, chunks, one(as_bytes(s)), none()); },
        [=, this](double* r, int) { rings_->exchange(receives, n, chunks, one(nullptr), into(as_bytes(r), chunks)); });
  }

  Call aged_stream(const std::string& op, std::size_t n, Rings::Chunks chunks) {
    const int peer = partner(op);
    if (peer < 0) return [](double*, double*) {};
    const bool both = op == "bibw", first = peer > rank;
    const auto towards = [=](bool writes, bool reads) {
      return Rings::Pattern{writes, false, reads ? std::vector{peer} : std::vector<int>{}, {rank, peer}};
    };
    return
        [=, this, there = towards(both || first, both || !first), back = towards(!first, first)](double* s, double* r) {
          for (int i = 0; i < window; ++i)
            rings_->exchange(there, n, chunks, one(as_bytes(s)), into(as_bytes(r), chunks));
          std::byte word[8] = {};
          rings_->exchange(back, 1, chunks, one(word), into(word, chunks));
        };
  }

  Call aged_exchange(bool halo, std::size_t n, Rings::Chunks chunks) {
    return [=, this](double* s, double* r) {
      for (int k = 0; k < (halo ? neighbours : 1); ++k) {
        const std::size_t at = std::size_t(k) * n;
        const Rings::Pattern pattern{true, false, {from_neighbour(k)}, all_};
        rings_->exchange(pattern, n, chunks, one(as_bytes(s) + at), into(as_bytes(r) + at, chunks));
      }
    };
  }

  // The first of the others' pieces is added to the own one (nullptr: is copied), the rest to that.
  template <class T>
  auto summed(Bytes own, Bytes to, int first) {
    return [=](int peer, std::size_t offset, const std::byte* at, std::size_t m) {
      if (!own && peer == first) return (void)std::memcpy(to + offset, at, m);
      const Bytes before = peer == first ? own : to;
      bench::add(reinterpret_cast<T*>(to + offset), reinterpret_cast<const T*>(before + offset),
                 reinterpret_cast<const T*>(at), m / sizeof(T));
    };
  }
  void sum(const Rings::Pattern& pattern, std::size_t n, Rings::Chunks chunks, auto source, Bytes own, Bytes to) {
    const int first = pattern.from.empty() ? -1 : pattern.from.front();
    if (ints_) rings_->exchange(pattern, n, chunks, source, summed<int>(own, to, first));
    else rings_->exchange(pattern, n, chunks, source, summed<double>(own, to, first));
  }

  Call aged_collective(const std::string& op, std::size_t n, Rings::Chunks chunks) {
    const auto me = std::size_t(rank), p = std::size_t(size);
    const bool root = rank == 0;
    const std::vector<int> nobody, of_root = root ? others_ : nobody, the_root = root ? nobody : std::vector<int>{0};
    const Rings::Pattern to_all{true, false, others_, all_}, to_each{true, true, others_, all_};
    const Rings::Pattern to_root{!root, false, of_root, all_}, from_root{root, false, the_root, all_};
    const Rings::Pattern each_from_root{root, true, the_root, all_};
    const auto blocks = [=](Bytes s, std::size_t block) {
      return [=](int i) { return s + (me + std::size_t(i)) % p * block; };
    };
    const auto into_blocks = [chunks](Bytes r, std::size_t block) {
      return [=](int peer, std::size_t offset, const std::byte* at, std::size_t m) {
        chunks.out(r + std::size_t(peer) * block + offset, at, m);
      };
    };
    // Everybody sums a share, as soon as that is less than what all would read.
    const std::size_t share = p > 2 && n >= 8192 && n % (p * 64) == 0 ? n / p : 0;
    const Rings::Chunks of_share{share ? std::min(chunks.bytes, share) : chunks.bytes, chunks.how};
    const auto sum_share = [=, this](Bytes s, Bytes to) {
      sum(to_each, share, of_share, blocks(s, share), s + me * share, to);
    };
    if (op == "allreduce")
      return [=, this](double* s, double* r) {
        const Bytes mine = as_bytes(r) + me * share;
        if (!share) return sum(to_all, n, chunks, one(as_bytes(s)), as_bytes(s), as_bytes(r));
        sum_share(as_bytes(s), mine);
        rings_->exchange(to_all, share, of_share, one(mine), into_blocks(as_bytes(r), share));
      };
    if (op == "reduce")
      return [=, this](double* s, double* r) {
        if (!share) return sum(to_root, n, chunks, one(as_bytes(s)), as_bytes(s), as_bytes(r));
        const Bytes mine = root ? as_bytes(r) : scratch_.data();
        sum_share(as_bytes(s), mine);
        rings_->exchange(to_root, share, of_share, one(mine), into_blocks(as_bytes(r), share));
      };
    if (op == "reduce_scatter_block")
      return [=, this](double* s, double* r) {
        sum(to_each, n, chunks, blocks(as_bytes(s), n), as_bytes(s) + me * n, as_bytes(r));
      };
    if (const auto scans = own_counts(op))
      return [=, this, before = before(), own = *scans](double* s, double* r) {
        if (own && !rank) std::memcpy(r, s, n);
        sum({rank < size - 1, false, before, all_}, n, chunks, one(as_bytes(s)), own ? as_bytes(s) : nullptr,
            as_bytes(r));
      };
    if (op == "bcast")
      return [=, this](double* s, double*) {
        rings_->exchange(from_root, n, chunks, one(as_bytes(s)), into(as_bytes(s), chunks));
      };
    if (op == "gather")
      return [=, this](double* s, double* r) {
        if (root) std::memcpy(r, s, n);
        rings_->exchange(to_root, n, chunks, one(as_bytes(s)), into_blocks(as_bytes(r), n));
      };
    if (op == "scatter")
      return [=, this](double* s, double* r) {
        if (root) std::memcpy(r, s, n);
        rings_->exchange(each_from_root, n, chunks, blocks(as_bytes(s), n), into(as_bytes(r), chunks));
      };
    const bool each = op == "alltoall";  // or allgather
    return [=, this](double* s, double* r) {
      const Bytes from = as_bytes(s), to = as_bytes(r);
      std::memcpy(to + me * n, from + (each ? me * n : 0), n);
      if (each) rings_->exchange(to_each, n, chunks, blocks(from, n), into_blocks(to, n));
      else rings_->exchange(to_all, n, chunks, one(from), into_blocks(to, n));
    };
  }

  bool ints_;
  std::optional<Rings> rings_;
  Rings::Counter* rounds_of_;
  WindowControlBlock* window_words_;
  long rounds_ = 0;
  std::vector<std::byte*> send_, recv_;
  std::vector<std::byte> scratch_;
  std::vector<int> others_, all_;
};

}  // namespace bench
