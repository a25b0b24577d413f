// Accumulates. Each element is atomic with respect to all other accumulates of the window, and to nothing else.
//
//   singles    a few aligned elements of a length that the processor has atomic instructions for: one instruction each,
//              as long as no member of the window has needed locks
//   locked     the elements that begin in one stripe of the target's window, under that stripe's lock, by the kernels
//              of reductions. Of a layout, as many at a time as fit a buffer are gathered, combined and scattered under
//              the locks of all stripes that they may begin in
//
// A member takes several stripes in the order of their numbers, so there is no deadlock. control_block.hpp draws how a
// window changes from singles to locks.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/copying/copy.hpp"
#include "engine/windows/window.hpp"

namespace nearfield::windows {
namespace {

// Most elements that are combined by single instructions. For more, kernels under locks are faster, but from then on
// all operations of the window pay for locks. One atomic instruction takes as long as a kernel for eight to sixteen
// elements, with its lock.
constexpr std::uint64_t most_singles = 16;

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Returns the value before.
template <class Word>
Word exchange_by_fold(AtomicRef<Word> target, Word operand, reducing::FoldFn fold) {
  Word seen = target.load(std::memory_order_relaxed), next;
  do {
    const void* const ins[] = {&seen, &operand};
    void* const outs[] = {&next};
    fold(outs, 1, ins, 2, 1);
    // SYNC: accumulate
  } while (!target.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  return seen;
}

template <class Float, class Word>
Word add_float(AtomicRef<Word> target, Word operand) {
  Word seen = target.load(std::memory_order_relaxed), next;
  do next = std::bit_cast<Word>(std::bit_cast<Float>(seen) + std::bit_cast<Float>(operand));
  // SYNC: accumulate
  while (!target.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  return seen;
}

template <class Word>
Word combine(std::byte* at, const std::byte* from, const Window::Operation& operation) {
  using reducing::Op;
  using reducing::Type;
  AtomicRef<Word> target(*reinterpret_cast<Word*>(at));
  if (!operation.fold) {
    if (operation.replaces) return target.exchange(load<Word>(from), std::memory_order_acq_rel);  // SYNC: accumulate
    return target.load(std::memory_order_acquire);                                                // SYNC: accumulate
  }
  const auto operand = load<Word>(from);
  const bool integer = operation.type >= Type::i8 && operation.type <= Type::u64;
  if (integer || operation.type == Type::byte) {
    switch (operation.op) {
      case Op::sum: return target.fetch_add(operand, std::memory_order_acq_rel);   // SYNC: accumulate
      case Op::band: return target.fetch_and(operand, std::memory_order_acq_rel);  // SYNC: accumulate
      case Op::bor: return target.fetch_or(operand, std::memory_order_acq_rel);    // SYNC: accumulate
      case Op::bxor: return target.fetch_xor(operand, std::memory_order_acq_rel);  // SYNC: accumulate
      default: break;
    }
  }
  if constexpr (sizeof(Word) == 8)
    if (operation.type == Type::f64 && operation.op == Op::sum) return add_float<double>(target, operand);
  if constexpr (sizeof(Word) == 4)
    if (operation.type == Type::f32 && operation.op == Op::sum) return add_float<float>(target, operand);
  return exchange_by_fold(target, operand, operation.fold);
}

template <class Word>
void combine_all(std::byte* at, const std::byte* from, std::byte* fetched, std::uint64_t count,
                 const Window::Operation& operation) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Word before = combine<Word>(at + i * sizeof(Word), from + i * sizeof(Word), operation);
    if (fetched) std::memcpy(fetched + i * sizeof(Word), &before, sizeof before);
  }
}

void combine_singles(std::byte* at, const std::byte* from, std::byte* fetched, std::uint64_t count,
                     const Window::Operation& operation) {
  switch (operation.bytes) {
    case 1: return combine_all<std::uint8_t>(at, from, fetched, count, operation);
    case 2: return combine_all<std::uint16_t>(at, from, fetched, count, operation);
    case 4: return combine_all<std::uint32_t>(at, from, fetched, count, operation);
    default: return combine_all<std::uint64_t>(at, from, fetched, count, operation);
  }
}

bool is_single(const std::byte* at, std::uint32_t bytes) {
  return bytes <= 8 && (bytes & (bytes - 1)) == 0 && reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
}

}  // namespace

// Says, while it lives, that an atomic instruction of this member is under way. It needs no fence: the member that
// changes the mode issues one for all processors.
class Window::Busy {
 public:
  explicit Busy(Window& window) : busy_(window.words(window.rank_).busy), several_(window.several_threads) {
    if (several_) busy_.fetch_add(1, std::memory_order_acq_rel);  // SYNC: single-busy
    else busy_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Busy() {
    if (several_) busy_.fetch_sub(1, std::memory_order_release);  // SYNC: single-busy
    else busy_.store(0, std::memory_order_release);               // SYNC: single-busy
  }

 private:
  Atomic<std::uint32_t>& busy_;
  const bool several_;
};

// Runs `body`, which consists of atomic instructions, unless the window uses locks.
template <class Body>
bool Window::as_single(Body body) {
  if (always_locked_) return false;
  const Busy busy(*this);
  if (words(0).mode.load(std::memory_order_acquire) != singles) return false;  // SYNC: accumulate-mode
  body();
  return true;
}

// Returns when all members use locks.
void Window::use_locks() {
  if (always_locked_) return;
  auto& mode = words(0).mode;
  std::uint32_t seen = mode.load(std::memory_order_acquire);  // SYNC: accumulate-mode
  if (seen == locked) return;
  if (seen == singles &&
      // SYNC: accumulate-mode
      mode.compare_exchange_strong(seen, switching + std::uint32_t(rank_), std::memory_order_acq_rel)) {
    barrier_on_all_processors();
    for (int m = 0; m < size_; ++m) {
      const auto& busy = words(m).busy;
      wait_for(
          // SYNC: single-busy
          for_notice, 0, [&] { return busy.load(std::memory_order_acquire) == 0; }, [&](int who) { return who == m; });
    }
    mode.store(locked, std::memory_order_release);  // SYNC: accumulate-mode
    return;
  }
  wait_for(
      for_notice, 0, [&] { return (seen = mode.load(std::memory_order_acquire)) == locked; },  // SYNC: accumulate-mode
      [&](int who) { return std::uint32_t(who) + switching == seen; });
}

// Holds the locks of the stripes that bytes [begin, end) of the target's window lie in.
class Window::Striped {
 public:
  Striped(Window& window, int target) : window_(window), stripe_(window.words(target).stripe) {}
  ~Striped() {
    for (; held_; held_ &= held_ - 1)
      stripe_[std::countr_zero(held_)].holder.store(0, std::memory_order_release);  // SYNC: stripe
  }
  Striped(const Striped&) = delete;
  void take(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = begin / stripe_bytes, last = (end - 1) / stripe_bytes;
    std::uint32_t wanted = 0;
    for (std::uint64_t s = first; s <= std::min<std::uint64_t>(last, first + stripes - 1); ++s)
      wanted |= 1u << s % stripes;
    for (; wanted; wanted &= wanted - 1) {
      take(stripe_[std::countr_zero(wanted)].holder);
      held_ |= wanted & -wanted;
    }
  }

