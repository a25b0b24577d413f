// Exhaustive models of the protocols of messages: the receive queue, the fastbox, the claims of a transfer. Each is
// written as the code is (engine/messages), and each has a mutation that must be found.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/engine/interleaving.hpp"

namespace nearfield::testing {
namespace {

// ---------------------------------------------------------------- the receive queue (queue.hpp)
// Processes 0..writers-1 enqueue `each` cells; the last one dequeues all. A cell's number is 1 + writer * each + k.
// `waits`: the reader that finds the last cell's successor under way waits for it; without that it loses the queue.
template <bool waits>
struct Queue {
  std::int8_t writers, each;
  std::int8_t tail, head;
  std::int8_t next[8];
  struct Writer {
    std::int8_t pc, k, last;
  } writer[3];
  struct Reader {
    std::int8_t pc, shadow, first, taken;
    std::int8_t last_of[3];
  } reader;
  bool failed;

  Step step(int me) { return me < writers ? write(writer[me], me) : read(); }
  Step write(Writer& w, int me) {
    if (w.k == each) return Step::finished;
    const auto cell = std::int8_t(1 + me * each + w.k);
    switch (w.pc) {
      case 0: next[cell] = 0; break;
      case 1:
        w.last = tail;
        tail = cell;
        break;
      default:
        if (w.last) next[w.last] = cell;
        else head = cell;
        ++w.k;
        w.pc = 0;
        return Step::moved;
    }
    ++w.pc;
    return Step::moved;
  }
  Step read() {
    Reader& r = reader;
    if (r.taken == writers * each) return Step::finished;
    switch (r.pc) {
      case 0:
        if (r.shadow) return go(2);
        if (!head) return Step::blocked;
        r.shadow = head;
        return go(1);
      case 1: head = 0; return go(2);
      case 2:
        r.first = r.shadow;
        r.shadow = next[r.first];
        return go(r.shadow ? 5 : 3);
      case 3:
        if (tail == r.first) {
          tail = 0;
          return go(5);
        }
        return go(waits ? 4 : 5);
      case 4:
        if (!next[r.first]) return Step::blocked;
        r.shadow = next[r.first];
        return go(5);
      default: {  // every writer's cells come in order, each once
        const int from = (r.first - 1) / each, k = (r.first - 1) % each;
        if (r.last_of[from] != k) failed = true;
        r.last_of[from] = std::int8_t(k + 1);
        ++r.taken;
        return go(0);
      }
    }
  }
  Step go(int pc) {
    reader.pc = std::int8_t(pc);
    return Step::moved;
  }
};

template <bool waits>
Explored queue(int writers, int each) {
  Queue<waits> q;
  std::memset(static_cast<void*>(&q), 0, sizeof q);
  q.writers = std::int8_t(writers);
  q.each = std::int8_t(each);
  return explore(q, writers + 1);
}

TEST(Queue, LosesNothingAndKeepsOrder) {
  EXPECT_TRUE(queue<true>(1, 4).good());
  EXPECT_TRUE(queue<true>(2, 2).good());
  EXPECT_TRUE(queue<true>(2, 3).good());
  EXPECT_TRUE(queue<true>(3, 2).good());
  EXPECT_GT(queue<true>(2, 3).states, 1000u);
}

TEST(Queue, TheModelNoticesAReaderThatDoesNotWait) { EXPECT_FALSE(queue<false>(2, 2).good()); }

// ---------------------------------------------------------------- the fastbox (fastbox.hpp)
// A ring of `lines` lines; records of one or two lines whose second holds data that looks like a header. Writer and
// reader as in the code: room is looked up only when the last look does not suffice, the word behind a record is
// cleared before it is published, the reader tells how far it is once in `lines / 4`.
template <bool clears, bool looks>
struct Fastbox {
  static constexpr int lines = 8;
  std::int8_t records;
  std::int8_t length[6];
  std::int16_t word[lines];  // header word, or the first word of data: 0 or the record's number
  std::int8_t read;          // shared: lines taken
  struct Writer {
    std::int8_t pc, k, written, seen;
  } w;
  struct Reader {
    std::int8_t pc, k, read, told;
  } r;
  bool failed;

