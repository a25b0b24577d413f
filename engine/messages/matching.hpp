// Posted receives and unexpected messages.
//
// Both are lists in order of arrival; while they are short, they are simply searched. A long one gets an index: a hash
// table of first-in-first-out lists by (context, source, tag), where wildcards are keys like others. A posted receive
// is in one of these lists; a message looks into the four that may hold a receive for it and takes the oldest. An
// unexpected message is in all four, so that a receive finds the oldest one for it at the head of one.
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

// What both kinds of entry carry.
struct Entry {
  Envelope envelope{};
  std::uint64_t order = 0;
  Link all, keyed[4];
};

inline constexpr std::size_t searched = 12;  // entries that are looked through one by one

class Posted {
 public:
  void push(Entry& receive);
  Entry* match(const Envelope& message);  // the oldest receive for it, taken out
  void remove(Entry& receive);
  std::size_t size() const { return size_; }

 private:
  void take_out(Entry& receive);
  List all_;
  Index index_;
  bool indexed_ = false;
  std::size_t size_ = 0;
  std::uint64_t order_ = 0;
};

class Unexpected {
 public:
  void push(Entry& message);
  Entry* find(const Envelope& wanted);  // the oldest message for it, left in
  void remove(Entry& message);
  template <class Test>
  Entry* find_if(Test test) const {
    for (Link* link = all_.next; link != &all_; link = link->next)
      if (test(*static_cast<Entry*>(link->owner))) return static_cast<Entry*>(link->owner);
    return nullptr;
  }
  std::size_t size() const { return size_; }

 private:
  void add_to_index(Entry& message);
  List all_;
  Index index_;
  bool indexed_ = false;
  std::size_t size_ = 0;
};

}  // namespace nearfield::messages
