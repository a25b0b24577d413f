// Models of messages: queue, fastbox and its announcement, claims and stages of transfers, answers, what is taken back.
// The processes run engine/messages.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "tests/engine/model/members.hpp"

namespace nearfield::testing {
namespace {

using messages::Messenger;
using messages::Request;

#define EXPECT_FOUND(explored) EXPECT_FALSE((explored).good())

constexpr std::uint64_t context = 7;

// What a run needs beyond its stacks, at the same places in every run.
struct Run {
  std::unique_ptr<Request> request[4][3];
  Atomic<std::uint64_t> outcome;
};
Run run;

using Body = std::function<void(Messenger&, int)>;
Explored explore_messages(Members& members, const Body& body, Options options = {}, const Body& before = {}) {
  options.pause_after_stores = true;
  return explore(
      members.count(),
      [&] {
        members.renew();
        for (auto& of : run.request)
          for (auto& each : of) {
            (void)each.release();  // the run that was broken off may have it in its lists
            each = std::make_unique<Request>();
          }
        run.outcome.store(0);
        if (before)
          for (int i = 0; i < members.count(); ++i) before(members.messenger(i), i);
        return [&](int i) { body(members.messenger(i), i); };
      },
      options);
}

layout::Data data_of(const std::uint64_t& word) {
  return {reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(&word)), sizeof word, {}};
}

void send_word(Messenger& messenger, int me, int to, std::uint64_t word) {
  while (!messenger.send_at_once(to, {context, me, 0}, data_of(word))) {
    if (!messenger.poll()) pause_process();
  }
}

void finish(Messenger& messenger, const Request& request) {
  while (!request.complete()) {
    if (!messenger.poll() && !request.complete()) pause_process();
  }
}

// Words from `senders` others, `each` of every one from 0 on, in order.
void receive_words(Messenger& messenger, int me, int senders, std::uint64_t each) {
  std::uint64_t next[4] = {};
  for (std::uint64_t i = 0; i < each * std::uint64_t(senders); ++i) {
    std::uint64_t word = 0;
    Request& request = *run.request[me][0];
    request.envelope = {context, messages::any, messages::any};
    request.member = -1;
    request.data = data_of(word);
    messenger.start(request);
    finish(messenger, request);
    const auto from = std::size_t(request.envelope.source);
    require(from < 4 && word == next[from]++, "lost, twice or out of order");
  }
}

// ---------------------------------------------------------------- the receive queue
Explored explore_queue(int senders, std::uint64_t each, const Options& options = {}) {
  Members members({.count = senders + 1, .messages = true, .protocol = Protocol::queue});
  const Body body = [&](Messenger& messenger, int me) {
    if (me == senders) return receive_words(messenger, me, senders, each);
    for (std::uint64_t i = 0; i < each; ++i) send_word(messenger, me, senders, i);
  };
  return explore_messages(members, body, options);
}

TEST(Queue, LosesNothingAndKeepsOrder) {
  EXPECT_GOOD(explore_queue(1, 2, {.preemptions = 3}));
  EXPECT_GOOD(explore_queue(2, 1, {.preemptions = 2}));
}

TEST(Queue, TheModelNotices) {
  EXPECT_FOUND(explore_queue(2, 1, {.preemptions = 3, .mutation = {.split_updates = true}}));   // cells are lost
  EXPECT_FOUND(explore_queue(1, 2, {.preemptions = 3, .mutation = {.blind_compares = true}}));  // does not wait
}

// ---------------------------------------------------------------- fastbox and announcement
// The fifth message brings the fastbox; what was sent before lies in the queue.
Explored explore_box(std::uint64_t sent_before, std::uint64_t sent, const Options& options = {}) {
  Members members({.count = 2, .messages = true});
  const Body before = [&](Messenger& messenger, int me) {
    for (std::uint64_t i = 0; me == 0 && i < sent_before; ++i) send_word(messenger, me, 1, i);
  };
  const Body body = [&](Messenger& messenger, int me) {
    if (me == 1) return receive_words(messenger, me, 1, sent_before + sent);
    for (std::uint64_t i = 0; i < sent; ++i) send_word(messenger, me, 1, sent_before + i);
  };
  return explore_messages(members, body, options, before);
}

TEST(Fastbox, NothingOvertakesItsAnnouncement) {
  EXPECT_GOOD(explore_box(3, 3, {.preemptions = 1}));
  EXPECT_GOOD(explore_box(4, 2, {.preemptions = 2}));
}

TEST(Fastbox, TheModelNoticesAnAnnouncementThatIsLostOrReadTwice) {
  EXPECT_FOUND(explore_box(3, 3, {.preemptions = 2, .mutation = {.split_updates = true}}));
  EXPECT_FOUND(explore_box(4, 2, {.preemptions = 2, .mutation = {.no_zeros = true}}));
}

// Records of an eighth of the ring, one up to its last line, and two short ones behind its end. Where the second of
// these begins lies what is its header but for the bytes behind it: payload of the turn before. The reader tells how
// far it is once in a quarter.
Explored explore_turn(const Options& options) {
  constexpr std::size_t longest = 15000, to_the_last_line = 10624, count = 11;
  static constexpr std::size_t length[count] = {longest, longest, longest,          longest, longest, longest,
                                                longest, longest, to_the_last_line, 100,     8};
  constexpr std::uint32_t number = count + 1;  // of the last record: one has been skipped
  static std::vector<std::byte> bytes(longest), received(longest);
  for (std::size_t i = 0; i < longest; ++i) bytes[i] = std::byte(i % 251);
  const std::uint64_t old = messages::record_word(messages::Kind::eager, length[count - 1], number);
  const messages::Envelope envelope{context, 0, 0};
  const std::size_t at = messages::record_length(length[count - 2]) - messages::place_of_payload(longest);
  std::memcpy(&bytes[at], &old, sizeof old);
  std::memcpy(&bytes[at + sizeof old], &envelope, sizeof envelope);
  Members members({.count = 2, .messages = true, .protocol = Protocol::fastbox});
  auto start = [](Messenger& messenger, int me, int nth, std::size_t i) -> Request& {
    Request& request = *run.request[me][nth];
    request.envelope = {context, 0, 0};
    request.member = 1 - me;
    request.is_send = me == 0;
    request.data = {me ? received.data() : bytes.data() + (i == count - 1), std::uint64_t{length[i]}, {}};
    messenger.start(request);
    return request;
  };
  const Body before = [&](Messenger& messenger, int me) {
    for (std::size_t i = 0; me == 0 && i < 7; ++i) start(messenger, me, 0, i);
  };
  const Body body = [&](Messenger& messenger, int me) {
    for (std::size_t i = me ? 0 : 7; i < count; ++i) {
      Request& request = start(messenger, me, me ? 0 : 1, i);
      finish(messenger, request);
      require(request.error == messages::ErrorKind::none, "cut short");
      require(!me || request.received == length[i], "another length");
      require(!me || !std::memcmp(received.data(), &bytes[i == count - 1], length[i]), "other bytes");
    }
  };
  return explore_messages(members, body, options, before);
}

TEST(Fastbox, RecordsArriveWholeAroundTheEndOfTheRing) { EXPECT_GOOD(explore_turn({.preemptions = 3})); }

TEST(Fastbox, TheModelNoticesOldDataTakenForAHeader) {
  EXPECT_FOUND(explore_turn({.preemptions = 3, .mutation = {.no_zeros = true}}));
}

// ---------------------------------------------------------------- transfers
// mapped: memory that both reach, both claim blocks. copy_buffers: a chain of them, automatic: one.
Explored explore_transfer(Protocol protocol, std::size_t bytes, int times, const Options& options = {}) {
  Members members({.count = 2, .messages = true, .protocol = protocol});
  static std::byte* buffer[2];
  const Body before = [&](Messenger&, int me) {
    auto& process = members.process(me);
    buffer[me] = process.segment().base() + *process.arena().allocate(bytes, 4096);
  };
  const Body body = [&](Messenger& messenger, int me) {
    for (int i = 0; i < times; ++i) {
      Request& request = *run.request[me][i];
      request.envelope = {context, 0, i};
      request.member = 1 - me;
      request.is_send = me == 0;
      request.data = {buffer[me], bytes, {}};
      std::memset(buffer[me], me == 0 ? i + 1 : 0, bytes);
      messenger.start(request);
      finish(messenger, request);
      require(request.error == messages::ErrorKind::none && (me == 0 || request.received == bytes), "cut short");
      for (std::size_t at = 0; me == 1 && at < bytes; at += 512)
        require(buffer[me][at] == std::byte(i + 1), "a block is not there");
    }
  };
  return explore_messages(members, body, options, before);
}

TEST(Transfers, EveryBlockIsThereAndNothingIsReusedTooEarly) {
  EXPECT_GOOD(explore_transfer(Protocol::mapped, 17 << 10, 1, {.preemptions = 3}));
  EXPECT_GOOD(explore_transfer(Protocol::mapped, 17 << 10, 2, {.store_buffers = false, .preemptions = 2}));
}

TEST(Transfers, BuffersAreFilledAndEmptiedInOrder) {
  EXPECT_GOOD(explore_transfer(Protocol::automatic, 5 << 10, 2, {.preemptions = 3}));
  EXPECT_GOOD(explore_transfer(Protocol::copy_buffers, 300 << 10, 1, {.store_buffers = false, .preemptions = 2}));
}

// One buffer goes to and fro: the second member answers in it, and the first sends its next message in it while the
// first one, which is synchronous, has not ended.
Explored explore_returns(int messages, const Options& options = {}) {
  constexpr std::size_t bytes = 5 << 10;
  Members members({.count = 2, .messages = true, .protocol = Protocol::automatic});
  static std::byte* buffer[2];
  const Body before = [&](Messenger&, int me) {
    auto& process = members.process(me);
    buffer[me] = process.segment().base() + *process.arena().allocate(3 * bytes, 4096);
  };
  const Body body = [&](Messenger& messenger, int me) {
    const auto start = [&](int i) -> Request& {
      Request& request = *run.request[me][i];
      request.is_send = me == i % 2;
      request.envelope = {context, i % 2, i};
      request.member = 1 - me;
      request.mode = i == 0 ? messages::Mode::synchronous : messages::Mode::standard;
      request.data = {buffer[me] + std::size_t(i) * bytes, bytes, {}};
      std::memset(request.data.address, request.is_send ? i + 1 : 0, bytes);
      messenger.start(request);
      return request;
    };
    for (int i = 0; i < messages; ++i) {
      Request& request = start(i);
      if (request.is_send) continue;
      finish(messenger, request);
      require(request.error == messages::ErrorKind::none && request.received == bytes, "cut short");
      for (std::size_t at = 0; at < bytes; at += 512)
        require(request.data.address[at] == std::byte(i + 1), "not what was sent");
    }
    for (int i = me; i < messages; i += 2) finish(messenger, *run.request[me][i]);
  };
  return explore_messages(members, body, options, before);
}

TEST(Transfers, BuffersComeBack) { EXPECT_GOOD(explore_returns(3, {.store_buffers = false, .preemptions = 3})); }

TEST(Transfers, TheModelNotices) {
  const std::size_t bytes = 17 << 10;
  EXPECT_FOUND(explore_transfer(Protocol::mapped, bytes, 1, {.preemptions = 3, .mutation = {.split_updates = true}}));
  EXPECT_FOUND(explore_transfer(Protocol::mapped, bytes, 1, {.preemptions = 3, .mutation = {.blind_compares = true}}));
}

// ---------------------------------------------------------------- answers
// Two receivers match what their sender does not look at, since it looks at sixteen others.
Explored explore_answers(const Options& options) {
  static std::array<Request*, 18> sent;
  static std::uint64_t word[3];
  Members members({.count = 3, .messages = true});
  const Body before = [&](Messenger& messenger, int me) {
    if (me != 0) return;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const int to = i % 2 ? 1 : 2;
      Request& request = *(sent[i] = new Request);  // most stay in the lists
      request.envelope = {context, 0, i < 16 ? 9 : 0};
      request.member = to;
      request.is_send = true;
      request.mode = messages::Mode::synchronous;
      request.data = data_of(word[0]);
      messenger.start(request);
    }
  };
  const Body body = [&](Messenger& messenger, int me) {
    if (me == 0) {
      for (std::size_t i = 16; i < sent.size(); ++i) finish(messenger, *sent[i]);
      return;
    }
    Request& request = *run.request[me][0];
    request.envelope = {context, 0, 0};
    request.member = 0;
    request.data = data_of(word[me]);
    messenger.start(request);
    finish(messenger, request);
  };
  return explore_messages(members, body, options, before);
}

