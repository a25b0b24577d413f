// Receives that are posted elsewhere as well: another MPI, whose messages nobody here carries, is played by its
// receiver.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "engine/messages/progress_thread.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::messages {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

constexpr std::uint64_t longest = 100000;

std::byte content(int source, int number) { return std::byte(source * 37 + number * 5 + 1); }

struct Receive;
struct Other;

// Of one tag. They meet the oldest receive that they fit, or wait.
struct TokensOf final : Tokens {
  Other* other = nullptr;
  int tag = 0, waiting = 0;
  bool send() override;
  bool drain() override { return waiting && waiting--; }
};

// The other MPI: what is posted there, in order, and what comes. All under the messenger's lock.
struct Other {
  std::deque<Receive*> posted;
  std::mt19937* random;
  int left = 0, sent = 0;  // messages that others send by it
  std::vector<int> tags;   // of those
  TokensOf tokens[2];
  explicit Other(std::mt19937& numbers) : random(&numbers) {
    for (int tag = 0; tag < 2; ++tag) tokens[tag].other = this, tokens[tag].tag = tag;
  }
  Receive* oldest(int tag);
  void post(Receive& receive);
  void arrive();
  // As who looks for messages and finds a token.
  void drop_tokens() {
    for (TokensOf& each : tokens)
      for (; each.waiting; --each.waiting) each.lose();
  }
};

struct Receive final : Elsewhere {
  Other* other = nullptr;
  Request request;
  std::vector<std::byte> memory = std::vector<std::byte>(longest);
  enum { by_nobody, by_message, by_token } met = by_nobody;
  int under_way = 0;  // looks until that is known
  bool there = false;
  int number = -1, token = 0;

  Claim claim(int tag, Tokens*& asked) override {
    Claim found = request.promised ? Claim::yes : resolve();
    if (found == Claim::later) {
      other->tokens[tag].ask(asked);
      found = resolve();
    }
    if (found != Claim::yes) return found;
    if (*request.promised != tag) return Claim::other;
    other->tokens[tag].use(asked);
    request.elsewhere = nullptr;
    return Claim::yes;
  }
  Claim resolve() {
    if (met == by_nobody || under_way-- > 0) return Claim::later;
    if (met == by_token) {
      request.promised = token;
      return Claim::yes;
    }
    request.elsewhere = nullptr;
    there = true;
    return Claim::no;
  }
  void meet(bool by_a_token, int what) {
    met = by_a_token ? by_token : by_message;
    (by_a_token ? token : number) = what;
    under_way = int((*other->random)() % 4);
  }
  bool complete() const { return there || request.complete(); }
};

Receive* Other::oldest(int tag) {
  const auto found = std::ranges::find_if(posted, [&](const Receive* r) {
    return r->request.posted && (r->request.envelope.tag == any || r->request.envelope.tag == tag);
  });
  if (found == posted.end()) return nullptr;
  Receive* const receive = *found;
  posted.erase(found);
  return receive;
}

bool TokensOf::send() {
  if (Receive* const receive = other->oldest(tag)) receive->meet(true, tag);
  else ++waiting;
  return true;
}

void Other::post(Receive& receive) {
  receive.request.elsewhere = &receive;
  for (TokensOf& each : tokens) {
    if (!each.waiting || (receive.request.envelope.tag != any && receive.request.envelope.tag != each.tag)) continue;
    --each.waiting;
    return receive.meet(true, each.tag);
  }
  posted.push_back(&receive);
}

// The next one meets the oldest receive that it fits, or waits until there is one.
void Other::arrive() {
  if (!left) return;
  if (Receive* const receive = oldest(tags[std::size_t(sent)])) receive->meet(false, sent++), --left;
}

struct Plan {
  int source, tag, number;
  std::uint64_t bytes;
  bool synchronous;
};

