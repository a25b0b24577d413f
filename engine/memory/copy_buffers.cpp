#include "engine/memory/copy_buffers.hpp"

#include <bit>
#include <exception>
#include <utility>

#include "engine/base/log.hpp"
#include "engine/base/yield.hpp"
#include "engine/memory/collapsing.hpp"

namespace nearfield::memory {
namespace {

constexpr std::size_t bits = 64;
constexpr unsigned turns_between = 16;  // rotations over the whole span between attempts to make huge pages

// The bits [first, first + count) of a word.
constexpr std::uint64_t mask(std::size_t first, std::size_t count) {
  return (count == bits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

}  // namespace

// Held for some tens of nanoseconds.
struct CopyBuffers::Lock {
  explicit Lock(CopyBuffers& buffers) noexcept : locked(buffers.locked_) {
    for (int i = 0; locked.test_and_set(std::memory_order_acquire);)  // SYNC: copy-buffers-lock
      if (++i % 64 == 0) yield();
  }
  ~Lock() { locked.clear(std::memory_order_release); }  // SYNC: copy-buffers-lock
  Lock(const Lock&) = delete;
  std::atomic_flag& locked;
};

CopyBuffers::CopyBuffers(Segment& segment, Arena& arena, std::size_t span, Allowance& collapsing)
    : segment_(segment),
      arena_(arena),
      collapsing_(collapsing),
      units_(span / unit),
      free_(units_),
      held_((units_ + bits - 1) / bits) {}

CopyBuffers::~CopyBuffers() {
  if (begin_) arena_.free(begin_);
}

bool CopyBuffers::make() noexcept try {
  const std::lock_guard making(making_);
  if (there_.load(std::memory_order_relaxed)) return true;
  if (refused_) return false;
  auto offset = arena_.allocate_apart(span(), span() >= huge_page ? huge_page : 4096, Component::copy_buffers);
  if (!offset) {
    refused_ = true;
    log_line(LogLevel::info, "no memory for copy buffers: %s", offset.error().text.c_str());
    return false;
  }
  madvise(segment_.base() + *offset, span(), MADV_POPULATE_WRITE);
  huge_.store(span() % huge_page != 0, std::memory_order_relaxed);
  const Lock lock(*this);
  begin_ = *offset;
  there_.store(true, std::memory_order_relaxed);
  return true;
} catch (const std::exception&) {  // no memory for the text of the error
  return false;
}

// Called now and then until the kernel and the budget (collapsing.hpp) allow it.
void CopyBuffers::make_huge() noexcept {
  const std::unique_lock making(making_, std::try_to_lock);
  if (!making || !there_.load(std::memory_order_relaxed) || huge_.load(std::memory_order_relaxed)) return;
  if (collapse(collapsing_, segment_.base() + begin_, huge_page, span() / huge_page).pages > 0)
    huge_.store(true, std::memory_order_relaxed);
}

void CopyBuffers::rest() noexcept {
  const std::lock_guard making(making_);
  std::size_t offset = 0;
  {
    const Lock lock(*this);
    if (free_.load(std::memory_order_relaxed) < units_) return;
    there_.store(false, std::memory_order_relaxed);
    offset = std::exchange(begin_, 0);
  }
  if (offset) arena_.free(offset);
}

std::size_t CopyBuffers::last_held(std::size_t begin, std::size_t count) const {
  for (std::size_t end = begin + count; end > begin;) {
    const std::size_t word = (end - 1) / bits, first = word * bits < begin ? begin : word * bits;
    if (const std::uint64_t held = held_[word] & mask(first % bits, end - first))
      return word * bits + bits - 1 - std::size_t(std::countl_zero(held)) - begin;
    end = first;
  }
  return count;
}

void CopyBuffers::mark(std::size_t begin, std::size_t count, bool held) {
  for (const std::size_t end = begin + count; begin < end;) {
    const std::size_t word = begin / bits, until = end < (word + 1) * bits ? end : (word + 1) * bits;
    const std::uint64_t changed = mask(begin % bits, until - begin);
    if (held) held_[word] |= changed;
    else held_[word] &= ~changed;
    begin = until;
  }
}

std::size_t CopyBuffers::take(std::size_t bytes, std::size_t spared) noexcept {
  const std::size_t count = (bytes + unit - 1) / unit;
  if (count == 0 || count > units_) return 0;
  // A relaxed load suffices: what make() wrote is read under Lock, which it held as well.
  if (!there_.load(std::memory_order_relaxed) && !make()) [[unlikely]]
    return 0;
  if (turns_.load(std::memory_order_relaxed) >= turns_between && !huge_.load(std::memory_order_relaxed)) [[unlikely]] {
    turns_.store(0, std::memory_order_relaxed);
    make_huge();
  }
  const Lock lock(*this);
  const std::size_t free = free_.load(std::memory_order_relaxed);
  if (begin_ == 0 || free < count + spared / unit) return 0;
  std::size_t begin = cursor_;
  for (bool wrapped = false;;) {
    if (begin + count > units_) {
      if (wrapped) return 0;
      wrapped = true;
      begin = 0;
      turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      continue;
    }
    const std::size_t last = last_held(begin, count);
    if (last == count) break;
    begin += last + 1;
    if (wrapped && begin > cursor_) return 0;
  }
  mark(begin, count, true);
  cursor_ = begin + count;
  free_.store(free - count, std::memory_order_relaxed);
  return begin_ + begin * unit;
}

void CopyBuffers::put_back(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t count = (bytes + unit - 1) / unit;
  const Lock lock(*this);
  mark((offset - begin_) / unit, count, false);
  free_.store(free_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

void CopyBuffers::add(Holder& holder) noexcept {
  if (std::exchange(holder.is_holder_, true)) return;
  holder.next_ = std::exchange(holders_, &holder);
}

void CopyBuffers::remove(Holder& holder) noexcept {
  if (!std::exchange(holder.is_holder_, false)) return;
  Holder** link = &holders_;
  while (*link != &holder) link = &(*link)->next_;
  *link = holder.next_;
}

void CopyBuffers::ask_holders() {
  for (Holder* each = holders_; each; each = each->next_) each->put_back_read();
}

}  // namespace nearfield::memory