TEST(Answers, NoneIsLost) { EXPECT_GOOD(explore_answers({.preemptions = 2})); }

TEST(Answers, TheModelNoticesOneThatIsLost) {
  EXPECT_FOUND(explore_answers({.preemptions = 3, .mutation = {.split_updates = true}}));
  EXPECT_FOUND(explore_answers({.preemptions = 3, .mutation = {.blind_compares = true}}));
}

// ---------------------------------------------------------------- memory of the language
// Words of records are plain memory, which a model has at once: what is shown is that nothing is lost, read twice or
// waited for in vain where loads may return older values.
constexpr Options language{.memory = Memory::language, .preemptions = 1};
TEST(Language, NoMessageIsLost) {
  EXPECT_GOOD(explore_queue(1, 2, language));
  EXPECT_GOOD(explore_queue(2, 1, language));
  EXPECT_GOOD(explore_box(4, 2, language));
  EXPECT_GOOD(explore_turn(language));
  EXPECT_GOOD(explore_answers(language));
}

TEST(Language, EveryBlockIsThere) { EXPECT_GOOD(explore_transfer(Protocol::mapped, 17 << 10, 1, language)); }
TEST(Language, BuffersAreFilledAndEmptied) { EXPECT_GOOD(explore_transfer(Protocol::automatic, 5 << 10, 2, language)); }
// With preemptions it has too many states: each poll looks at the words of a Transfer as well.
TEST(Language, BuffersComeBack) { EXPECT_GOOD(explore_returns(3, {.memory = Memory::language, .preemptions = 0})); }