// Process 0 receives from anybody what the others and the other MPI send, while it is there and while it is not.
bool receive_rounds(Process& process, PageBootstrap& bootstrap, int rank, int size, int rounds, unsigned seed) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  auto made = Messenger::create(**team, bootstrap, false);
  if (!made) return false;
  Messenger& messenger = *made->release();
  team->release();
  testing::node_stays = true;
  auto& thread = *new ProgressThread(process, &messenger, Serves::in_host);
  std::mt19937 common(seed), own(seed * 100 + unsigned(rank));
  constexpr std::uint64_t sizes[] = {0, 1, 40, 500, 2000, 8192, 16385, 60000, longest};
  bool good = true;
  for (int round = 0; round < rounds && good; ++round) {
    std::vector<Plan> plans(1 + common() % 10);
    std::vector<int> numbers(std::size_t(size), 0), of_tag(2, 0);
    for (Plan& p : plans) {
      p.source = 1 + int(common() % unsigned(size - 1));
      p.tag = int(common() % 2);
      p.number = numbers[std::size_t(p.source)]++;
      p.bytes = sizes[common() % std::size(sizes)];
      p.synchronous = common() % 4 == 0;
      ++of_tag[std::size_t(p.tag)];
    }
    const bool any_tag = common() % 2, mixed = common() % 2, enters_host = common() % 2;
    if (rank != 0) {
      bootstrap.meet();
      std::deque<Request> requests;
      std::deque<std::vector<std::byte>> memory;
      for (const Plan& p : plans) {
        if (p.source != rank) continue;
        if (own() % 4 == 0) usleep(own() % 200);
        Request& r = requests.emplace_back();
        auto& data = memory.emplace_back(p.bytes, content(rank, p.number));
        r.is_send = true;
        r.mode = p.synchronous ? Mode::synchronous : Mode::standard;
        r.member = 0;
        r.envelope = {5, rank, p.tag};
        r.data = {data.data(), p.bytes, {}};
        messenger.start(r);
      }
      for (Request& r : requests) messenger.wait(r);
      bootstrap.meet();
      continue;
    }
    Other other(own);
    other.left = int(own() % 6);
    for (int k = 0; k < other.left; ++k) {
      other.tags.push_back(int(own() % 2));
      ++of_tag[std::size_t(other.tags.back())];
    }
    std::deque<Receive> receives;
    auto receive = [&](int tag) {
      Receive& one = receives.emplace_back();
      one.other = &other;
      one.request.envelope = {5, any, tag};
      one.request.data = {one.memory.data(), longest, {}};
      messenger.start(one.request);
    };
    // As a rank that goes where nobody looks: all that wait, from the oldest on.
    auto post_there = [&] {
      for (Receive& each : receives)
        messenger.take_out([&]() -> Request* {
          if (each.request.posted && !each.request.elsewhere && !each.request.promised) other.post(each);
          return nullptr;
        });
    };
    auto look_there = [&] {
      if (own() % 3 == 0) messenger.take_out([&]() -> Request* { return other.arrive(), nullptr; });
      if (own() % 3 == 0) messenger.take_out([&]() -> Request* { return other.drop_tokens(), nullptr; });
      for (Receive& each : receives)
        messenger.take_out([&]() -> Request* {
          const bool waits = each.request.posted && each.request.elsewhere && !each.request.promised;
          return waits && each.resolve() == Elsewhere::Claim::no ? &each.request : nullptr;
        });
    };
    // Those for one tag come first, or they might find that others have taken all.
    int of_any = 0, late = 0;
    for (int tag = 0; tag < 2; ++tag)
      for (int k = 0; k < of_tag[std::size_t(tag)]; ++k) {
        if (any_tag && (!mixed || own() % 2)) ++of_any;
        else receive(tag);
      }
    if (!enters_host) late = of_any ? int(own() % unsigned(of_any)) : 0;  // begun while others are under way
    for (; of_any > late; --of_any) receive(any);
    post_there();
    if (own() % 2) look_there();
    bootstrap.meet();
    if (enters_host) {  // what is posted must be met, or the senders never come to the meeting
      good &= thread.enter_host();
      bootstrap.meet();
      thread.leave_host();
    }
    for (;;) {
      messenger.poll();
      if (late && own() % 4 == 0) receive(any), --late;
      if (!late && std::ranges::all_of(receives, &Receive::complete)) break;
      if (own() % 8 == 0) post_there();
      look_there();
    }
    if (!enters_host) bootstrap.meet();
    // Receives in the order in which they were posted get the messages of each sender and tag in theirs, each once.
    std::vector<char> taken(plans.size());
    int next_far[2] = {-1, -1}, last_far = -1, from_far = 0;
    for (Receive& receive : receives) {
      if (receive.there) {
        int& before = next_far[other.tags[std::size_t(receive.number)]];
        good &= any_tag && !mixed ? receive.number > last_far : receive.number > before;
        before = last_far = receive.number;
        ++from_far;
        continue;
      }
      const Request& r = receive.request;
      bool found = false;
      for (std::size_t k = 0; k < plans.size() && !found; ++k) {
        const Plan& p = plans[k];
        if (taken[k] || p.source != r.envelope.source || p.tag != r.envelope.tag) continue;
        taken[k] = found = true;
        good &= p.bytes == r.received && r.error == ErrorKind::none;
        for (std::uint64_t i = 0; i < p.bytes && good; ++i) good = receive.memory[i] == content(p.source, p.number);
      }
      good &= found;
    }
    good &= from_far == int(other.tags.size());
    if (!good) std::fprintf(stderr, "wrong in round %d\n", round);
  }
  bootstrap.meet();
  thread.stop();
  return good;
}

class Senders : public ::testing::TestWithParam<int> {};

TEST_P(Senders, MeetReceivesThatMayBeMetElsewhere) {
  EXPECT_EQ(run_members(1 + GetParam(), 120,
                        [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                          return receive_rounds(process, bootstrap, rank, size, testing::rounds_of(6000) / size,
                                                unsigned(size));
                        }),
            0);
}
INSTANTIATE_TEST_SUITE_P(OneToThree, Senders, ::testing::Range(1, 4));

class Protocols : public ::testing::TestWithParam<Protocol> {};

TEST_P(Protocols, AreTakenInBeforeTheyAreDecided) {
  Settings settings;
  settings.protocol = GetParam();
  EXPECT_EQ(run_members(
                3, 120,
                [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                  return receive_rounds(process, bootstrap, rank, size, testing::rounds_of(300), 77);
                },
                settings),
            0);
}
INSTANTIATE_TEST_SUITE_P(All, Protocols,
                         ::testing::Values(Protocol::queue, Protocol::fastbox, Protocol::copy_buffers, Protocol::cma,
                                           Protocol::mapped));

}  // namespace
}  // namespace nearfield::messages