 private:
  void take(Atomic<std::uint32_t>& holder) {
    const auto self = std::uint32_t(window_.rank_) + 1;
    const auto taken = [&] {
      std::uint32_t nobody = 0;
      return holder.load(std::memory_order_relaxed) == 0 &&
             // SYNC: stripe
             holder.compare_exchange_strong(nobody, self, std::memory_order_acquire, std::memory_order_relaxed);
    };
    if (!taken())
      window_.wait_for(for_notice, 0, taken,
                       [&](int m) { return holder.load(std::memory_order_relaxed) == std::uint32_t(m) + 1; });
  }

  static_assert(stripes == 32);  // a bit of each
  Window& window_;
  Stripe* const stripe_;
  std::uint32_t held_ = 0;
};

namespace {

void combine_alone(std::byte* at, const std::byte* from, std::byte* fetched, std::uint64_t count,
                   const Window::Operation& operation) {
  if (fetched) copying::copy(fetched, at, count * operation.bytes);
  if (operation.fold) {
    const void* const ins[] = {at, from};
    void* const outs[] = {at};
    operation.fold(outs, 1, ins, 2, count);
  } else if (operation.call) {
    operation.call(operation, from, at, count);
  } else if (operation.replaces) {
    copying::copy(at, from, count * operation.bytes);
  }
}

}  // namespace

void Window::accumulate(int target, std::byte* at, const std::byte* from, std::byte* fetched, std::uint64_t count,
                        const Operation& operation) {
  const std::uint32_t bytes = operation.bytes;
  if (access(target) == Access::exclusive && !several_threads)
    return combine_alone(at, from, fetched, count, operation);
  if (count <= most_singles && !operation.call && is_single(at, bytes) &&
      as_single([&] { combine_singles(at, from, fetched, count, operation); }))
    return;
  use_locks();
  const auto base = std::uint64_t(at - memory(target).base);
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t offset = base + i * bytes, room = stripe_bytes - offset % stripe_bytes;
    const std::uint64_t n = std::min(count - i, (room + bytes - 1) / bytes);  // elements that begin in the stripe
    Striped lock(*this, target);
    lock.take(offset, offset + 1);
    combine_alone(at + i * bytes, from + i * bytes, fetched ? fetched + i * bytes : nullptr, n, operation);
    i += n;
  }
}

namespace {

// Calls `piece(address, packed position, bytes)` for each contiguous part of bytes [position, position + bytes).
template <class Piece>
void each_piece(const layout::Data& data, std::uint64_t position, std::uint64_t bytes, Piece piece) {
  layout::Cursor cursor(data, position);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = std::min(cursor.left(), bytes - done);
    piece(cursor.at(), done, n);
    cursor.advance(n);
    done += n;
  }
}

std::byte* after(std::byte* address, std::uint64_t bytes) { return address ? address + bytes : nullptr; }
const std::byte* after(const std::byte* address, std::uint64_t bytes) { return address ? address + bytes : nullptr; }

// Blocks of at least that many bytes are combined in place; shorter ones are gathered first.
constexpr std::uint64_t least_block = 1024;

}  // namespace

