// Tables of posted receives and of unexpected messages.
//
// A table is a list in order of arrival, whose entries are searched one by one. Once a search has taken long, all
// entries lie in hash bins as well, until the table is empty. Their key is (context, source, tag), in which a wildcard
// is a value like others:
//
//   bin -> the oldest of a key -> the oldest of another key -> ...
//              <-> the next of that key <-> ... in order of arrival, a ring
//
// A posted receive has one key. A message looks at the four keys that a receive for it may have, and takes the receive
// that was posted first. An unexpected message has all four keys, so that a receive finds the oldest message for it at
// its own key.
#pragma once
#include <vector>

#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

// Returns whether a receive and a message match.
inline bool match(const Envelope& a, const Envelope& b) {
  return a.context == b.context && (a.source == b.source || a.source == any || b.source == any) &&
         (a.tag == b.tag || a.tag == any || b.tag == any);
}

// Returns one of the four keys of receives that a message may match; `form` 0: the exact one.
inline Envelope generalised(const Envelope& e, int form) {
  return {e.context, form & 1 ? any : e.source, form & 2 ? any : e.tag};
}

struct Link {
  Link *next = nullptr, *previous = nullptr;
  void* owner = nullptr;
  void insert_before(Link& other) {
    next = &other;
    previous = other.previous;
    other.previous->next = this;
    other.previous = this;
  }
  void remove() {
    previous->next = next;
    next->previous = previous;
    next = previous = nullptr;
  }
  bool linked() const { return next != nullptr; }
};

struct List : Link {
  List() { next = previous = this; }
  List(const List&) = delete;
  bool empty() const { return next == this; }
  void push(Link& link) { link.insert_before(*this); }
  // `visit` may remove what it is given.
  template <class Owner, class Visit>
  void each(Visit visit) const {
    for (const Link* link = next; link != this;) {
      auto* const owner = static_cast<Owner*>(link->owner);
      link = link->next;
      if (owner) visit(*owner);
    }
  }
};

// An entry under one of its keys. Valid while the entry is in bins.
struct KeyEntry {
  Envelope key;
  void* owner;
  KeyEntry *next, *previous;  // ring of the entries with that key
  KeyEntry* below;            // of the oldest: the oldest of the next key in the bin
  KeyEntry** at;              // of the oldest: the pointer to it in its bin; of others: nullptr
};

class Bins {
 public:
  bool make() noexcept { return !bins_.empty() || grow(); }  // false: there is no memory
  void push(KeyEntry& place);
  KeyEntry* oldest(const Envelope& key) const;  // nullptr: there is none
  void remove(KeyEntry& place);
  void shrink();  // pre: nothing is in them

 private:
  static std::size_t hash(const Envelope& key);
  bool grow() noexcept;
  void put(KeyEntry& oldest);
  std::vector<KeyEntry*> bins_;
  std::size_t keys_ = 0;
};

template <int keys_of_each>
struct Entry {
  static constexpr int keys = keys_of_each;
  Envelope envelope{};
  std::uint64_t order = 0;
  Link all;
  KeyEntry place[keys];
};

inline constexpr int searched = 24;  // entries that one search may look through without bins

template <class Owner>
class Table {
 public:
  void push(Owner& entry) {
    entry.order = ++order_;
    entry.all.owner = &entry;
    all_.push(entry.all);
    ++size_;
    if (in_bins_) [[unlikely]]
      put_in_bins(entry);
  }
  // Returns the oldest that matches, without removing it.
  Owner* oldest(const Envelope& sought) {
    if (!in_bins_) return search([&](const Owner& each) { return match(each.envelope, sought); });
    Owner* oldest = nullptr;
    for (int form = 0; form < (Owner::keys == 1 && wildcards_ ? 4 : 1); ++form)
      if (KeyEntry* const place = bins_.oldest(generalised(sought, form)))
        if (auto* const owner = static_cast<Owner*>(place->owner); !oldest || owner->order < oldest->order)
          oldest = owner;
    return oldest;
  }
  // Returns an entry with that envelope (no wildcards) that passes `test`. Searches from both ends, since it is mostly
  // among the oldest or youngest.
  template <class Test>
  Owner* find_same(const Envelope& envelope, Test test) {
    if (!in_bins_) return search([&](Owner& each) { return each.envelope == envelope && test(each); });
    KeyEntry *up = bins_.oldest(envelope), *down = up ? up->previous : nullptr;
    while (up) {
      for (KeyEntry* const place : {up, down})
        if (auto* const owner = static_cast<Owner*>(place->owner); test(*owner)) return owner;
      if (up == down || up->next == down) break;
      up = up->next, down = down->previous;
    }
    return nullptr;
  }
  void remove(Owner& entry) {
    entry.all.remove();
    --size_;
    if (in_bins_) [[unlikely]]
      take_out_of_bins(entry);
  }
  template <class Test>
  Owner* find_if(Test test) const {
    for (Link* link = all_.next; link != &all_; link = link->next)
      if (auto* const owner = static_cast<Owner*>(link->owner); test(*owner)) return owner;
    return nullptr;
  }
  // `visit` may remove what it is given.
  template <class Visit>
  void each(Visit visit) {
    all_.template each<Owner>(visit);
  }
  std::size_t size() const { return size_; }

 private:
  template <class Test>
  Owner* search(Test test) {
    int steps = 0;
    Owner* const found = find_if([&](Owner& each) { return ++steps, test(each); });
    if (steps > searched) [[unlikely]]
      fill_bins();
    return found;
  }
  [[gnu::noinline]] void fill_bins() {
    if ((in_bins_ = bins_.make())) find_if([&](Owner& each) { return put_in_bins(each), false; });
  }
  [[gnu::noinline]] void put_in_bins(Owner& entry) {
    wildcards_ |= entry.envelope.source == any || entry.envelope.tag == any;
    for (int form = 0; form < Owner::keys; ++form) {
      KeyEntry& place = entry.place[form];
      place.key = generalised(entry.envelope, form);
      place.owner = &entry;
      bins_.push(place);
    }
  }
  [[gnu::noinline]] void take_out_of_bins(Owner& entry) {
    for (KeyEntry& place : entry.place) bins_.remove(place);
    if (size_) return;
    in_bins_ = wildcards_ = false;
    bins_.shrink();
  }
  List all_;
  Bins bins_;
  bool in_bins_ = false;
  bool wildcards_ = false;  // an entry in bins has one
  std::size_t size_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace nearfield::messages
