#include "engine/messages/stand_in.hpp"

#include "engine/base/yield.hpp"
#include "engine/messages/helper.hpp"
#include "engine/messages/own_thread.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::messages {
namespace {

// A stand-in with something under way, for which nothing moves: fruitless looks, then naps. The call may last long.
constexpr int yields = 200, until_long_naps = 2000;
constexpr std::uint64_t short_nap = 20'000, long_nap = 500'000;  // ns
constexpr std::uint64_t between_rings = 1'000'000'000;           // ns; it sees so soon that it is dismissed

}  // namespace

void StandIn::run() {
  using Did = Messenger::Did;
  auto& word = messenger_.blocked_wake_word();
  auto& runner = messenger_.process().runner();
  while (!dismissed_.load(std::memory_order_relaxed)) {
    std::uint32_t rung = word.load(std::memory_order_acquire);  // SYNC: wake-word
    for (int idle = 0; !rank_is_back(); ++idle) {
      rung = word.load(
          std::memory_order_acquire);  // or else one more ring would end every nap at once  // SYNC: wake-word
      Did did = messenger_.stand_in([this] { return rank_is_back(); });
      if (runner.poll()) did = Did::moved;
      else if (did == Did::nothing_to_do && runner.busy()) did = Did::waits;
      if (did == Did::nothing_to_do) break;
      if (did == Did::moved) idle = 0;
      else if (idle < yields) yield();
      else waiting::futex_wait(word, rung, idle < until_long_naps ? short_nap : long_nap);
    }
    waiting::futex_wait(word, rung, between_rings);
  }
}

// False where no thread can be had.
bool StandIn::start() {
  if (started_.load(std::memory_order_acquire)) [[likely]]  // SYNC: stand-in-started
    return true;
  const std::lock_guard lock(starting_);
  if (started_.load(std::memory_order_relaxed)) return true;
  pthread_t thread;
  const bool good = start_own_thread<&StandIn::run>(thread, this);
  if (good) pthread_detach(thread);
  started_.store(good, std::memory_order_release);  // SYNC: stand-in-started
  return good;
}

bool StandIn::lend() {
  if (helper_) {
    lent_.fetch_add(1, std::memory_order_acq_rel);  // SYNC: lent
    helper_->count_away(1);
    if (messenger_.process().progress().busy()) helper_->wake();
    return true;
  }
  if (dismissed_.load(std::memory_order_relaxed) || messenger_.members() < 2 || !start()) return false;
  if (lent_.fetch_add(1, std::memory_order_acq_rel) == 0) messenger_.lend();  // SYNC: lent
  if (messenger_.process().progress().busy()) [[unlikely]] {
    messenger_.blocked_wake_word().fetch_add(1, std::memory_order_release);  // SYNC: wake-word
    waiting::futex_wake(messenger_.blocked_wake_word());
  }
  return true;
}

void StandIn::take_back() {
  if (helper_) helper_->count_away(-1);
  if (lent_.fetch_sub(1, std::memory_order_acq_rel) == 1 && !helper_) messenger_.take_back();  // SYNC: lent
}

}  // namespace nearfield::messages