void Window::accumulate(int target, const layout::Data& to, std::uint64_t position, std::uint64_t bytes,
                        const std::byte* from, std::byte* fetched, const Operation& operation) {
  if (to.dense()) return accumulate(target, to.address + position, from, fetched, bytes / operation.bytes, operation);
  if (bytes <= most_singles * operation.bytes && !operation.call &&
      (access(target) != Access::exclusive || several_threads)) {
    bool single = true;
    each_piece(to, position, bytes,
               [&](std::byte* at, std::uint64_t, std::uint64_t) { single = single && is_single(at, operation.bytes); });
    if (single && as_single([&] {
          each_piece(to, position, bytes, [&](std::byte* at, std::uint64_t done, std::uint64_t n) {
            combine_singles(at, after(from, done), after(fetched, done), n / operation.bytes, operation);
          });
        }))
      return;
  }
  if (to.view.runs->bytes >= least_block)
    return each_piece(to, position, bytes, [&](std::byte* at, std::uint64_t done, std::uint64_t n) {
      accumulate(target, at, after(from, done), after(fetched, done), n / operation.bytes, operation);
    });
  const bool alone = access(target) == Access::exclusive && !several_threads;
  if (!alone) use_locks();
  alignas(64) std::byte copy[4096];
  const std::uint64_t most = sizeof copy / operation.bytes * operation.bytes;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = std::min(most, bytes - done), at = position + done;
    Striped locks(*this, target);
    if (!alone) {
      const layout::Range range = to.range(at, n);
      locks.take(std::uint64_t(range.begin - memory(target).base), std::uint64_t(range.end - memory(target).base));
    }
    layout::gather(copy, to, at, n);
    combine_alone(copy, after(from, done), after(fetched, done), n / operation.bytes, operation);
    if (operation.fold || operation.call || operation.replaces) layout::scatter(to, at, copy, n);
    done += n;
  }
}

void Window::compare_and_swap(int target, std::byte* at, const std::byte* expected, const std::byte* value,
                              std::byte* fetched, std::uint32_t bytes) {
  const auto swap = [&]<class Word>(Word) {
    AtomicRef<Word> word(*reinterpret_cast<Word*>(at));
    auto seen = load<Word>(expected);
    // SYNC: accumulate
    word.compare_exchange_strong(seen, load<Word>(value), std::memory_order_acq_rel, std::memory_order_acquire);
    std::memcpy(fetched, &seen, sizeof seen);
  };
  if (is_single(at, bytes)) {
    const bool done = as_single([&] {
      switch (bytes) {
        case 1: return swap(std::uint8_t{});
        case 2: return swap(std::uint16_t{});
        case 4: return swap(std::uint32_t{});
        default: return swap(std::uint64_t{});
      }
    });
    if (done) return;
  }
  use_locks();
  const auto offset = std::uint64_t(at - memory(target).base);
  Striped lock(*this, target);
  lock.take(offset, offset + 1);
  const bool equal = std::memcmp(at, expected, bytes) == 0;
  std::memcpy(fetched, at, bytes);
  if (equal) std::memcpy(at, value, bytes);
}

}  // namespace nearfield::windows
