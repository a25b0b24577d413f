// Posted receives and unexpected messages.
//
// Both are lists in order of arrival, which are simply searched; a list in which a search took long gets an index: a
// hash table of first-in-first-out lists by (context, source, tag), where wildcards are keys like others. A posted
// receive is in one of these lists; a message looks into the four that may hold a receive for it and takes the oldest.
// An unexpected message is in all four, so that a receive finds the oldest one for it at the head of one. Cancelled
// sends are looked up by name; the first slow lookup builds a second hash table.
#pragma once
#include <memory>
#include <vector>

#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

inline bool matches(const Envelope& wanted, const Envelope& message) {
  return wanted.context == message.context && (wanted.source == message.source || wanted.source == any) &&
         (wanted.tag == message.tag || wanted.tag == any);
}

// The four receives that a message may match, the exact one first.
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

// Key to list. Lists that have become empty go when the table is cleared or grows.
class Index {
 public:
  List& list(const Envelope& key);
  List* find(const Envelope& key);
  void clear();
  bool has_wildcards() const { return wildcards_; }

 private:
  struct Node {
    Envelope key;
    List list;
    std::unique_ptr<Node> next;
  };
  static std::size_t hash(const Envelope& key);
  void grow();
  std::vector<std::unique_ptr<Node>> bins_;
  std::size_t nodes_ = 0;
  bool wildcards_ = false;
};

// A posted receive, or what an unexpected message has in common with it.
struct Entry {
  Envelope envelope{};
  std::uint64_t order = 0;
  Link all, keyed;
};
struct UnexpectedEntry : Entry {
  Envelope name{};  // by which its sender may take it back: a key of its own, none: it may not
  Link named;
  Link wild[3];  // in the lists of receives with wildcards
  Link& in_form(int form) { return form ? wild[form - 1] : keyed; }
};

inline constexpr int searched = 24;  // entries that one search may look through without an index

class Posted {
 public:
  void push(Entry& receive);
  Entry* first(const Envelope& message);  // the oldest receive for it, left in
  void remove(Entry& receive);
  template <class Test>
  Entry* find_if(Test test) const {
    for (Link* link = all_.next; link != &all_; link = link->next)
      if (auto* const entry = static_cast<Entry*>(link->owner); test(*entry)) return entry;
    return nullptr;
  }
  // `visit` may remove what it is given.
  template <class Visit>
  void each(Visit visit) {
    all_.each<Entry>(visit);
  }
  std::size_t size() const { return size_; }

 private:
  void take_out(Entry& receive);
  void add_to_index(Entry& receive);
  [[gnu::noinline]] void build_index();
  void drop_index();
  List all_;
  Index index_;
  bool indexed_ = false;
  std::size_t size_ = 0;
  std::uint64_t order_ = 0;
};

class Unexpected {
 public:
  void push(UnexpectedEntry& message);
  UnexpectedEntry* find(const Envelope& wanted);  // the oldest message for it, left in
  void remove(UnexpectedEntry& message);
  template <class Test>
  UnexpectedEntry* find_if(Test test) const {
    for (Link* link = all_.next; link != &all_; link = link->next)
      if (auto* const entry = static_cast<UnexpectedEntry*>(link->owner); test(*entry)) return entry;
    return nullptr;
  }
  // One with that name.
  template <class Test>
  UnexpectedEntry* find_named(const Envelope& name, Test test) {
    if (List* const list = named_ ? names_.find(name) : nullptr) {
      for (Link* link = list->next; link != list; link = link->next)
        if (auto* const entry = static_cast<UnexpectedEntry*>(link->owner); test(*entry)) return entry;
    }
    if (named_) return nullptr;
    int steps = 0;
    UnexpectedEntry* const found =
        find_if([&](const UnexpectedEntry& e) { return ++steps, e.name == name && test(e); });
    if (steps > searched) index_names();
    return found;
  }
  std::size_t size() const { return size_; }

 private:
  void add_to_index(UnexpectedEntry& message);
  [[gnu::noinline]] void build_index();
  void drop_index();
  [[gnu::noinline]] void index_names();
  void add_name(UnexpectedEntry& message);
  void drop_names();
  List all_;
  Index index_, names_;
  bool indexed_ = false, named_ = false;
  std::size_t size_ = 0;
};

}  // namespace nearfield::messages