// ---------------------------------------------------------------- what is taken back
// The sender takes back what the receiver may match meanwhile: both think the same of it in the end.
TEST(Withdrawing, SenderAndReceiverAgree) {
  constexpr std::uint64_t taken_back = 1, sent = 2;
  static bool ended[3];
  static std::uint64_t word[2];
  Members members({.count = 2, .messages = true});
  const Body body = [](Messenger& messenger, int me) {
    Request& request = *run.request[me][0];
    request.envelope = {context, 0, 0};
    request.member = 1 - me;
    request.data = data_of(word[me]);
    if (me == 0) {
      word[me] = 42;
      request.is_send = true;
      request.mode = messages::Mode::synchronous;
      messenger.start(request);
      messenger.cancel(request);
      finish(messenger, request);
      return run.outcome.store(request.cancelled ? taken_back : sent);
    }
    word[me] = 0;
    messenger.poll();
    messenger.start(request);
    std::uint64_t outcome = run.outcome.load();
    for (; outcome == 0; outcome = run.outcome.load()) {
      if (!messenger.poll()) pause_process();
    }
    while (messenger.poll()) continue;
    ended[outcome] = true;
    require(request.complete() == (outcome == sent), "sender and receiver do not agree");
    require(!request.complete() || word[me] == 42, "another word");
  };
  EXPECT_GOOD(explore_messages(members, body, {.preemptions = 3}));
  EXPECT_TRUE(ended[taken_back] && ended[sent]);
}

}  // namespace
}  // namespace nearfield::testing
