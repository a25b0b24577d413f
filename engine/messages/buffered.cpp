#include "engine/messages/buffered.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nearfield::messages {

void Buffered::attach(Key key, const Attached& buffer) {
  const std::lock_guard lock(mutex_);
  drop_gone();
  if (key != process) more_than_the_process_.store(true, std::memory_order_relaxed);
  account_of(key).attached = buffer;
}

void Buffered::detach(Key key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = accounts_.find(key); found != accounts_.end()) found->second.attached.reset();
}

std::optional<Buffered::Attached> Buffered::attached(Key key) {
  const std::lock_guard lock(mutex_);
  drop_gone();
  const auto found = accounts_.find(key);
  return found == accounts_.end() ? std::nullopt : found->second.attached;
}

void Buffered::put_behind(Key key, Key behind) {
  const std::lock_guard lock(mutex_);
  drop_gone();
  more_than_the_process_.store(true, std::memory_order_relaxed);
  account_of(key).behind = behind;
}

Buffered::Key Buffered::behind(Key key) {
  if (!more_than_the_process_.load(std::memory_order_relaxed)) return process;
  const std::lock_guard lock(mutex_);
  drop_gone();
  const auto found = accounts_.find(key);
  return found == accounts_.end() ? process : found->second.behind;
}

void Buffered::forget(Key key) {
  if (!more_than_the_process_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(gone_mutex_);
  gone_.push_back(key);
  any_gone_.store(true, std::memory_order_relaxed);
}

void Buffered::drop_gone() {
  if (!any_gone_.load(std::memory_order_relaxed)) [[likely]]
    return;
  const std::lock_guard lock(gone_mutex_);
  any_gone_.store(false, std::memory_order_relaxed);
  for (const Key key : gone_) accounts_.erase(key);
  gone_.clear();
}

Buffered::Account& Buffered::account_of(Key key) {
  Account& account = accounts_[key];
  if (!account.number) account.number = ++last_account_;
  return account;
}

// 0: nobody has that key.
std::uint64_t Buffered::number_of(Key key) const {
  const auto found = accounts_.find(key);
  return found == accounts_.end() ? 0 : found->second.number;
}

// It may be collected as soon as it is in the stack.
void Buffered::Outgoing::follow(FunctionRef<void(Request&)>) {
  next_complete = all.complete_.load(std::memory_order_relaxed);
  while (!all.complete_.compare_exchange_weak(next_complete, this,
                                              std::memory_order_release,  // SYNC: buffered-complete
                                              std::memory_order_relaxed))
    continue;
}

void Buffered::collect() {
  drop_gone();
  if (!complete_.load(std::memory_order_relaxed)) return;
  Outgoing* out = complete_.exchange(nullptr, std::memory_order_acquire);  // SYNC: buffered-complete
  while (out) {
    Outgoing& done = *std::exchange(out, out->next_complete);
    if (const auto found = accounts_.find(done.key); found != accounts_.end() && found->second.number == done.account)
      found->second.used -= done.counted;
    outgoing_.erase(done.self);
  }
}

// Its own where something is attached to it, else the one behind it, else the process's; the end where there is none.
std::map<Buffered::Key, Buffered::Account>::iterator Buffered::account_for(Key key) {
  auto found = accounts_.find(key);
  if (found != accounts_.end() && !found->second.attached) found = accounts_.find(found->second.behind);
  return found != accounts_.end() && found->second.attached ? found : accounts_.find(process);
}

Buffered::Sent Buffered::send(Messenger& messenger, Key key, int member, const Envelope& envelope,
                              const layout::Data& data, std::uint64_t overhead, std::int64_t free) {
  std::uint64_t counted = data.bytes + overhead;
  auto has_room = [&](const auto& account) { return account != accounts_.end() && account->second.has_room(counted); };
  std::unique_lock lock(mutex_);
  collect();
  auto account = account_for(key);
  if (!has_room(account)) {
    lock.unlock();
    messenger.poll();
    lock.lock();
    collect();
    account = account_for(key);
    if (!has_room(account)) {
      if (std::int64_t(data.bytes) > free) return Sent::no_room;
      counted = 0;
    }
  }
  if (messenger.send_at_once(member, envelope, data)) return Sent::yes;
  Outgoing& out = outgoing_.emplace_back(*this, data.bytes);
  if (!out.copy.data()) {
    outgoing_.pop_back();
    return Sent::no_memory;
  }
  layout::gather(out.copy.data(), data, 0, data.bytes);
  out.self = std::prev(outgoing_.end());
  out.counted = counted;
  out.number = ++last_;
  if (account != accounts_.end()) {
    out.key = account->first;
    out.account = account->second.number;
    account->second.used += counted;
  }
  out.request.is_send = true;
  out.request.member = member;
  out.request.envelope = envelope;
  out.request.data = {out.copy.data(), data.bytes, {}};
  out.request.follower = &out;
  messenger.start(out.request);
  return Sent::yes;
}

std::uint64_t Buffered::outstanding(Key key) {
  const std::lock_guard lock(mutex_);
  collect();
  const auto found = accounts_.find(key);
  return found == accounts_.end() ? 0 : found->second.used;
}

void Buffered::flush(Messenger& messenger, Key key) {
  if (!outstanding(key)) return;
  messenger.wait_until([&] { return !outstanding(key); }, [&](int member) { return on_its_way(key, member); }, nullptr,
                       "waiting for buffered messages to leave");
}

bool Buffered::on_its_way(Key key, int member) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(outgoing_, [&, number = number_of(key)](const Outgoing& out) {
    return out.account == number && out.request.member == member && !out.request.complete();
  });
}

bool Buffered::any_outgoing() {
  const std::lock_guard lock(mutex_);
  collect();
  return !outgoing_.empty();
}

std::uint64_t Buffered::last() {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool Buffered::outstanding(Key key, std::uint64_t last) {
  const std::lock_guard lock(mutex_);
  collect();
  for (const Outgoing& out : outgoing_) {
    if (out.number > last) break;
    if (out.account == number_of(key)) return true;
  }
  return false;
}

}  // namespace nearfield::messages
