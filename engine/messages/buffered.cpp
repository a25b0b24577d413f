#include "engine/messages/buffered.hpp"

namespace nearfield::messages {

void Buffered::attach(Key key, const Attached& buffer) {
  const std::lock_guard lock(mutex_);
  drop_gone();
  if (key != process) more_than_the_process_.store(true, std::memory_order_relaxed);
  attached_[key] = buffer;
}

void Buffered::detach(Key key) {
  const std::lock_guard lock(mutex_);
  attached_.erase(key);
}

std::optional<Buffered::Attached> Buffered::attached(Key key) {
  const std::lock_guard lock(mutex_);
  const auto found = attached_.find(key);
  return found == attached_.end() ? std::nullopt : std::optional(found->second);
}

void Buffered::forget(Key key) {
  if (!more_than_the_process_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(gone_mutex_);
  gone_.push_back(key);
}

void Buffered::drop_gone() {
  const std::lock_guard lock(gone_mutex_);
  for (const Key key : gone_) {
    attached_.erase(key);
    used_.erase(key);
    for (Outgoing& out : outgoing_)
      if (out.key == key) out.key.reset();
  }
  gone_.clear();
}

void Buffered::collect() {
  drop_gone();
  std::erase_if(outgoing_, [&](const Outgoing& out) {
    if (!out.request.complete()) return false;
    if (out.key) used_[*out.key] -= out.counted;
    return true;
  });
}

// Counts against the buffer of `key` that is attached, if there is room.
bool Buffered::fits(Key key, std::uint64_t bytes) {
  const auto found = attached_.find(key);
  return found != attached_.end() && (found->second.automatic || used_[key] + bytes <= found->second.bytes);
}

Buffered::Sent Buffered::send(Messenger& messenger, Key key, int member, const Envelope& envelope,
                              const layout::Data& data, std::uint64_t overhead) {
  std::unique_lock lock(mutex_);
  collect();
  if (!attached_.contains(key)) key = process;
  const std::uint64_t counted = data.bytes + overhead;
  if (!fits(key, counted)) {
    lock.unlock();
    messenger.poll();
    lock.lock();
    collect();
    if (!fits(key, counted)) return Sent::no_room;
  }
  if (messenger.send_at_once(member, envelope, data)) return Sent::yes;
  std::uint64_t& used = used_[key];
  Outgoing& out = outgoing_.emplace_back(data.bytes);
  if (!out.copy.data()) {
    outgoing_.pop_back();
    return Sent::no_memory;
  }
  layout::gather(out.copy.data(), data, 0, data.bytes);
  out.counted = counted;
  out.key = key;
  out.number = ++last_;
  used += counted;
  out.request.is_send = true;
  out.request.member = member;
  out.request.envelope = envelope;
  out.request.data = {out.copy.data(), data.bytes, {}};
  messenger.start(out.request);
  return Sent::yes;
}

std::uint64_t Buffered::outstanding(Key key) {
  const std::lock_guard lock(mutex_);
  collect();
  const auto found = used_.find(key);
  return found == used_.end() ? 0 : found->second;
}

void Buffered::flush(Messenger& messenger, Key key) {
  if (!outstanding(key)) return;
  messenger.wait_until([&] { return !outstanding(key); }, [](int) { return false; }, nullptr,
                       "waiting for buffered messages to leave");
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
  for (const Outgoing& out : outgoing_)
    if (out.key == key && out.number <= last) return true;
  return false;
}

}  // namespace nearfield::messages
