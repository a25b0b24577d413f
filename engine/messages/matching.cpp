#include "engine/messages/matching.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace nearfield::messages {
namespace {

constexpr std::size_t fewest_bins = 64;

}  // namespace

std::size_t Index::hash(const Envelope& key) {
  std::uint64_t bits = key.context ^ (std::uint64_t(std::uint32_t(key.source)) << 32 | std::uint32_t(key.tag));
  bits *= 0x9e3779b97f4a7c15u;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9u;
  return bits >> 32;
}

List* Index::find(const Envelope& key) {
  if (bins_.empty()) return nullptr;
  for (Node* node = bins_[hash(key) & (bins_.size() - 1)].get(); node; node = node->next.get())
    if (node->key == key) return &node->list;
  return nullptr;
}

List& Index::list(const Envelope& key) {
  if (List* const found = find(key)) return *found;
  if (nodes_ >= bins_.size()) grow();
  auto& bin = bins_[hash(key) & (bins_.size() - 1)];
  auto node = std::make_unique<Node>();
  node->key = key;
  node->next = std::move(bin);
  bin = std::move(node);
  ++nodes_;
  wildcards_ |= key.source == any || key.tag == any;
  return bin->list;
}

// As many bins as are worth it for the lists that hold something.
void Index::grow() {
  std::size_t live = 0;
  for (const auto& chain : bins_)
    for (const Node* node = chain.get(); node; node = node->next.get()) live += !node->list.empty();
  std::vector<std::unique_ptr<Node>> old(std::max(fewest_bins, std::bit_ceil(2 * live + 1)));
  old.swap(bins_);
  nodes_ = 0;
  for (auto& chain : old) {
    while (chain) {
      auto node = std::move(chain);
      chain = std::move(node->next);
      if (node->list.empty()) continue;
      auto& bin = bins_[hash(node->key) & (bins_.size() - 1)];
      node->next = std::move(bin);
      bin = std::move(node);
      ++nodes_;
    }
  }
}

// Where there were few lists the bins go with them, or a table that was large once would cost its length each time.
void Index::clear() {
  // Chains one by one: a destructor that follows them would recurse.
  for (auto& chain : bins_)
    while (chain) chain = std::move(chain->next);
  if (bins_.size() > fewest_bins && nodes_ < bins_.size() / 4) decltype(bins_)().swap(bins_);
  nodes_ = 0;
  wildcards_ = false;
}

// ---------------------------------------------------------------- posted receives

void Posted::push(Entry& receive) {
  receive.order = ++order_;
  receive.all.owner = receive.keyed.owner = &receive;
  all_.push(receive.all);
  ++size_;
  if (indexed_) add_to_index(receive);
}

// Without memory the list goes on without an index.
void Posted::add_to_index(Entry& receive) try {
  index_.list(receive.envelope).push(receive.keyed);
} catch (const std::bad_alloc&) {
  drop_index();
}

void Posted::build_index() {
  indexed_ = true;
  for (Link* link = all_.next; link != &all_ && indexed_; link = link->next)
    add_to_index(*static_cast<Entry*>(link->owner));
}

void Posted::drop_index() {
  for (Link* link = all_.next; link != &all_; link = link->next)
    if (Link& keyed = static_cast<Entry*>(link->owner)->keyed; keyed.linked()) keyed.remove();
  index_.clear();
  indexed_ = false;
}

void Posted::take_out(Entry& receive) {
  receive.all.remove();
  if (indexed_) receive.keyed.remove();
  if (--size_ == 0 && indexed_) drop_index();
}

Entry* Posted::first(const Envelope& message) {
  Entry* best = nullptr;
  if (!indexed_) {
    int steps = 0;
    for (Link* link = all_.next; link != &all_; link = link->next, ++steps) {
      Entry& entry = *static_cast<Entry*>(link->owner);
      if (!matches(entry.envelope, message)) continue;
      best = &entry;
      break;
    }
    if (steps > searched) build_index();
  } else {
    for (int form = 0; form < (index_.has_wildcards() ? 4 : 1); ++form) {
      List* const list = index_.find(generalised(message, form));
      if (!list || list->empty()) continue;
      auto* const first = static_cast<Entry*>(list->next->owner);
      if (!best || first->order < best->order) best = first;
    }
  }
  return best;
}

void Posted::remove(Entry& receive) { take_out(receive); }

// ---------------------------------------------------------------- unexpected messages

void Unexpected::add_to_index(UnexpectedEntry& message) try {
  for (int form = 0; form < 4; ++form) {
    message.in_form(form).owner = &message;
    index_.list(generalised(message.envelope, form)).push(message.in_form(form));
  }
} catch (const std::bad_alloc&) {
  drop_index();
}

void Unexpected::drop_index() {
  for (Link* link = all_.next; link != &all_; link = link->next)
    for (int form = 0; form < 4; ++form)
      if (Link& each = static_cast<UnexpectedEntry*>(link->owner)->in_form(form); each.linked()) each.remove();
  index_.clear();
  indexed_ = false;
}

void Unexpected::push(UnexpectedEntry& message) {
  message.all.owner = &message;
  all_.push(message.all);
  ++size_;
  if (indexed_) add_to_index(message);
  if (named_) add_name(message);
}

void Unexpected::build_index() {
  indexed_ = true;
  for (Link* link = all_.next; link != &all_ && indexed_; link = link->next)
    add_to_index(*static_cast<UnexpectedEntry*>(link->owner));
}

UnexpectedEntry* Unexpected::find(const Envelope& wanted) {
  if (size_ == 0) return nullptr;
  if (indexed_) {
    List* const list = index_.find(wanted);
    return list && !list->empty() ? static_cast<UnexpectedEntry*>(list->next->owner) : nullptr;
  }
  int steps = 0;
  UnexpectedEntry* found = nullptr;
  for (Link* link = all_.next; link != &all_ && !found; link = link->next, ++steps) {
    auto& entry = *static_cast<UnexpectedEntry*>(link->owner);
    if (matches(wanted, entry.envelope)) found = &entry;
  }
  if (steps > searched) build_index();
  return found;
}

void Unexpected::remove(UnexpectedEntry& message) {
  message.all.remove();
  if (indexed_)
    for (int form = 0; form < 4; ++form) message.in_form(form).remove();
  if (message.named.linked()) message.named.remove();
  if (--size_) return;
  if (indexed_) drop_index();
  if (named_) drop_names();
}

void Unexpected::index_names() {
  named_ = true;
  for (Link* link = all_.next; link != &all_ && named_; link = link->next)
    add_name(*static_cast<UnexpectedEntry*>(link->owner));
}

// Without memory they are searched.
void Unexpected::add_name(UnexpectedEntry& message) try {
  if (message.name == Envelope{}) return;
  message.named.owner = &message;
  names_.list(message.name).push(message.named);
} catch (const std::bad_alloc&) {
  drop_names();
}

void Unexpected::drop_names() {
  for (Link* link = all_.next; link != &all_; link = link->next)
    if (Link& named = static_cast<UnexpectedEntry*>(link->owner)->named; named.linked()) named.remove();
  names_.clear();
  named_ = false;
}

}  // namespace nearfield::messages