  Step step(int me) { return me == 0 ? write() : take(); }
  Step write() {
    if (w.k == records) return Step::finished;
    const int n = length[w.k], at = w.written % lines;
    const int skip = at + n > lines ? lines - at : 0;
    const bool room = w.written + skip + n + 1 - w.seen <= lines;
    switch (w.pc) {
      case 0:
        if (room || !looks) return next(2);
        if (w.seen == read) return Step::blocked;
        w.seen = read;
        return Step::moved;
      case 2:  // a skip: the beginning is cleared, then the rest is given away
        if (!skip) return next(4);
        word[0] = 0;
        return next(3);
      case 3:
        word[at] = -1;
        w.written = std::int8_t(w.written + skip);
        return next(4);
      case 4:  // data that looks like a header
        if (n == 2) word[(w.written + 1) % lines] = std::int16_t(100);
        return next(5);
      case 5:
        if (clears) word[(w.written + n) % lines] = 0;
        return next(6);
      default:
        word[w.written % lines] = std::int16_t(w.k + 1);
        w.written = std::int8_t(w.written + n);
        ++w.k;
        return next(0);
    }
  }
  Step next(int pc) {
    w.pc = std::int8_t(pc);
    return Step::moved;
  }
  Step take() {
    if (r.k == records) return Step::finished;
    switch (r.pc) {
      case 0: {
        const int at = r.read % lines;
        if (word[at] == 0) return Step::blocked;
        if (word[at] == -1) {
          r.read = std::int8_t(r.read + lines - at);
          return Step::moved;
        }
        if (word[at] != r.k + 1) failed = true;
        r.pc = 1;
        return Step::moved;
      }
      case 1:  // reads the payload: it must not have been overwritten
        if (length[r.k] == 2 && word[(r.read + 1) % lines] != 100) failed = true;
        r.read = std::int8_t(r.read + length[r.k]);
        ++r.k;
        r.pc = r.read - r.told >= lines / 4 ? 2 : 0;
        return Step::moved;
      default:
        read = r.told = r.read;
        r.pc = 0;
        return Step::moved;
    }
  }
};

template <bool clears, bool looks>
Explored fastbox(std::uint32_t code, int records) {
  Fastbox<clears, looks> box;
  std::memset(static_cast<void*>(&box), 0, sizeof box);
  box.records = std::int8_t(records);
  for (int k = 0; k < records; ++k) box.length[k] = code >> k & 1 ? 2 : 1;
  return explore(box, 2);
}

TEST(Fastbox, EverySequenceOfRecordsArrivesWhole) {
  for (std::uint32_t code = 0; code < 64; ++code) {
    const Explored explored = fastbox<true, true>(code, 6);
    EXPECT_TRUE(explored.good()) << code << " " << explored.trace << (explored.deadlocked ? " deadlock" : "");
  }
}

TEST(Fastbox, TheModelNoticesOldDataTakenForAHeader) {
  bool found = false;
  for (std::uint32_t code = 0; code < 64; ++code) found |= !fastbox<false, true>(code, 6).good();
  EXPECT_TRUE(found);
}

TEST(Fastbox, TheModelNoticesAWriterThatDoesNotLook) {
  bool found = false;
  for (std::uint32_t code = 0; code < 64; ++code) found |= !fastbox<true, false>(code, 6).good();
  EXPECT_TRUE(found);
}

// ---------------------------------------------------------------- claims and release of a transfer (transfer.cpp)
// Process 0 is the sender, 1 the receiver. Both claim blocks, copy, count; the receiver releases, the sender reuses.
// `released_last`: the receiver stores `released` after its last look at the other's count.
template <bool atomic_claims, bool released_last>
struct Claims {
  static constexpr int blocks = 3;
  std::int8_t state, front_claims, back_claims, front, back, released, reused;
  std::int8_t copied[blocks];
  struct Side {
    std::int8_t pc, nth, done, seen_front, seen_back;
  } side[2];
  bool failed;

  Step step(int me) {
    Side& s = side[me];
    if (s.pc == 99) return Step::finished;
    if (reused && me == 1) failed = true;  // whatever it looks at is another message's by now
    switch (s.pc) {
      case 0:  // the receiver matches; the sender waits for that
        if (me == 1) state = 1;
        else if (!state) return Step::blocked;
        return go(s, 1);
      case 1: {
        const int front_now = front_claims, back_now = back_claims;
        if (!atomic_claims) {
          s.seen_front = std::int8_t(front_now);
          s.seen_back = std::int8_t(back_now);
          return go(s, 2);
        }
        if (front_now + back_now >= blocks) return go(s, 5);
        s.nth = std::int8_t(me == 0 ? blocks - 1 - back_now : front_now);
        ++(me == 0 ? back_claims : front_claims);
        return go(s, 3);
      }
      case 2:
        if (s.seen_front + s.seen_back >= blocks) return go(s, 5);
        s.nth = std::int8_t(me == 0 ? blocks - 1 - s.seen_back : s.seen_front);
        (me == 0 ? back_claims : front_claims) = std::int8_t((me == 0 ? s.seen_back : s.seen_front) + 1);
        return go(s, 3);
      case 3:
        if (copied[int(s.nth)]) failed = true;
        copied[int(s.nth)] = 1;
        return go(s, 4);
      case 4: (me == 0 ? back : front) = ++s.done; return go(s, 1);
      case 5:
        if (me == 1 && !released_last && !released) {
          released = 1;
          return Step::moved;
        }
        if ((me == 0 ? front : back) + s.done != blocks) return Step::blocked;
        for (const std::int8_t each : copied)
          if (!each) failed = true;
        return go(s, 6);
      default:
        if (me == 1) {
          released = 1;
        } else {
          if (!released) return Step::blocked;
          reused = 1;
        }
        s.pc = 99;
        return Step::moved;
    }
  }
  static Step go(Side& s, int pc) {
    s.pc = std::int8_t(pc);
    return Step::moved;
  }
};

template <bool atomic_claims, bool released_last>
Explored claims() {
  Claims<atomic_claims, released_last> c;
  std::memset(static_cast<void*>(&c), 0, sizeof c);
  return explore(c, 2);
}

TEST(Claims, EveryBlockIsCopiedOnceAndNothingIsReusedTooEarly) { EXPECT_TRUE((claims<true, true>().good())); }
TEST(Claims, TheModelNoticesClaimsThatAreNotAtomic) { EXPECT_FALSE((claims<false, true>().good())); }
TEST(Claims, TheModelNoticesAReleaseThatComesTooEarly) { EXPECT_FALSE((claims<true, false>().good())); }

}  // namespace
}  // namespace nearfield::testing
